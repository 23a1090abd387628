package frameworks

import "hightide/internal/mem"

// Change is something that may make a program fit, which is tried on the imaginary GPU.
type Change struct {
	Kind    string            // of the try
	What    string            // in words
	Setting string            // of PyTorch's allocator, beside what is set
	Switch  string            // what the agent is to switch on; a program that does not offer it is no try
	Says    bool              // what the agent says of it belongs to What: where in the program that was
	Env     map[string]string // variables of the program
	Agent   map[string]string // variables of the agent, beside the switch
}

// Situation is a program that does not fit.
type Situation struct {
	Run    *mem.Run
	Total  mem.Bytes    // of the device
	Beside mem.Bytes    // what the process takes of it beside the framework's allocator
	Limit  mem.Optional // what that may take
}

// kernelsOfXLA is that XLA tries out kernels as it compiles, or does not where it did.
var kernelsOfXLA = Change{Kind: "kernels", What: "kernels of XLA", Switch: "kernels", Says: true}
