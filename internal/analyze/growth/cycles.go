package growth

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Objects that refer to each other in a cycle are freed when Python's collector runs, and not before. It counts
// objects, not bytes: few that keep large tensors may wait for it for a long time.

const (
	leastGarbage = 32 * mem.MiB // that the collector freed at once
	garbageShare = 20           // a twentieth of the peak
)

// cycles finds what waited for the collector, of the host and of devices. What explains a leak joins it.
func (in *Found) cycles(leaks []report.Finding) (found []report.Finding) {
	if len(in.Run.Imagined.Serving) > 0 { // a server's objects go when it ends, and are its engine's
		return nil
	}
	for _, p := range in.Run.Processes {
		e := in.garbageOf(p.ID)
		if e == nil {
			continue
		}
		host, device := mem.Bytes(e.Bytes.Or(0)), mem.Bytes(e.Numbers["device_bytes"])
		switch {
		case device >= leastGarbage && int64(device) >= in.AllocatedBy(p.ID).Or(0)/garbageShare:
			found = append(found, in.cycleFinding(e, device, e.Numbers["device_often"], true))
		case host >= leastGarbage && int64(host) >= in.ProcessPeak(p).Or(0)/garbageShare:
			f := in.cycleFinding(e, host, e.Numbers["often"], false)
			if !in.ofLeak(leaks, &f, host) {
				found = append(found, f)
			}
		}
	}
	return found
}

// ofLeak joins what was found in cycles with a leak of the same line, that it explains; false where there is none.
func (in *Found) ofLeak(leaks []report.Finding, f *report.Finding, freed mem.Bytes) bool {
	for i := range leaks {
		leak := &leaks[i]
		if leak.Kind != report.KindLeak || leak.Process != f.Process || leak.SiteFile != f.SiteFile ||
			leak.SiteLine != f.SiteLine || freed < mem.Bytes(leak.Bytes.Or(0))/2 {
			continue
		}
		leak.Text = fmt.Sprintf("%s, %v by the end (%s), in reference cycles. %s", leak.Title, mem.Bytes(leak.Bytes.Or(0)),
			leak.Label, f.Text)
		leak.Advice = f.Advice
		for n := range in.growing {
			if at := in.growing[n].where(); at.File == leak.File && at.Line == leak.Line {
				in.growing[n].cycles = true
			}
		}
		return true
	}
	return false
}

// garbageOf is what the collector of a process freed, all told; nil where nothing of it was.
func (in *Found) garbageOf(process uint32) (last *mem.Event) {
	for i := range in.Run.Events {
		if e := &in.Run.Events[i]; e.Process == process && e.Kind == mem.EventGarbage {
			last = e
		}
	}
	return last
}

// cycleFinding puts it into words.
func (in *Found) cycleFinding(e *mem.Event, most mem.Bytes, often int64, device bool) report.Finding {
	f := report.Finding{Kind: report.KindCycles, Severity: report.Warning, Process: e.Process,
		Bytes: mem.Some(int64(most)), Label: mem.Sampled}
	if often < 2 {
		f.Severity = report.Info
	}
	where := "host"
	if device {
		where, f.Label = "device", in.Label()
	} else if in.Run.Heap[e.Process] == nil {
		f.Label = mem.Measured
	}
	f.Title = fmt.Sprintf("up to %v of %s memory waits in reference cycles for Python's collector", most, where)
	var b strings.Builder
	fmt.Fprintf(&b, "Objects that refer to each other in a cycle are freed only when Python's collector of garbage "+
		"runs. It freed up to %v of %s memory at once (%s)", most, where, f.Label)
	if often > 1 {
		fmt.Fprintf(&b, ", and a quarter of that or more %d times", often)
	}
	b.WriteString(".")
	p := in.Run.Process(e.Process)
	if p != nil && p.Facts["collector"] == "off" {
		b.WriteString(" The program switched it off (gc.disable()), so what it found at the end had never been looked for.")
	}
	what := "one of the references"
	if cycle := in.cycleOf(e.Process); cycle != nil {
		f.Holder = cycle.Facts["class"]
		what = fmt.Sprintf("one of the references in `%s`", cycle.Facts["name"])
		at := ""
		if cycle.Where != nil {
			f.File, f.Line = cycle.Where.File, cycle.Where.Line
			at = " (" + mem.LineName(*cycle.Where) + ")"
		}
		fmt.Fprintf(&b, " At the end most of it was objects of the class `%s`%s: `%s` is the object again.", f.Holder, at,
			cycle.Facts["name"])
	}
	if stack := e.Numbers["stack"]; stack != 0 && !device {
		locations := in.Run.Stacks.Frames(uint32(stack))
		site := in.Names.Search(locations)
		f.Stack, f.SiteFile, f.SiteLine, f.SiteFunction = locations, site.File, site.Line, site.Function
		if f.File == "" && !site.Native {
			f.File, f.Line = site.File, site.Line
		}
		fmt.Fprintf(&b, " Most of the bytes were allocated at %s.", site.Name)
	}
	f.Text = b.String()
	longest := ""
	if took := e.Numbers["longest_ns"]; took > 0 {
		longest = "; the longest collection took " + report.Duration(took)
	}
	f.Advice = fmt.Sprintf("Break the cycle: make %s a weakref.ref(…), or set it to None when the object is done. Or "+
		"call gc.collect() every few steps%s. That lowers the peak by up to %v.", what, longest, most)
	return f
}

// cycleOf says which objects the garbage of a process was at its end; nil where that was not looked at.
func (in *Found) cycleOf(process uint32) *mem.Event {
	for i := range in.Run.Events {
		if e := &in.Run.Events[i]; e.Process == process && e.Kind == "cycle" {
			return e
		}
	}
	return nil
}
