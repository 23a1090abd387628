package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
	"hightide/internal/words"
)

// growthFinding puts a cause of growth into words.
func (in *Found) growthFinding(g *growing) report.Finding {
	at := g.where()
	f := report.Finding{
		Kind: report.KindLeak, Process: g.process, File: at.File, Line: at.Line, Bytes: mem.Some(int64(g.kept)),
		Error: mem.Some(int64(bytesPer(g.half))), Label: g.label, Severity: in.growthSeverity(g),
		Confidence: (&usage.Trend{Slope: g.slope, Half: g.half, Points: g.points}).Confidence(),
	}
	if !g.minutes {
		f.BytesPerStep = mem.Some(int64(bytesPer(g.slope)))
	} else {
		f.Error = mem.Optional{}
		f.Confidence = math.Round(f.Confidence*doubtOverTime*1000) / 1000
	}
	if g.halfWords() == "" {
		f.Error = mem.Optional{}
	}
	if g.holder != nil {
		f.Holder = g.holder.Name
	}
	if at.File == "" || at.Native {
		f.Kind = report.KindGrowth
	}
	if at.Native {
		f.File, f.Line = "", 0
	}
	if len(g.lines) > 0 && g.objects() {
		f.Stack, f.Phase = in.Run.Stacks.Frames(g.lines[0].Stack), g.lines[0].Phase
	} else if len(g.lines) > 0 {
		site := g.lines[0]
		f.SiteFile, f.SiteLine, f.SiteFunction = site.Site.File, site.Site.Line, site.Site.Function
		f.Stack, f.Phase = in.Run.Stacks.Frames(site.Stack), site.Phase
	}
	f.Title = g.title(at)
	f.Text = in.growthWords(g, at)
	f.Advice = in.growthAdvice(g, at)
	if in.ends(g) {
		asBounded(&f, g)
	}
	return f
}

func (g *growing) title(at mem.Location) string {
	switch {
	case g.holder != nil && len(g.beside) > 0:
		return fmt.Sprintf("%s (%s) keep %s", g.holderNames(), g.holderLines(at), g.rate())
	case g.holder != nil && at.File == "" && g.holder.Where.File == "":
		return fmt.Sprintf("`%s` keeps %s", g.holder.Name, g.rate())
	case g.holder != nil:
		line := mem.LineName(at)
		if g.holder.Where == at {
			line = lineNames(g.holder)
		}
		return fmt.Sprintf("`%s` (%s) keeps %s", g.holder.Name, line, g.rate())
	case g.graph:
		return fmt.Sprintf("the graph of every step is kept (%s): %s", mem.LineName(at), g.rate())
	case g.source == "rss":
		return "host memory grows " + g.rate()
	case g.source == "device":
		return "device memory grows " + g.rate()
	case at.File == mem.PythonObjects:
		return fmt.Sprintf("%s grow %s", at.File, g.rate())
	case at.Native:
		return fmt.Sprintf("%s grows %s", at.File, g.rate())
	}
	return fmt.Sprintf("%s keeps %s", mem.LineName(at), g.rate())
}

// keptUntil says until when what is kept was counted, and whether it is freed.
func (in *Found) keptUntil(g *growing) (end, freed string) {
	end, freed = "by the end", "never freed"
	if in.ClockOf(g.process).GivesBackAtItsEnd() {
		end, freed = "shortly before its end", "not freed before its end"
	}
	if in.sinceSteps(g) != "" {
		end = "by the last step"
	}
	return end, freed
}

