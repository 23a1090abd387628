package matrix

// What the built-in workloads know. They are a Python program of the agent's; a test holds these lists equal to its own.
var (
	Frameworks = []string{"pytorch", "tensorflow", "keras", "jax"}
	Models     = []string{"lenet", "resnet18", "transformer6", "transformer6-base"}
	Modes      = []string{"train", "inference"}
	DTypes     = []string{"fp32", "bf16", "fp16"}
)

// WorkloadScript is that program, below the folder that the agent is unpacked in.
const WorkloadScript = "hightide/_workload/main.py"

// CannotRunHere is the exit code by which it says that a framework, a device or a type is not there. The last line on
// standard error says which.
const CannotRunHere = 3
