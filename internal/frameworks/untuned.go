package frameworks

// others are frameworks that are not PyTorch, those first that say most of what a program does.
var others = []string{"vllm", "sglang", JAX, "tensorflow"}

// Untuned says of each that levers are not made for why it is refused, and what can be done instead.
var Untuned = map[string]struct{ Says, Instead string }{
	"vllm": {"levers change trainings, and this program serves with vLLM",
		"hightide tune -- vllm serve MODEL tries settings of the engine, and of a script hightide imagine --vary"},
	"sglang": {"levers change trainings, and this program serves with SGLang",
		"hightide tune -- python -m sglang.launch_server tries settings of the engine; of a script hightide imagine --vary"},
	"tensorflow": {"levers are made for PyTorch and JAX, and this program computes with TensorFlow",
		"tf.recompute_grad computes activations again, and a smaller batch keeps fewer; hightide imagine runs each"},
}

// Other is the framework of a run that is not a training of PyTorch; "": it has none.
func Other(uses func(framework string) bool) string {
	for _, name := range others {
		serves := name == "vllm" || name == "sglang"
		if uses(name) && (serves || !uses("torch")) { // which programs of PyTorch import beside it
			return name
		}
	}
	return ""
}

// Unseen is what was not seen of a program that a plan of a framework's levers was not applied to.
func Unseen(framework string) string {
	if framework == JAX {
		return "no gradient of JAX was seen"
	}
	return "no training call of a PyTorch model was seen"
}