// growthWords says what grows, how fast, by which evidence.
func (in *Found) growthWords(g *growing, at mem.Location) string {
	var b strings.Builder
	end, freed := in.keptUntil(g)
	amount := fmt.Sprintf("%s (%s%s), %v%s %s", g.rate(), g.label, g.halfWords(), bytesPer(g.kept), within(g.keptHalf), end)
	switch {
	case g.holder != nil:
		b.WriteString(in.holderWords(g, at))
		if g.graph {
			fmt.Fprintf(&b, "Each keeps the autograd graph of its step, and with it the activations saved for backward: %s.",
				amount)
		} else {
			fmt.Fprintf(&b, "%s %s.%s%s%s", g.keep(), amount, g.parts(), in.bySizes(g), g.seenOfIt(in.HeapName()))
		}
	case g.graph:
		fmt.Fprintf(&b, "What the forward pass saves for backward is never freed: %s. Something keeps the autograd graph "+
			"of every step; the container was not seen.", amount)
	case len(g.lines) == 0:
		fmt.Fprintf(&b, "The %s of %s%s grows steadily after warm-up: %s. %s", memoryName(g.source),
			in.ProcessName(g.process), g.onDevice(), amount, in.whyNoLine(g))
	case at.File == mem.TensorFlowArena:
		fmt.Fprintf(&b, "%s grows, and gives nothing back: %s. %s asked for more than it had; what keeps the tensors in "+
			"it was not seen.", at.File, amount, g.lines[0].Site.Name)
	case at.File == mem.PythonObjects:
		fmt.Fprintf(&b, "Memory of Python's small objects is %s: %s. Python asked for it %s, where no room was left. Which "+
			"lines make the objects that stay is not known: those of all lines lie in it.%s", freed, amount, in.askedAt(g),
			in.nothingSeen(g))
	case at.Native:
		fmt.Fprintf(&b, "Memory allocated inside %s%s is %s: %s.", at.File, during(g.lines[0].Phase), freed, amount)
	default:
		fmt.Fprintf(&b, "Memory allocated at %s%s%s is %s: %s.%s", mem.LineName(at), in.quoted(at),
			during(g.lines[0].Phase), freed, amount, in.nothingSeen(g))
		if line := in.graphOfGradients(g.process); line != "" {
			fmt.Fprintf(&b, " %s calls %s: a leaf that keeps its .grad is in a cycle then, which Python's collector "+
				"does not see.", line, frameworks.OwnGraph)
		}
		if from, to, rise := in.threadsRise(g.process); rise {
			fmt.Fprintf(&b, " Its threads rise meanwhile, from %d to %d (%s): what a function of a thread has in variables lives "+
				"until it returns.", from, to, mem.Measured)
		}
	}
	if g.minutes && len(g.lines) > 0 {
		b.WriteString(" No steps were seen, so this is growth over time, which went on to the end: a program that only " +
			"loads what it needs looks the same.")
	}
	switch {
	case g.holder != nil && oneBlock(*g.holder) && g.label == mem.Estimated:
		b.WriteString(" The figure is from its sizes, as they were seen.")
		if g.copies() > 0 {
			b.WriteString(" While it is replaced both are held, so the peak rises by twice as much.")
		}
	case len(g.lines) == 0 && g.source == "heap":
		b.WriteString(" Its tensors lie in an arena of TensorFlow's own, so the figure is from their sizes, and which " +
			"lines allocate them is not known.")
	}
	if site := len(g.lines); site > 0 && (g.holder != nil || site > 1) {
		b.WriteString(in.siteWords(g))
	}
	if g.early > 0 {
		fmt.Fprintf(&b, " The process rose by %v a %s (%s) in the first half, as in a warm-up: the rate is that of the "+
			"second half.", bytesPer(g.early), g.unit(), g.label)
	}
	if g.whole > 0 && len(g.lines) == 0 {
		b.WriteString(" The figure is from the sizes of its newest items.")
	}
	if g.whole > 0 {
		fmt.Fprintf(&b, " As a whole the process grows by %v a %s (%s): the rest is in mappings, between blocks in "+
			"malloc's arenas, at lines that keep too little each to be told, or %s.",
			bytesPer(g.whole), g.unit(), mem.Measured, in.unseen(g))
	}
	b.WriteString(in.sinceSteps(g))
	b.WriteString(in.boundWords(g))
	if g.holder != nil && g.holder.EmptiedBy != "" && g.holder.Falls == 0 && !g.holder.Bound.Known() {
		fmt.Fprintf(&b, " %s would empty it, and was not seen to while it grew.", g.holder.EmptiedBy)
	}
	b.WriteString(in.among(g))
	return b.String()
}

// unseen is what else the memory of a process may be in.
func (in *Found) unseen(g *growing) string {
	if in.Run.Heap[g.process] == nil {
		return "at lines that are not known: the heap was not sampled"
	}
	if in.HeapTraced() {
		return "not seen by tracemalloc"
	}
	return "not seen by the sampler"
}

// sinceSteps says that a growth with the steps ended with them, well before the program did.
func (in *Found) sinceSteps(g *growing) string {
	c := in.ClockOf(g.process)
	if c.Minutes {
		return ""
	}
	since := in.End - c.Times[len(c.Times)-1]
	if since < int64(time.Second) || float64(since) < afterSteps*float64(in.End-in.Start) {
		return ""
	}
	return fmt.Sprintf(" It grows with the steps: the last one ended %s before the end.", report.Duration(since))
}

// afterSteps is the part of a run without steps at its end that is worth a word.
const afterSteps = 0.05

// halfWords is ", ± 90.1 KiB"; empty of what was not measured, whose error is not known.
func (g *growing) halfWords() string {
	if g.label == mem.Estimated && g.half == 0 {
		return ""
	}
	return fmt.Sprintf(", ± %v", bytesPer(g.half))
}

