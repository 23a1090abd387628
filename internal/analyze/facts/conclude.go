package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// judged says whether the run is one of which a verdict is told.
func (in *Facts) judged() bool { return in.Label() == mem.Imagined && in.Run.Info.Verb == "imagine" }

// figureOf is the peak of what the report leads with. v is the verdict, nil where there is none.
func (in *Facts) figureOf(v *report.Imagined) mem.Figure {
	lead := in.Lead
	f := mem.Figure{Source: lead.Name, Label: in.Label(), What: "RSS"}
	value := in.HostPeak()
	switch lead.Name {
	case mem.SeriesReserved:
		value, f.What = in.sumOfPeaks(lead.Name), "reserved"
	case mem.SeriesAllocated:
		value, f.What = in.sumOfPeaks(lead.Name), "allocated"
	case mem.SeriesDeviceProcess:
		value, f.What = in.sumOfPeaks(lead.Name), "on the device"
	case mem.SeriesDeviceUsed:
		value, f.What = mem.Some(lead.Series.Values[lead.Series.Peak()]), "in use on "+lead.Series.Device
	case mem.SeriesTreePSS:
		value, f.Error = mem.Some(in.PSSPeak.Bytes), in.PSSPeak.Half
		f.What, f.Label = "PSS", mem.Estimated
	}
	if v != nil { // its sentence tells of the fullest device
		value, f.What, f.Source = v.Used, "on the device", mem.SeriesDeviceProcess
	}
	bytes, ok := value.Get()
	if !ok {
		return mem.Figure{}
	}
	f.Bytes = bytes
	if v == nil && (lead.Name == mem.SeriesTreePSS || lead.Name == mem.SeriesTreeRSS) {
		in.ShortLived = in.countShortLived(bytes)
		f.AtLeast = in.ShortLived > 0
	}
	return f
}

// Ending is how the run ended, of an imagined one what the verdict is.
func (in *Facts) Ending() mem.Ending {
	end, v := in.Run.End, in.Verdict
	switch {
	case end == nil:
		return mem.Ending{Kind: mem.EndCutOff, Text: "cut off"}
	case v != nil:
		return endOfVerdict[cmp.Or(v.Verdict, mem.VerdictFailed)]
	case end.Reason == "stopped":
		return mem.Ending{Kind: mem.EndStopped, Text: "stopped as asked"}
	case end.Reason == "left":
		return mem.Ending{Kind: mem.EndDone, Text: "went on after the recording"}
	}
	code, exited := end.ExitCode.Get()
	number, signalled := end.Signal.Get()
	switch {
	case exited && code == 0 && in.shortages() > 0:
		return mem.Ending{Kind: mem.EndDone, Text: "done, after " +
			report.Counted(int64(in.shortages()), "out-of-memory error")}
	case exited && code == 0:
		return mem.Ending{Kind: mem.EndDone, Text: "done"}
	case end.Reason == "recovered": // its engine went away, and a later command brought in what it had left
		return mem.Ending{Kind: mem.EndUnknown, Text: "recovered"}
	case !exited && !signalled:
		return mem.Ending{Kind: mem.EndUnknown, Text: "not known"}
	}
	text := report.SignalName(number)
	if exited {
		text = fmt.Sprintf("exit %d", code)
	}
	return in.failing(text)
}

// failing is the end of a program that failed, with its signal or exit code in words.
func (in *Facts) failing(text string) mem.Ending {
	e, raised := in.Run.Uncaught()
	switch {
	case raised && in.shortage(&e), in.killed():
		return mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}
	case raised:
		return mem.Ending{Kind: mem.EndFailed, Text: text + ", " + e.Facts["class"]}
	case in.shortages() > 0: // it caught the error, and may have failed for it or not
		return mem.Ending{Kind: mem.EndOOM, Text: text + " after out of memory"}
	}
	return mem.Ending{Kind: mem.EndFailed, Text: text}
}

var endOfVerdict = map[mem.Verdict]mem.Ending{
	mem.VerdictFits:        {Kind: mem.EndFits, Text: "fits"},
	mem.VerdictTight:       {Kind: mem.EndTight, Text: "fits tightly"},
	mem.VerdictConditional: {Kind: mem.EndConditional, Text: "fits on a condition"},
	mem.VerdictFew:         {Kind: mem.EndOOM, Text: "too few users"},
	mem.VerdictOOM:         {Kind: mem.EndOOM, Text: "out of memory"},
	mem.VerdictFailed:      {Kind: mem.EndNoVerdict, Text: "no verdict"},
	mem.VerdictUnused:      {Kind: mem.EndNoVerdict, Text: "no verdict"},
	mem.VerdictNone:        {Kind: mem.EndNoVerdict, Text: "no verdict"},
}

// EndOf is a verdict in the words of every list and page.
func EndOf(v mem.Verdict) mem.Ending { return endOfVerdict[cmp.Or(v, mem.VerdictFailed)] }

// shortages is how often memory ran out and an exception said so.
func (in *Facts) shortages() (n int) {
	for i := range in.Run.Events {
		if in.Run.Events[i].RanOut() {
			n++
		}
	}
	return n
}

// shortage says whether an exception that nobody caught tells that memory ran out, as a framework, Python or NumPy
// words it.
func (in *Facts) shortage(e *mem.Event) bool {
	if e.Shortage() || strings.HasSuffix(e.Facts["class"], "MemoryError") {
		return true
	}
	for _, other := range in.Run.Events {
		if other.Kind == "oom" && other.Process == e.Process && other.Text == e.Text && e.Text != "" {
			return true
		}
	}
	return false
}

// killed says whether the kernel ended the run's main process for lack of memory.
func (in *Facts) killed() bool {
	return slices.ContainsFunc(in.Run.Events, func(e mem.Event) bool { return e.Kind == "kill" })
}
