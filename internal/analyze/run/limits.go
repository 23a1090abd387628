package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/analyze/growth"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	leastCount = 32   // of descriptors or threads
	nearLimit  = 0.99 // of it
)

// limits tells what else than memory grows with the steps, and how long it lasts.
func limits(in *Input) (r report.Part) {
	for i := range in.ending {
		r.Findings = append(r.Findings, in.supplyFinding(&in.ending[i]))
	}
	return r
}

// deadlines are those of supplies that are worth telling, and that of all that ends the program first; nil: nothing was
// seen to end.
func (in *Input) deadlines() (told []deadline, first *deadline) {
	sooner := func(d *deadline) {
		if first == nil || d.time < first.time {
			first = d
		}
	}
	memory := deadline{memory: true}
	var ok bool
	if memory.slope, memory.left, memory.time, memory.minutes, ok = in.grown.Deadline(); ok {
		sooner(&memory)
	}
	for _, s := range in.supplies() {
		d, ok := in.deadlineOf(s)
		if !ok {
			continue
		}
		if d.limit.Known() && (d.gone || d.slope > 0) {
			sooner(&d)
		}
		if !d.silent || in.soon(&d) && first != nil && first.name == d.name {
			told = append(told, d)
		}
	}
	return told, first
}

// supplies are those whose use was recorded.
func (in *Input) supplies() (all []supply) {
	add := func(s supply) {
		if s.use != nil && len(s.use.Values) > 0 {
			all = append(all, s)
		}
	}
	for _, p := range in.Run.Processes {
		add(supply{name: "open files", process: p.ID, use: in.Find(p.ID, mem.SeriesFiles),
			limit:  in.LastOf(p.ID, mem.SeriesFilesLimit),
			source: "that the process may have (`ulimit -n`)", least: leastCount, ended: "Too many open files"})
		add(supply{name: addressSpace, process: p.ID, use: in.Find(p.ID, mem.SeriesVMS),
			limit:  in.LastOf(p.ID, mem.SeriesVMSLimit),
			source: "that the process may have (`ulimit -v`)", least: facts.LeastTotal, silent: true,
			advice: "Raise the limit of address space (`ulimit -v`), or find what keeps mapping memory: files, shared " +
				"memory, threads' stacks."})
	}
	threads := in.threadLimit()
	threads.name, threads.use, threads.least, threads.ended = "threads", in.Find(0, mem.SeriesTreeThreads), leastCount,
		"can't start new thread"
	threads.advice = "Reuse one pool of threads or processes, and shut down each executor, loader and process that is " +
		"no longer needed: join() or wait() for it."
	add(threads)
	shared, source := in.sharedLimit()
	add(supply{name: sharedMemory, use: in.Find(0, mem.SeriesShmUsed), limit: shared, source: source, least: facts.LeastTotal,
		whose: "the machine, whichever program has it,",
		ended: "No space left on device",
		advice: "Remove what is no longer needed (a file, or by unlink() a multiprocessing.shared_memory.SharedMemory), " +
			"and close it in each process: only both give its memory back. In a container, --shm-size sets how much " +
			"there is."})
	for i := range all {
		if s := &all[i]; s.used == 0 {
			s.used = s.use.At(in.untilEnd(cmp.Or(s.process, in.Leader))).Or(s.use.Values[0])
		}
	}
	return all
}

// untilEnd is the last moment at which a process still had what it used: one that ends gives all back.
func (in *Input) untilEnd(process uint32) int64 {
	_, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	return to
}

// sharedLimit is how much there may be in /dev/shm: what its file system has, or less where the machine or the
// control group has less memory left, which it takes.
func (in *Input) sharedLimit() (limit mem.Optional, source string) {
	limit, source = in.LastOf(0, mem.SeriesShmTotal), "that the file system has (`df /dev/shm`)"
	used, ok1 := in.LastOf(0, mem.SeriesShmUsed).Get()
	if room, _ := in.HostRoom(); ok1 && room.Known() && used+room.Or(0) < limit.Or(0) {
		return mem.Some(used + room.Or(0)), "that it can have with the memory that was free"
	}
	return limit, source
}