// within is " ± 1.20 MiB"; empty where no error is known, or it is too small for a word.
func within(half float64) string {
	if half < 1 {
		return ""
	}
	return fmt.Sprintf(" ± %v", bytesPer(half))
}

// holderWords says which container grows, and by how much.
func (in *Found) holderWords(g *growing, at mem.Location) string {
	where := in.atLine(g, at)
	switch {
	case slices.Contains(replacedKinds, g.holder.Kind):
		return fmt.Sprintf("The %s `%s`%s is replaced again and again by a larger one that is made of it. ",
			g.holder.Kind, g.holder.Name, where)
	case oneBlock(*g.holder):
		return fmt.Sprintf("The %s `%s`%s gets larger and larger. ", g.holder.Kind, g.holder.Name, where)
	}
	replaced := ""
	if g.holder.Renewed {
		replaced = "is replaced again and again by a longer one that is made of it, and "
	}
	return fmt.Sprintf("The %s `%s`%s %sgains %s%s%s. ", g.holder.Kind, g.holder.Name, where, replaced, g.items(),
		contents(g.holder), g.besideWords())
}

func (in *Found) whyNoLine(g *growing) string {
	if g.source == "device" {
		return "Which lines allocate it is not known without a snapshot of the allocator."
	}
	if in.Run.Heap[g.process] == nil {
		return "Which lines allocate it is not known: the heap was not sampled."
	}
	if g.holes > 0 {
		return in.holesWords(g)
	}
	if part := in.untilEmptied(g); part != "" && g.source == "rss" {
		return part + in.tracedMeanwhile(g.process)
	}
	if at, bytes := in.roseMost(g.process); g.source == "rss" && float64(bytes) >= explainsAll*g.kept {
		return fmt.Sprintf("No line of the %s grows steadily enough to be told. What %s%s holds rose most, by %v "+
			"(%s).%s", in.HeapName(),
			mem.LineName(at), in.quoted(at), bytes, in.HeapLabel(), in.tracedMeanwhile(g.process))
	}
	if in.HeapTraced() {
		return "No line of Python's memory shows it: it is native memory, which tracemalloc does not see, or spread over " +
			"many lines." + in.tracedMeanwhile(g.process)
	}
	return "The sampled heap does not show it: it is in mappings, in an allocator's own reserve, or spread over many " +
		"lines." + in.tracedMeanwhile(g.process)
}

// roseMost is the line of the sampled heap of a process that rose most.
func (in *Found) roseMost(process uint32) (most mem.Location, bytes mem.Bytes) {
	for at, rose := range in.rose(process) {
		if cmp.Or(cmp.Compare(rose, bytes), cmp.Compare(most.Line, at.Line), cmp.Compare(most.File, at.File)) > 0 {
			most, bytes = at, rose
		}
	}
	return most, bytes
}

// tracedMeanwhile names the function of a process that was traced or compiled most, where that went on.
func (in *Found) tracedMeanwhile(process uint32) string {
	for _, f := range in.Tracings() {
		if f.Process == process && f.GoesOn() && f.Library {
			return fmt.Sprintf(" Meanwhile %s traced functions of its own %d times at %s.", frameworks.Of(f.Framework).Title,
				f.Count, in.Names.Search([]mem.Location{f.Where}).Name)
		}
		if f.Process == process && f.GoesOn() {
			return fmt.Sprintf(" Meanwhile `%s` (%s) was traced or compiled %d times, and %s keeps a graph or program of each.",
				f.Where.Function, in.Names.Search([]mem.Location{f.Where}).Name, f.Count, frameworks.Of(f.Framework).Title)
		}
	}
	return ""
}

// graphOfGradients is a line that grows and has gradients keep their own graphs; "": none does.
func (in *Found) graphOfGradients(process uint32) string {
	for i := range in.growing {
		if g := &in.growing[i]; g.process == process && g.holder == nil && len(g.lines) > 0 &&
			keepsOwnGraph.Regexp().MatchString(in.Source(g.where())) {
			return mem.LineName(g.where())
		}
	}
	return ""
}

var keepsOwnGraph = words.Lazy(frameworks.KeepsOwnGraph)

