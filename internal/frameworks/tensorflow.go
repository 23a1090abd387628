package frameworks

import "hightide/internal/fail"

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
	Preallocates: "It takes nearly all of a device as it starts, whatever it needs, unless " +
		"TF_FORCE_GPU_ALLOW_GROWTH=true.",
	Imagined: tensorflowImagined,
	Vary: []Change{kernelsOfXLA, {Kind: "growth", What: "memory taken as it is needed",
		Env: map[string]string{"TF_FORCE_GPU_ALLOW_GROWTH": "true"}}, {Kind: "allocator", What: "cudaMallocAsync for an allocator",
		Env: map[string]string{"TF_GPU_ALLOCATOR": "cuda_malloc_async"}}},
	AsNeeded: map[string]string{"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
}

// tensorflowProbe tells which CUDA and cuDNN TensorFlow was built for. Its module is read as text: importing it takes
// seconds.
const tensorflowProbe = `
    spec = find_spec("tensorflow") if "tensorflow" in out["frameworks"] else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if os.path.exists(folder + "/python/platform/build_info.py"):
            with open(folder + "/python/platform/build_info.py") as f:
                for name, version in re.findall(r"'(cuda|cudnn)_version'[,:] *'([^']*)'", f.read()):
                    out["tensorflow_" + name] = version
`

func tensorflowImagined(version string, b Build, path string) (note string, err error) {
	if b.TFCUDA == "" {
		return "", fail.Environment(`pip install "tensorflow[and-cuda]"; it needs no GPU`,
			"tensorflow %s of %s is built for the CPU alone", version, path)
	}
	if b.TFCUDNN == "8" {
		return "", fail.Environment(`pip install "tensorflow[and-cuda]>=2.18" into an environment of its own`,
			"tensorflow %s of %s brings cuDNN 8, and imaginary GPUs know 9 alone: what XLA compiles, as Keras's "+
				"optimizers, would fail", version, path)
	}
	return "", nil
}

func tensorflowRetraced(r Retracing) string {
	switch {
	case r.Eager:
		return padEager
	case r.Anew:
		return "Apply tf.function once, outside of the loop."
	case r.Value():
		return "Pass Python numbers and strings that change as tensors (tf.constant)."
	case r.Padded:
		return "Or " + signature
	}
	return "Pad batches to a few shapes, or " + signature
}

const signature = "give tf.function an input_signature with None where sizes differ, or reduce_retracing=True."

// padEager is for an operation outside of any compiled function.
const padEager = "Pad to a few shapes, or make and change arrays of ever other shapes with NumPy."
