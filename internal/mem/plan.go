package mem

// EventPlan is the kind of the event that says which plan of levers was to be applied: Text is what it changes, Facts
// "file" where it was read from one, Numbers the peaks of the imagined run that it comes
// from, "allocated" and "reserved", in bytes.
const EventPlan = "plan"

// EventRescue is the kind of an event that says that a step ran out of memory and was done again in parts: Text is the
// error, Bytes what was asked for, the number "count" how many parts, the fact "device" whose memory was short.
const EventRescue = "rescue"

// EventRetry is the kind of an event that says that the program was started again as memory ran out before: Text is what
// the plan of this start changes, the number "start" which start it is and "most" of how many at most, the fact "before"
// the run that ran out.
const EventRetry = "retry"

// FactRescue is of a process of run --rescue: which trainer's step is done again where memory runs out.
const FactRescue = "rescue"

// FactResumed is of a process of a command that was started again: the checkpoint that its trainer went on from.
const FactResumed = "resumed"

// Facts of a process in which a plan is applied.
const (
	FactPlan        = "plan"          // "applied"
	FactPlanRefused = "plan refused"  // why the program was ended instead
	FactPlanLeft    = "plan left out" // what the program made later, and no lever reaches
	FactLever       = "lever "        // and its name: what it did

	NumberOffloaded = "offloaded bytes"   // of activations, in the last step
	NumberHosted    = "moved state bytes" // of optimizers, in the last step
)