// threadLimit is the nearest of the limits of threads: of the user, the control group, the machine.
func (in *Input) threadLimit() (nearest supply) {
	to := in.untilEnd(in.Leader)
	used := func(q mem.Quantity) mem.Optional {
		if series := in.Find(0, q); series != nil {
			return series.At(to)
		}
		return mem.Optional{}
	}
	var user mem.Optional
	for _, p := range in.Run.Processes {
		if limit, ok := in.LastOf(p.ID, mem.SeriesThreadsLimit).Get(); ok && limit < user.Or(math.MaxInt64) {
			user = mem.Some(limit)
		}
	}
	for _, s := range []struct {
		used, limit mem.Optional
		source      string
		others      bool
		counted     string
	}{
		{used(mem.SeriesTreeThreads), user, "that the user's processes may have (`ulimit -u`)", true, ""},
		{used(mem.SeriesCgroupThreads), in.LastOf(0, mem.SeriesCgroupThreadsLimit),
			"that the control group may have (pids.max)", false, " in the control group"},
		{used(mem.SeriesSystemThreads), in.LastOf(0, mem.SeriesSystemThreadsLimit),
			"that the machine may have (kernel.pid_max, kernel.threads-max)", false, " on the machine"},
	} {
		used, ok1 := s.used.Get()
		limit, ok2 := s.limit.Get()
		if ok1 && ok2 && (!nearest.limit.Known() || limit-used < nearest.limit.Or(0)-nearest.used) {
			nearest = supply{used: used, limit: mem.Some(limit), source: s.source, others: s.others, counted: s.counted}
		}
	}
	return nearest
}

// deadlineOf says how the use of a supply grows; ok where it does, or where there was none left.
func (in *Input) deadlineOf(s supply) (d deadline, ok bool) {
	of := cmp.Or(s.process, in.Leader)
	c := in.ClockOf(of)
	from, to := c.Window(in.Run.Process(of), in.End)
	d = deadline{supply: s, minutes: c.Minutes, left: math.Inf(1), time: math.Inf(1)}
	limit, limited := s.limit.Get()
	d.gone = limited && s.use.Values[s.use.Peak()] > s.use.Values[0] && in.endedBy(s)
	if c.Minutes && to-from < int64(growth.LeastLifeHeap) {
		return d, d.gone
	}
	t := usage.TrendOf(usage.Binned(s.use.Times, s.use.Values, from, to, usage.MostBins, c.At), usage.Noise{}, s.least)
	if !t.Steady {
		return d, d.gone
	}
	d.slope, d.half = t.Slope, t.Half
	if limited {
		d.left = math.Max(float64(limit-s.used), 0) / t.Slope
		d.time = d.left * float64(to-from) / math.Max(c.At(to)-c.At(from), 1e-9)
	}
	if d.gone {
		d.left, d.time = 0, 0
	}
	return d, true
}

// endedBy says whether the program ended as there was nothing left of a supply.
func (in *Input) endedBy(s supply) bool {
	e, ok := in.Run.Uncaught()
	if s.name == addressSpace { // an allocation says in its own words that it failed, and which limit stood then
		return ok && e.Process == s.process && slices.ContainsFunc(in.Run.Events,
			func(e mem.Event) bool { return e.Process == s.process && e.RanOut() && spaceReached(&e) != "" })
	}
	full := float64(s.use.Values[s.use.Peak()]) > nearLimit*float64(s.limit.Or(math.MaxInt64))
	return ok && s.ended != "" && strings.Contains(e.Text, s.ended) &&
		(full || s.name == "open files" || s.name == "threads")
}

// soon says whether a supply ends within a few times what was run.
func (in *Input) soon(d *deadline) bool {
	return d.gone || d.left < growth.SoonTimes*in.Turns(d.minutes)
}

