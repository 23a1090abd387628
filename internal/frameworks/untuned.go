package frameworks

// others are frameworks that levers are not made for, those first that say most of what a program does.
var others = []string{"vllm", "sglang", "jax", "tensorflow"}

// Untuned says of each why it is refused, and what can be done instead.
var Untuned = map[string]struct{ Says, Instead string }{
	"vllm": {"levers change trainings, and this program serves with vLLM",
		"--max-model-len, --kv-cache-dtype fp8 and --tensor-parallel-size change what it takes; hightide imagine runs each"},
	"sglang": {"levers change trainings, and this program serves with SGLang",
		"--context-length, --kv-cache-dtype fp8_e5m2 and --tp-size change what it takes; hightide imagine runs each"},
	"jax": {"levers are made for PyTorch, and this program computes with JAX",
		"jax.checkpoint computes activations again, and donate_argnums gives memory of arguments back; hightide imagine runs each"},
	"tensorflow": {"levers are made for PyTorch, and this program computes with TensorFlow",
		"tf.recompute_grad computes activations again, and a smaller batch keeps fewer; hightide imagine runs each"},
}

// NotTuned is the framework of a run that levers are not made for; "": it has none.
func NotTuned(uses func(framework string) bool) string {
	for _, name := range others {
		serves := name == "vllm" || name == "sglang"
		if uses(name) && (serves || !uses("torch")) { // which programs of PyTorch import beside it
			return name
		}
	}
	return ""
}