// growthAdvice says what to change, where, and what that saves.
func (in *Found) growthAdvice(g *growing, at mem.Location) string {
	saves := g.saves(1)
	switch {
	case g.holder != nil && helps(g.holder.Kind) != "":
		return fmt.Sprintf(helps(g.holder.Kind), g.holderNames()) + " " + saves
	case g.holder != nil:
		return in.itemAdvice(g, at) + objectsBeside(g, in.growing, "grow", "saved")
	case g.graph:
		return "Look for a list, dict or attribute that collects losses or outputs, and store `x.item()` of one number, " +
			"or `x.detach()`, in it. " + saves
	case at.File == mem.PythonObjects:
		return "Run again with PYTHONMALLOC=malloc in the environment: each object is then sampled at its own line."
	case len(g.lines) > 0 && in.graphOfGradients(g.process) == mem.LineName(g.where()):
		return "Call " + frameworks.WithoutGraph + " in its place, or set .grad to None after each step: of parameters, " +
			"and of inputs that require gradients. " + saves
	case len(g.lines) > 0 && in.graphOfGradients(g.process) != "":
		return "Mend " + in.graphOfGradients(g.process) + " first: its cycle may keep this as well."
	case len(g.lines) > 0 && !at.Native:
		thread := ""
		if _, _, rise := in.threadsRise(g.process); rise && g.holder == nil {
			thread = "a thread that does not end, "
		}
		return fmt.Sprintf("Find what keeps the result of %s: %sa global, a cache, a closure, or a C extension that does "+
			"not free it. %s", mem.LineName(at), thread, saves)
	case g.holes > 0:
		return in.AgainstHoles(g.process, in.End)
	case in.Run.Heap[g.process] == nil && g.source == "rss":
		if in.Run.Info.Verb == "imagine" {
			return "Run again with --stacks to see the lines."
		}
		if in.Attached() {
			return "To see the lines, record it with the agent in it: hightide run, hightide attach --inject, or " +
				"hightide.init() in the program."
		}
		if os := in.Run.Info.Host.OS; os != "" && !strings.HasPrefix(os, "linux") {
			return "Run again with --tracemalloc to see the lines that hold Python's memory."
		}
		return "Run again with stacks (without --no-stacks) to see the lines."
	}
	return ""
}

// objectsBeside says that Python's small objects, which no container was found for, may be its items' as well.
func objectsBeside(g *growing, all []growing, grow, freed string) string {
	for i := range all {
		if o := &all[i]; o.process == g.process && o.objects() && o.holder == nil && !g.objects() {
			return fmt.Sprintf(" Python's small objects %s beside it: those that its items hold are %s too.", grow, freed)
		}
	}
	return ""
}

// nothingSeen says that the containers were looked at in vain, where they were.
func (in *Found) nothingSeen(g *growing) string {
	if p := in.Run.Process(g.process); p == nil || p.Facts["scans"] == "" || in.sawHolders(g.process) {
		return ""
	}
	walked := in.Run.Process(g.process)
	const within = " No container was seen to gain items that may hold as much among those that the program's variables, " +
		"objects, queues and tasks lead to"
	switch {
	case walked.Facts["replaced"] != "":
		return within + ". But the " + walked.Facts["replaced"] + " was another at each look, and longer: where it is " +
			"made of the one before, it keeps what that held."
	case walked.Facts["heap_grows"] != "":
		return within + ", but Python's heap gains " + walked.Facts["heap_grows"] + ". What holds them was not found."
	case walked.Number("heap_walk").Known():
		return within + ", nor among all " + report.Counted(walked.Number("heap_walk").Or(0), "object") +
			" that Python's collector of cycles knows, of which no type gains any. Native code may keep it, as that of a C " +
			"extension, or tuples of plain values, which the collector does not know."
	}
	return within + ". The rest of Python's heap was not looked through."
}

// threadsRise says from how many to how many the threads of a process rise, where they do to the end of what is looked at.
func (in *Found) threadsRise(process uint32) (from, to int64, rise bool) {
	s := in.Find(process, mem.SeriesThreads)
	if s == nil {
		return 0, 0, false
	}
	begin, end := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	from, to = s.At(begin).Or(s.Values[0]), s.At(end).Or(0)
	middle := s.At(begin + (end-begin)/2).Or(0)
	return from, to, middle-from >= leastThreads && to-middle >= leastThreads
}

// leastThreads is by how many threads a process rises in each half of the time for it to be told beside what it keeps.
const leastThreads = 8

// sawHolders says whether a container of a process was seen to gain items, at any time.
func (in *Found) sawHolders(process uint32) bool {
	return slices.ContainsFunc(in.Run.Holders, func(h mem.Holder) bool {
		return h.Process == process && h.Time <= in.End && (h.PerStep > 0 || h.PerMin > 0)
	})
}

// SoonTimes what was run is how soon a deadline is critical.
const SoonTimes = 20

// growthSeverity: critical where memory runs out within a few times what was run.
func (in *Found) growthSeverity(g *growing) string {
	left, ok := in.left(g.shares, g.source)
	peak := float64(in.HostPeak().Or(0))
	switch {
	case ok && left.turns < SoonTimes*in.Turns(g.minutes):
		return report.Critical
	case g.kept > 0.01*peak || g.kept > float64(64*mem.MiB):
		return report.Warning
	}
	return report.Info
}
