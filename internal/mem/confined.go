package mem

// EventConfined is the kind of the event that says how a program went that was allowed so much host memory and no more:
// Bytes is the limit, Numbers "reached", how often the kernel found the program at it, or "highest", the most in bytes
// that was seen of what the kernel cannot take back; the fact "by" says who held it to that, "why" why not the kernel.
const EventConfined = "confined"

// Who holds a program to a limit.
const (
	ByKernel   = "kernel"   // in a control group of its own
	ByWatching = "watching" // hightide looks at every interval, and ends it
)