// supplyFinding puts a deadline into words, with the container that keeps what uses the supply, and with what was left
// behind of shared memory.
func (in *Input) supplyFinding(d *deadline) report.Finding {
	f := report.Finding{Kind: report.KindResource, Severity: report.Warning, Process: d.process, Label: mem.Measured,
		Title: d.title(), Text: in.supplyWords(d), Advice: d.advice}
	if in.soon(d) {
		f.Severity = report.Critical
	}
	if d.name == "open files" {
		kind, count := in.descriptors(d.process)
		f.Advice = descriptorAdvice(kind)
		if kind != "" {
			f.Text += fmt.Sprintf(" Most of them, %s, were %s when they were looked at last.", report.Count(count),
				descriptorName(kind))
		}
		if h := in.keeperOf(d); h != nil {
			f.File, f.Line, f.Holder = h.Where.File, h.Where.Line, h.Name
			f.Text += fmt.Sprintf(" The %s `%s` (%s) gains %s.", h.Kind, h.Name, mem.LineName(h.Where),
				growth.Gains(h, d.minutes))
			f.Advice = fmt.Sprintf("Close what `%s` keeps, or drop it from there, when it is no longer needed. ", h.Name) +
				f.Advice
		}
	}
	if d.name == sharedMemory {
		for _, left := range in.sharedLeft() {
			f.Text, f.Bytes = f.Text+" "+left.Text, left.Bytes
		}
	}
	return f
}

// amount writes how much of a supply something is.
func (d *deadline) amount(n float64) string {
	if d.use.Unit == mem.UnitBytes {
		return mem.Bytes(math.Round(n)).String()
	}
	if n != math.Trunc(n) && n < 100 {
		return fmt.Sprintf("%.3g", n)
	}
	return report.Count(int64(math.Round(n)))
}

func (d *deadline) per() string {
	if d.minutes {
		return "minute"
	}
	return "step"
}

// share is "576 of 1,024".
func (d *deadline) share() string {
	if limit, ok := d.limit.Get(); ok {
		return d.amount(float64(d.used)) + " of " + d.amount(float64(limit))
	}
	return d.amount(float64(d.used))
}

func (d *deadline) title() string {
	switch {
	case d.gone:
		return fmt.Sprintf("the program ran out of %s: %s may be had", d.name, d.amount(float64(d.limit.Or(0))))
	case d.slope == 0:
		return fmt.Sprintf("%s: %s", d.name, d.share())
	}
	return fmt.Sprintf("%s %s %s per %s: %s", d.name, d.verb("grow"), d.amount(d.slope), d.per(), d.share())
}

// supplyWords: "The open files of main grow by 2 per step (measured, ± 0.01): 576 at the end, of 1,024 that the
// process may have (`ulimit -n`). At this pace there are none left in about 220 steps (estimated)."
func (in *Input) supplyWords(d *deadline) string {
	whose := cmp.Or(d.whose, "the run's processes together")
	if d.process != 0 {
		whose = in.ProcessName(d.process)
	}
	var b strings.Builder
	if d.slope > 0 {
		fmt.Fprintf(&b, "The %s of %s %s by %s per %s (%s, ± %s): %s%s at the last reading", d.name, whose, d.verb("grow"),
			d.amount(d.slope), d.per(), mem.Measured, d.amount(d.half), d.amount(float64(d.used)), d.counted)
	} else if d.counted != "" || d.whose != "" {
		fmt.Fprintf(&b, "Of %s there were %s%s at the last reading", d.name, d.amount(float64(d.used)),
			cmp.Or(d.counted, " on the machine"))
	} else {
		fmt.Fprintf(&b, "Of %s, %s had %s at the last reading", d.name, whose, d.amount(float64(d.used)))
	}
	if limit, ok := d.limit.Get(); ok {
		fmt.Fprintf(&b, ", of %s %s.", d.amount(float64(limit)), d.source)
		if left := d.leftText(); left != "" {
			fmt.Fprintf(&b, " At this pace that is reached in %s (%s).", left, mem.Estimated)
		}
	} else {
		b.WriteString(". The limit is not known.")
	}
	if d.gone {
		b.WriteString(" The program ended as there was nothing left of it.")
	}
	return b.String()
}

