package modelfile

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"hightide/internal/mem"
)

// The fields of TFLite's tables that tell of the graph, by their numbers. Source: schema.fbs of LiteRT.
const (
	tfliteCodes     = 1 // of Model
	tfliteInputs    = 1 // of SubGraph
	tfliteOutputs   = 2
	tfliteOperators = 3
	tfliteOpcode    = 0 // of Operator
	tfliteTakes     = 1
	tfliteMakes     = 2
	tfliteBetween   = 8 // what it keeps for itself while it runs
	tfliteOldCode   = 0 // of OperatorCode: up to 127
	tfliteCustom    = 1
	tfliteCode      = 3
	tfliteVariable  = 5 // of Tensor: a state
	tfliteSignature = 7 // -1 is a size that the caller sets
)

// readTFLite reads a TFLite or LiteRT file, a flatbuffer: the weights, and what is computed.
func readTFLite(r io.ReaderAt, size int64, keep *budget, m *Model) error {
	f := &flatbuffer{r: r, size: size}
	if magic := f.bytes(4, 4); f.err != nil || string(magic) != "TFL3" {
		return &Error{Offset: 4, Err: errors.New("no TFLite: it does not say TFL3")}
	}
	model := f.follow(0)
	if m.Tensors = f.weights(model, keep); f.err == nil {
		m.Graph = f.graph(model)
	}
	return f.err
}

// graph reads the main graph of a model.
func (f *flatbuffer) graph(model int64) *Graph {
	g, count := &Graph{}, uses{}
	kinds := f.operatorKinds(model, &count)
	buffers := f.vector(f.field(model, tfliteBuffers))
	main := int64(0)
	for graph := range f.tables(f.field(model, tfliteSubgraphs)) {
		if main == 0 {
			main = graph
		} else {
			g.Inside++
		}
	}
	if main == 0 || f.err != nil {
		return nil
	}
	number := f.values(main, buffers, g, &count)
	f.mark(main, tfliteInputs, number, func(v int) { g.Values[v].Kept = true })
	f.mark(main, tfliteOutputs, number, func(v int) { g.Values[v].Asked = true })
	for at := range f.tables(f.field(main, tfliteOperators)) {
		o := Operator{Kind: "?"}
		code := 0
		if field := f.field(at, tfliteOpcode); field > 0 {
			code = int(f.uint32(field))
		}
		if code < len(kinds) {
			o.Kind = kinds[code]
		}
		f.mark(at, tfliteTakes, number, func(v int) { o.Takes = append(o.Takes, v) })
		f.mark(at, tfliteMakes, number, func(v int) { o.Makes = append(o.Makes, v) })
		f.mark(at, tfliteBetween, number, func(v int) { o.Makes = append(o.Makes, v) })
		f.fail(at, count.count(1, len(o.Takes)+len(o.Makes)))
		if f.err != nil {
			return nil
		}
		g.Operators = append(g.Operators, o)
	}
	return g
}

// values reads the tensors that are computed; number has for each tensor of the file its number among these, -1 of a
// constant.
func (f *flatbuffer) values(graph int64, buffers flatVector, g *Graph, count *uses) (number []int) {
	for at := range f.tables(f.field(graph, tfliteTensors)) {
		n := int64(0)
		if field := f.field(at, tfliteBuffer); field > 0 {
			n = int64(f.uint32(field))
		}
		if n > 0 && f.held(buffers, n) > 0 {
			number = append(number, -1)
			continue
		}
		t := f.tensor(at, 0)
		v := Value{Name: t.Name, Bytes: sizeOf(t.Type, t.Shape)}
		switch t.Type.Name {
		case "STRING", "RESOURCE", "VARIANT":
			v.Bytes = mem.Optional{}
		}
		if field := f.field(at, tfliteVariable); field > 0 {
			v.Kept = f.bytes(field, 1)[0] != 0
		}
		sizes := f.vectorOf(f.field(at, tfliteSignature), 4)
		for i := int64(0); i < min(sizes.n, 16) && f.err == nil; i++ {
			g.Open = g.Open || int32(f.uint32(sizes.at+4*i)) < 0
		}
		f.fail(at, count.count(0, 1))
		if f.err != nil {
			return number
		}
		number = append(number, len(g.Values))
		g.Values = append(g.Values, v)
	}
	return number
}

// mark calls each with the values that a field of a table lists; -1 is one that is left out.
func (f *flatbuffer) mark(table, field int64, number []int, each func(v int)) {
	list := f.vectorOf(f.field(table, field), 4)
	for i := int64(0); i < list.n && f.err == nil; i++ {
		n := int64(int32(f.uint32(list.at + 4*i)))
		if n >= int64(len(number)) {
			f.fail(list.at, fmt.Errorf("tensor %d, of %d", n, len(number)))
			return
		}
		if n >= 0 && number[n] >= 0 {
			each(number[n])
		}
	}
}

// operatorKinds are the names of the kinds of operators that the model uses.
func (f *flatbuffer) operatorKinds(model int64, count *uses) (kinds []string) {
	for at := range f.tables(f.field(model, tfliteCodes)) {
		code := 0
		if field := f.field(at, tfliteOldCode); field > 0 {
			code = int(f.bytes(field, 1)[0])
		}
		if field := f.field(at, tfliteCode); field > 0 {
			code = max(code, int(int32(f.uint32(field))))
		}
		kind := fmt.Sprintf("operator %d", code)
		if code < len(tfliteKinds) {
			kind = tfliteKinds[code]
		}
		if custom := f.text(at, tfliteCustom); custom != "" {
			kind = custom
		}
		f.fail(at, count.count(1, 0))
		if f.err != nil {
			return kinds
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// tfliteKinds are those of BuiltinOperator, by their numbers; what came later is called by its number.
var tfliteKinds = strings.Fields(`
	ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
	FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
	LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH
	SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
	BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
	BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
	ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
	TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
	LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL
	FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL
	REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND
	HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
	BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
	HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
	ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
	DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
	UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
	STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
	STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
	STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
	STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
	STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
	STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
	STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
	STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
`)
