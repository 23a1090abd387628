package frameworks

// FactArena is the fact of a process whose TensorFlow has an arena on the host, which grows by leaps: its pages are
// taken one by one.
const FactArena = "tensorflow_arena"

// TensorFlow is the framework that has that arena.
func TensorFlow() *Framework { return &tensorflow }

var tensorflow = Framework{
	Name: "tensorflow", Title: "TensorFlow", Short: "TF", Bench: "tensorflow",
	Code:     []string{"/tensorflow/", "libtensorflow"},
	Retraced: tensorflowRetraced,
	Freed: map[string]Cache{"traced graphs": {
		Code: []string{"/tensorflow/", "libtensorflow"},
		Advice: "Pass tensors to %s where Python numbers differ from call to call, or give it an " +
			"input_signature: each new number is traced again.",
	}},
}

func tensorflowRetraced(r Retracing) string {
	switch {
	case r.Eager:
		return padEager
	case r.Anew:
		return "Apply tf.function once, outside of the loop."
	case r.Value():
		return "Pass Python numbers and strings that change as tensors (tf.constant)."
	}
	return "Pad batches to a few shapes, or give tf.function an input_signature with None where sizes differ, or " +
		"reduce_retracing=True."
}

// padEager is for an operation outside of any compiled function.
const padEager = "Pad to a few shapes, or make and change arrays of ever other shapes with NumPy."
