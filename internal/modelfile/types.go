package modelfile

import (
	"fmt"
	"math"
	"math/bits"

	"hightide/internal/mem"
)

// Type is how the numbers of a tensor are stored: Block of them take Bytes, or where one takes less than a byte, Bits.
type Type struct {
	Name  string
	Block int64 // numbers that are stored together
	Bytes int64 // that they take
}

// Float says whether the type is one that weights are trained in: 16, 32 or 64 bits for a number.
func (t Type) Float() bool {
	switch t.Name {
	case "F16", "BF16", "F32", "F64":
		return true
	}
	return false
}

// The types that computed tensors have.
var (
	BF16 = Type{"BF16", 1, 2}
	F16  = Type{"F16", 1, 2}
	F32  = Type{"F32", 1, 4}
	FP8  = Type{"F8_E4M3", 1, 1}
)

// safetensorsTypes are those of the format. Those below a byte are counted in bytes that hold several.
var safetensorsTypes = map[string]Type{
	"BOOL": {"BOOL", 1, 1}, "U8": {"U8", 1, 1}, "I8": {"I8", 1, 1}, "F8_E5M2": {"F8_E5M2", 1, 1},
	"F8_E4M3": FP8, "F8_E8M0": {"F8_E8M0", 1, 1}, "F8_E4M3FNUZ": {"F8_E4M3FNUZ", 1, 1},
	"F8_E5M2FNUZ": {"F8_E5M2FNUZ", 1, 1}, "F4": {"F4", 2, 1}, "F6_E2M3": {"F6_E2M3", 4, 3}, "F6_E3M2": {"F6_E3M2", 4, 3},
	"I16": {"I16", 1, 2}, "U16": {"U16", 1, 2}, "F16": F16, "BF16": BF16,
	"I32": {"I32", 1, 4}, "U32": {"U32", 1, 4}, "F32": F32,
	"F64": {"F64", 1, 8}, "I64": {"I64", 1, 8}, "U64": {"U64", 1, 8}, "C64": {"C64", 1, 8},
}

// ggmlTypes are those of GGUF by their number: how many numbers a block has, and its bytes. Source: the block structures
// of ggml, by what each holds (scales, minima, packed numbers).
var ggmlTypes = map[uint32]Type{
	0: F32, 1: F16, 2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
	8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36}, 10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144},
	13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292}, 16: {"IQ2_XXS", 256, 66},
	17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18},
	21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2},
	26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8}, 29: {"IQ1_M", 256, 56}, 30: BF16,
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// size is what so many numbers of a shape take.
func (t Type) size(shape []int64) (mem.Bytes, error) {
	n := uint64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("a tensor of the shape %v", shape)
		}
		high, low := bits.Mul64(n, uint64(d))
		if high != 0 || low > math.MaxInt64/16 {
			return 0, fmt.Errorf("a tensor of the shape %v is larger than any memory", shape)
		}
		n = low
	}
	if n%uint64(t.Block) != 0 {
		return 0, fmt.Errorf("%d numbers of %s, which come in blocks of %d", n, t.Name, t.Block)
	}
	high, low := bits.Mul64(n/uint64(t.Block), uint64(t.Bytes))
	if high != 0 || low > math.MaxInt64/16 {
		return 0, fmt.Errorf("a tensor of the shape %v is larger than any memory", shape)
	}
	return mem.Bytes(low), nil
}
