package mem

// EventPlan is the kind of the event that says which plan of levers was to be applied: Text is what it changes, Facts
// "file", Numbers the peaks of the imagined run that it comes from, "allocated" and "reserved", in bytes.
const EventPlan = "plan"

// Facts of a process in which a plan is applied.
const (
	FactPlan        = "plan"         // "applied"
	FactPlanRefused = "plan refused" // why the program was ended instead
	FactLever       = "lever "       // and its name: what it did
)
