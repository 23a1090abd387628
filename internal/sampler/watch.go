package sampler

import "hightide/internal/processes/here"

// Watch looks at a process tree, its host and its devices: a Sampler where the kernel has /proc, a Portable where it
// has not. For one goroutine.
type Watch interface {
	// Tick looks once. now is the recording's clock in ns.
	Tick(now int64)
	// Last reads every process once more, whatever it costs.
	Last(now int64)
	// Hurried says that the next tick should come sooner than others.
	Hurried() bool
	// Growing says that a process gains memory so fast that SampleGrowing is to be called before the next tick.
	Growing() bool
	SampleGrowing(now int64)
	// Join looks from here on at a process that is not found by its parents; Leave at one no more.
	Join(pid int, start uint64, now int64)
	Leave(pid int, now int64)
	// Processes are those alive at the last tick.
	Processes() []*Process
	// Keeps and KeepsTogether are what they have that the kernel cannot take back.
	Keeps() (bytes, most int64)
	KeepsTogether() int64
	Close()
}

// Open prepares the one of this system; it reads nothing yet but starts the vendors' helpers. With Options.Table it is
// a Portable.
func Open(options Options, sink Sink) Watch {
	if options.Table == nil {
		options.Table = here.Table()
	}
	if options.Table != nil {
		return NewPortable(options, sink)
	}
	return New(options, sink)
}
