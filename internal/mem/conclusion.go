package mem

// Conclusion is what a run comes to in one line. It follows from the recording alone, by one function
// (facts.Conclude), so that lists, pages, comparisons and every interface say the same of a run.
type Conclusion struct {
	Figure Figure
	Ending Ending

	// Peaks on devices in bytes, as its report has them: added up over processes and devices. Absent: none is known.
	Allocated, Reserved, DeviceUsed Optional
}

// Figure is the one figure of memory by which a run is known: the peak of what its report leads with. Zero: none was
// observed.
type Figure struct {
	Bytes   int64    `json:"bytes" doc:"The peak in bytes."`
	Error   int64    `json:"error_bytes,omitempty" doc:"How far it may be off to either side, in bytes; absent: exact, or not known."`
	What    string   `json:"what" doc:"Of what, in short: RSS, PSS, reserved, allocated, on the device."`
	Source  Quantity `json:"source" doc:"The quantity of which it is the peak, as tree.pss."`
	Label   Label    `json:"label" doc:"Where it comes from: measured, estimated or imagined."`
	AtLeast bool     `json:"at_least,omitempty" doc:"Whether processes that lived very shortly may have taken more between two readings."`
}

// Figures beside the peak, of which trends are made.
const (
	FigureGrowth        = "growth"        // of the whole run, with each step
	FigureFragmentation = "fragmentation" // what an allocator had and nobody used, at the peak
	FigureUnlisted      = "unlisted"      // the most that lines of one function held that are not among the places of a run
)

// Known says whether there is a figure.
func (f Figure) Known() bool { return f.What != "" }

// String is "1.71 GiB PSS"; "" where there is none.
func (f Figure) String() string {
	if !f.Known() {
		return ""
	}
	return Bytes(f.Bytes).String() + " " + f.What
}

// EndKind is how a run ended, for programs.
type EndKind string

// Kinds of ends. Of a run on imaginary GPUs, that is the verdict.
const (
	EndRunning     EndKind = "running"
	EndCutOff      EndKind = "cut off"     // its recording has no end
	EndDone        EndKind = "done"        // with exit code 0
	EndStopped     EndKind = "stopped"     // as it was asked to
	EndOOM         EndKind = "oom"         // for lack of memory
	EndFailed      EndKind = "failed"      // for another reason
	EndUnknown     EndKind = "unknown"     // it has ended; how nobody saw
	EndFits        EndKind = "fits"        // imagined
	EndTight       EndKind = "tight"       // imagined: with less room than the figures are sure of
	EndConditional EndKind = "conditional" // imagined: it fits if numbers are as taken, or for so many steps
	EndNoVerdict   EndKind = "no verdict"  // imagined: it failed for another reason, or touched no GPU
)

// Ending is how a run ended.
type Ending struct {
	Kind EndKind `json:"kind" enum:"running,cut off,done,stopped,oom,failed,unknown,fits,tight,conditional,no verdict" doc:"How it ended; of a run on imaginary GPUs, its verdict."`
	Text string  `json:"text" doc:"The same in a few words, as: exit 1, IndexError."`
}

// StillRunning is how a run has ended that has not.
var StillRunning = Ending{EndRunning, string(EndRunning)}

// Tone is what a kind of end means to who looks at many: good, bad, live, or unsure.
func (k EndKind) Tone() string {
	switch k {
	case EndRunning:
		return "live"
	case EndDone, EndStopped, EndFits, EndTight:
		return "good"
	case EndOOM, EndFailed:
		return "bad"
	}
	return "unsure"
}