// leftText is "about 220 steps"; "" where that is not known.
func (d *deadline) leftText() string {
	if d.gone || math.IsInf(d.left, 0) {
		return ""
	}
	about := "about "
	if d.others {
		about = "at most "
	}
	if d.minutes {
		return about + report.Duration(int64(d.left*60e9))
	}
	if d.left < 2 {
		return about + report.Counted(int64(math.Ceil(d.left)), "step")
	}
	return about + report.About(d.left) + " steps"
}

// firstClause says what ends the program first, where that is not memory.
func (in *Input) firstClause() string {
	d := in.first
	if d == nil || d.memory || !in.soon(d) {
		return ""
	}
	if d.gone {
		return fmt.Sprintf("it ran out of %s: %s %s", d.name, d.amount(float64(d.limit.Or(0))), d.source)
	}
	return fmt.Sprintf("%s %s out first, in %s (%s): %s %s, and %s more per %s (%s)", d.name, d.verb("run"),
		d.leftText(), mem.Estimated, d.share(), d.source, d.amount(d.slope), d.per(), mem.Measured)
}

// verb is what a supply does: open files grow, address space grows.
func (d *deadline) verb(plural string) string {
	if d.use.Unit == mem.UnitBytes {
		return plural + "s"
	}
	return plural
}

// descriptors is the most frequent kind of a process's open descriptors, when they were looked at last.
func (in *Input) descriptors(process uint32) (kind string, count int64) {
	for _, e := range in.Run.Events {
		if e.Process != process || e.Kind != mem.EventDescriptors {
			continue
		}
		kind, count = e.Facts["1"], e.Numbers["1"]
	}
	return kind, count
}

// descriptorName is a kind for people.
func descriptorName(kind string) string {
	switch {
	case kind == "socket", kind == "pipe":
		return kind + "s"
	case strings.HasPrefix(kind, "/"):
		return "files " + kind
	}
	return kind
}

func descriptorAdvice(kind string) string {
	switch {
	case strings.HasPrefix(kind, "/dev/shm/"+frameworks.SharedPrefix):
		return "Each tensor that another process sent, as a loader's worker does, holds a file of shared memory open " +
			"while it is kept: keep a clone() of it, or " + frameworks.ShareFiles + "."
	case strings.HasPrefix(kind, "/dev/shm/") && strings.HasSuffix(kind, "(deleted)"):
		return "A file of shared memory that was removed keeps its memory while it is open: close it when it is no " +
			"longer needed."
	case kind == "socket":
		return "Close each connection, or use one session or pool for all requests."
	case kind == "pipe":
		return "Wait for each child process and close its pipes, as `with subprocess.Popen(…)` does, and use one pool of " +
			"workers for all."
	}
	return "Close each file after use, as `with open(…)` does."
}

// descriptorTypes are Python's types whose objects hold a descriptor.
var descriptorTypes = []string{"TextIOWrapper", "BufferedReader", "BufferedWriter", "BufferedRandom", "FileIO",
	"_TemporaryFileWrapper", "socket", "SSLSocket",
	"Popen", "Connection", "mmap", "memmap", "SharedMemory", "ZipFile", "TarFile", "GzipFile", "File", "h5py.File"}

// keeperOf is the container that gains what holds descriptors, as fast as these grow; nil where none was seen.
func (in *Input) keeperOf(d *deadline) *mem.Holder {
	holders := in.grown.HoldersOf(d.process)
	for i := range holders {
		h := &holders[i]
		if slices.Contains(descriptorTypes, h.Contains) && h.PerStep < 2*d.slope && h.PerStep > d.slope/4 {
			return h
		}
	}
	return nil
}
