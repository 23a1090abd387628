package imagine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"hightide/internal/analyze/imagined"
	"hightide/internal/event"
	"hightide/internal/gpus"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// everyGPU judges every GPU of the catalogue. Kernels, workspaces and scratch depend on the compute
// capability and the number of multiprocessors. So there is a run for each such pair, on the GPU of
// it with most memory. The smaller ones take the same steps as long as those fit into their memory. Where
// they are short of it, the allocator's history of that run is replayed with less; where it cannot be
// replayed exactly, they get a run of their own.
func (s *Session) everyGPU(ctx context.Context, t trial, main *Result) []mem.GPUVerdict {
	t.traced = true
	usable := s.usableBy(main)
	groups := map[string][]gpus.GPU{}
	var verdicts []mem.GPUVerdict
	for _, g := range s.chosen {
		if why := usable(&g); why != "" {
			verdicts = append(verdicts, mem.GPUVerdict{GPU: g.Slug, GPUName: g.Name, Compute: g.Compute, SMs: g.SMs,
				Verdict: mem.VerdictNone,
				Total:   g.Total, Context: g.Overhead, Price: g.Price, Note: why})
			continue
		}
		key := kernelsOf(&g, main)
		groups[key] = append(groups[key], g)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b gpus.GPU) int { return cmp.Compare(b.Total, a.Total) })
	}
	known := map[string]*Result{t.gpu.Slug: main}
	s.done, s.all = 0, 0
	for ctx.Err() == nil {
		var open []gpus.GPU
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			if _, next := walk(groups[key], known); next != nil {
				open = append(open, *next)
			}
		}
		if len(open) == 0 {
			break
		}
		s.runOn(ctx, t, open, known)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		found, _ := walk(groups[key], known)
		verdicts = append(verdicts, found...)
	}
	slices.SortStableFunc(verdicts, compareVerdicts)
	return verdicts
}

// kernelsOf tells GPUs apart on which a program may run other kernels. XLA decides by a GPU's speed and its L2 cache, too,
// what it fuses and what it computes again; its frameworks are those that set a limit.
func kernelsOf(g *gpus.GPU, main *Result) string {
	key := g.Compute + " " + strconv.Itoa(g.SMs)
	if main.Limit.Known() {
		key += fmt.Sprintf(" %d %g %g", g.L2, g.Clock, g.Bandwidth)
	}
	return key
}

// walk judges GPUs that differ in their memory only, largest first, by the runs that there are; next is
// the first that needs one of its own.
func walk(group []gpus.GPU, known map[string]*Result) (verdicts []mem.GPUVerdict, next *gpus.GPU) {
	var last *Result // the run on the next larger one
	for i := range group {
		g := &group[i]
		if result := known[g.Slug]; result != nil {
			last = result
			verdicts = append(verdicts, priced(result.noted(), g))
			continue
		}
		if last == nil {
			return verdicts, g
		}
		v, ok := follows(last, g)
		if !ok {
			return verdicts, g
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// runOn runs the program on each of these GPUs: from one start where it can be forked, else one by one.
func (s *Session) runOn(ctx context.Context, t trial, list []gpus.GPU, known map[string]*Result) {
	s.lock.Lock()
	s.all += len(list)
	s.lock.Unlock()
	trials := make([]trial, len(list))
	for i, g := range list {
		trials[i] = t
		trials[i].gpu = g
	}
	if !s.unforkable && len(s.alike(trials)) > 0 { // which says nothing more until all of them have ended
		s.Base.Events.Tell(event.Progress{Done: s.done, All: s.all, Text: "the program runs once more, forked for each GPU"})
	}
	copied := s.copies(ctx, trials)
	var lock sync.Mutex
	var jobs []func()
	for i, g := range list {
		if copied[i] != nil {
			known[g.Slug] = copied[i]
			s.advance("%s: %s", g.Slug, copied[i].Verdict)
			continue
		}
		jobs = append(jobs, func() {
			result, err := s.attempt(ctx, trials[i])
			if err != nil {
				result = &Result{Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFailed, Total: g.Total,
					Label: mem.Imagined}}, Said: "not run: " + err.Error()}
			}
			if ctx.Err() != nil {
				return // interrupted: that says nothing about the GPU
			}
			s.advance("%s: %s", g.Slug, result.Verdict)
			lock.Lock()
			defer lock.Unlock()
			known[g.Slug] = result
		})
	}
	s.atOnce(jobs)
}

// noted is the verdict with, for a failure, what the program said last.
func (r *Result) noted() mem.GPUVerdict {
	v := r.GPUVerdict
	switch {
	case v.Verdict == mem.VerdictFailed && r.Serving != nil && r.How != "":
		v.Note = shortened(r.How, 300)
	case v.Verdict == mem.VerdictFailed:
		v.Note = fmt.Sprintf("exit code %d", r.Outcome.ExitCode.Or(0))
		if signal, ok := r.Outcome.Signal.Get(); ok {
			v.Note = "ended by " + system.SignalName(syscall.Signal(signal))
		}
		if r.Said != "" {
			v.Note += ", its last words: " + shortened(r.Said, 120)
		}
	case v.Verdict == mem.VerdictOOM && r.Serving != nil:
		v.Note = imagined.While(r.Serving)
	case v.Verdict == mem.VerdictOOM:
		if step, ok := r.FailedStep.Get(); ok {
			v.Note = fmt.Sprintf("in step %d", step+1)
		}
	}
	return v
}

func shortened(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// follows says what a run on a larger GPU of the same kind tells about a smaller one. It is the same where
// it never came near the smaller one's memory. Where it did, it is what its history comes to with so much. And it is
// out of memory where the larger one ran out. The result ok is false where only a run can tell.
func follows(larger *Result, g *gpus.GPU) (v mem.GPUVerdict, ok bool) {
	v = priced(larger.GPUVerdict, g)
	v.Total, v.Context, v.Note = g.Total, g.Overhead, ""
	without := func(label mem.Label, headroom mem.Optional, note string, args ...any) (mem.GPUVerdict, bool) {
		v.Verdict, v.Label, v.Headroom, v.Note = mem.VerdictOOM, label, headroom, "not run: "+fmt.Sprintf(note, args...)
		v.Used, v.Allocated, v.Reserved = mem.Optional{}, mem.Optional{}, mem.Optional{}
		return v, true
	}
	if larger.Serving != nil || larger.Limit.Known() {
		return v, false // it takes a share of whatever the GPU has
	}
	if larger.Verdict == mem.VerdictOOM {
		return without(mem.Estimated, v.Headroom, "%s has more and ran out", larger.GPU)
	}
	if !larger.Fits() || slices.ContainsFunc(larger.Devices, func(d mem.ImaginedDevice) bool { return d.Failed > 0 }) {
		return v, false // it was short of memory already, and went on with less
	}
	processes := mem.Bytes(max(1, len(larger.Ranks)/max(1, len(larger.Devices))))
	used := mem.Bytes(larger.Used.Or(0)) + processes*(g.Overhead-larger.Context)
	if tensors := mem.Bytes(larger.Allocated.Or(0)) + g.Overhead; tensors > g.Total && len(larger.Ranks) < 2 {
		return without(mem.Estimated, mem.Some(int64(g.Total-tensors)), "the same steps on %s take %v in tensors alone",
			larger.GPU, mem.Bytes(larger.Allocated.Or(0)))
	}
	if used > g.Total {
		trace := larger.trace()
		if trace == nil {
			return v, false
		}
		beside := used - mem.Bytes(larger.Reserved.Or(0)) // context and libraries
		replayed, err := trace.Verdict(g.Total, g.Total-beside, "")
		switch {
		case err != nil || g.Total <= beside || replayed.Depends:
			return v, false
		case !replayed.Fits:
			return without(mem.Replayed, mem.Optional{}, "the steps on %s ask for %v when %v are reserved", larger.GPU,
				replayed.OOM.Size, replayed.OOM.Reserved)
		}
		used = beside + replayed.Reserved
		v.Label, v.Reserved, v.Note = mem.Replayed, mem.Some(int64(replayed.Reserved)),
			fmt.Sprintf("not run: the steps on %s fit, but the cache is emptied %s", larger.GPU, report.Times(replayed.Retries))
	}
	v.Used, v.Headroom = mem.Some(int64(used)), mem.Some(int64(g.Total-used))
	v.Verdict = mem.VerdictFits
	if g.Total-used < g.Tight() {
		v.Verdict = mem.VerdictTight
	}
	return v, true
}

// compareVerdicts: what fits, cheapest first; then what is tight; then the others by memory; then what
// cannot be used.
func compareVerdicts(a, b mem.GPUVerdict) int {
	order := []mem.Verdict{mem.VerdictFits, mem.VerdictTight, mem.VerdictConditional, mem.VerdictFew, mem.VerdictOOM,
		mem.VerdictFailed,
		mem.VerdictUnused, mem.VerdictNone}
	cost := func(v mem.GPUVerdict) float64 {
		if v.Price <= 0 {
			return 1e9
		}
		return v.Price
	}
	if c := cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)); c != 0 {
		return c
	}
	if a.Fits() {
		return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(a.Total, b.Total), cmp.Compare(a.GPU, b.GPU))
	}
	return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.GPU, b.GPU))
}

// usableBy says of a GPU why the program's framework cannot use it, "" where it can.
func (s *Session) usableBy(main *Result) func(*gpus.GPU) string {
	built := main.Built()
	built.CUDA = cmp.Or(built.CUDA, s.Python.CUDA)
	return func(g *gpus.GPU) string { return lacks(built, g) }
}

// Built is what the program's framework was built with.
type Built = imagined.Built

// OfItsOwn says whether a program failed for a reason of its own, not by a signal from outside.
func OfItsOwn(v *report.Imagined) bool { return imagined.OfItsOwn(v) }

// Built is what the run's framework was built with.
func (r *Result) Built() Built { return imagined.BuiltWith(r.run) }

// Others estimates what other GPUs leave for a program that was seen on one. They take as much but for what a process
// takes beside the allocator; workspaces may differ with the compute capability. Where memory is short the allocator
// gives back what it keeps beside the tensors, so where only that lacks room nothing is said.
func Others(list []gpus.GPU, built Built, own *mem.GPUVerdict, processes int) []mem.GPUVerdict {
	var all []mem.GPUVerdict
	for i := range list {
		g := &list[i]
		if g.Slug == own.GPU {
			continue
		}
		v := mem.GPUVerdict{GPU: g.Slug, GPUName: g.Name, Compute: g.Compute, SMs: g.SMs, Verdict: mem.VerdictNone,
			Total: g.Total, Context: g.Overhead, Price: g.Price, Label: mem.Estimated}
		beside := mem.Bytes(processes) * (g.Overhead - own.Context)
		used, room := mem.Bytes(own.Used.Or(0))+beside, g.Total-mem.Bytes(own.Used.Or(0))-beside
		tensors := used - mem.Bytes(own.Reserved.Or(0)-own.Allocated.Or(0))
		switch v.Note = lacks(built, g); {
		case v.Note != "":
		case !own.Fits() || !own.Used.Known() || !own.Reserved.Known() || !own.Allocated.Known():
			continue
		case tensors > g.Total:
			v.Verdict, v.Headroom = mem.VerdictOOM, mem.Some(int64(g.Total-tensors))
			v.Note = fmt.Sprintf("its tensors alone take %v", mem.Bytes(own.Allocated.Or(0)))
		case room < 0:
			v.Note = "only a run can tell: there is room for its tensors, not for what the allocator kept beside them"
		default:
			v.Used, v.Headroom, v.Verdict = mem.Some(int64(used)), mem.Some(int64(room)), own.Verdict
			if own.Verdict != mem.VerdictConditional {
				v.Verdict = mem.VerdictFits
				if room < g.Tight() {
					v.Verdict = mem.VerdictTight
				}
			}
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, compareVerdicts)
	return all
}

func lacks(built Built, g *gpus.GPU) string {
	major, minor, ok := g.Capability()
	if !ok || !g.CUDA() {
		return "not with a CUDA build"
	}
	return built.Lacks(major, minor)
}

// several says whether more than one GPU was asked for.
func (o *Options) several() bool { return o.GPU == AllGPUs || strings.Contains(o.GPU, ",") }

// choose are the GPUs that were asked for.
func (s *Session) choose() (chosen []gpus.GPU, err error) {
	if s.GPU == AllGPUs {
		return s.catalogue.Common(), nil
	}
	for name := range strings.SplitSeq(s.GPU, ",") {
		g, err := s.catalogue.Imaginable(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(chosen, func(c gpus.GPU) bool { return c.Slug == g.Slug }) {
			chosen = append(chosen, *g)
		}
	}
	return chosen, nil
}

// serveUsers starts a server on one GPU after the other, the cheapest first, until one serves as many users as were
// asked for, and records that start alone; where none does, the one that came nearest. The verdicts are of all GPUs:
// what was excluded is told with why.
func (s *Session) serveUsers(ctx context.Context, to observe.Sink) (*served, []mem.GPUVerdict, error) {
	var nearest *served
	var verdicts []mem.GPUVerdict
	usable := func(*gpus.GPU) string { return "" } // the first start tells
	list := s.inPrice()
	s.done, s.all = 0, len(list)
	for i := range list {
		g := &list[i]
		if nearest != nil && ctx.Err() != nil {
			break // interrupted: that says nothing about the GPU
		}
		if why := usable(g); why != "" {
			verdicts = append(verdicts, notStarted(g, mem.VerdictNone, why))
			s.advance("%s: %s", g.Slug, mem.VerdictNone)
			continue
		}
		s.Base.Events.Tell(event.Progress{Done: s.done, All: s.all, Text: "starts on " + g.Slug})
		start := &served{trial: s.first}
		start.trial.gpu = *g
		var err error
		if start.Result, err = s.record(ctx, &start.trial, start); err != nil {
			return nil, nil, err
		}
		if err := s.usable(start.Result); err != nil {
			return start, nil, err
		}
		usable = s.usableBy(start.Result)
		v := priced(start.noted(), g)
		s.advance("%s: %s", g.Slug, v.Verdict)
		verdicts = append(verdicts, v)
		again := nearest != nil && start.Verdict == mem.VerdictFailed && nearest.How == start.How
		if nearest == nil || start.nearer(nearest) {
			nearest = start
		}
		if v.Fits() || again { // what failed twice alike does not lie in the GPU
			break
		}
	}
	for i := range s.chosen {
		if g := &s.chosen[i]; s.Excluded[g.Slug] != "" && g.Slug != nearest.trial.gpu.Slug {
			verdicts = append(verdicts, notStarted(g, excludedAs(s.Excluded[g.Slug]), s.Excluded[g.Slug]))
		}
	}
	slices.SortStableFunc(verdicts, compareVerdicts)
	return nearest, verdicts, nearest.give(to)
}

// excludedAs is the verdict on a GPU that was excluded: its memory is too small, or the engine does not run on it.
func excludedAs(why string) mem.Verdict {
	if strings.HasPrefix(why, "weights ") {
		return mem.VerdictOOM
	}
	return mem.VerdictNone
}

// served is a start of a server, with what it would record.
type served struct {
	*Result
	trial  trial
	frames []mem.Frame
}

// Write implements observe.Sink.
func (s *served) Write(f mem.Frame) error {
	s.frames = append(s.frames, f)
	return nil
}

// Flush implements observe.Sink.
func (s *served) Flush() error { return nil }

// give records the start.
func (s *served) give(to observe.Sink) error {
	for _, f := range s.frames {
		if err := to.Write(f); err != nil {
			return err
		}
	}
	s.frames = nil
	return to.Flush()
}

// nearer says whether a start came nearer to serving the users than another.
func (s *served) nearer(other *served) bool {
	order := func(r *served) int {
		return slices.Index([]mem.Verdict{mem.VerdictFailed, mem.VerdictOOM, mem.VerdictFew, mem.VerdictConditional,
			mem.VerdictTight, mem.VerdictFits}, r.Verdict)
	}
	return cmp.Or(cmp.Compare(order(s), order(other)), cmp.Compare(s.Users.Or(0), other.Users.Or(0)),
		cmp.Compare(s.Total, other.Total)) > 0
}

// inPrice are the GPUs on which a server is started, the cheapest first; of those whose price is not known the smallest.
// Where none can be enough it is the largest alone, whose start says what lacks.
func (s *Session) inPrice() []gpus.GPU {
	list := slices.DeleteFunc(slices.Clone(s.chosen), func(g gpus.GPU) bool { return s.Excluded[g.Slug] != "" || !g.CUDA() })
	if len(list) == 0 {
		return []gpus.GPU{s.largest()}
	}
	slices.SortStableFunc(list, func(a, b gpus.GPU) int {
		if (a.Price > 0) != (b.Price > 0) {
			return cmp.Compare(b.Price, a.Price)
		}
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Total, b.Total))
	})
	return list
}

// notStarted is the verdict on a GPU on which nothing ran.
func notStarted(g *gpus.GPU, verdict mem.Verdict, why string) mem.GPUVerdict {
	return priced(mem.GPUVerdict{Verdict: verdict, Total: g.Total, Context: g.Overhead, Label: mem.Estimated,
		Note: "not run: " + why}, g)
}

// givenLength gives the engine the length that was asked for, where the program gives it none: that of the model may
// be more than there is memory for.
func (s *Session) givenLength() string {
	if s.Tokens == 0 {
		return ""
	}
	return fmt.Sprintf("%smax_model_len?=%d", engineSwitch, s.Tokens)
}

// atOnce runs jobs side by side, as many as processors and memory allow. Jobs that have not begun when
// the run is interrupted do not begin.
func (s *Session) atOnce(jobs []func()) {
	workers := s.workers(len(jobs))
	defer s.Base.Runtime.TuneTo(launch.Trials)()
	next := make(chan func())
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	group.Wait()
}

// workers is how many processes run side by side.
func (s *Session) workers(jobs int) int { return Workers(jobs) }

// Workers is how many of some runs this machine makes side by side now.
func Workers(jobs int) int {
	return max(1, min(runtime.NumCPU(), 8, int(freeMemory()/trialMemory), jobs))
}

// trialMemory is what a process that imagines a training takes on the host, with room.
const trialMemory = 2 * mem.GiB

// freeMemory is what the host says is free; plenty where it does not say.
func freeMemory() mem.Bytes { return mem.Bytes(sampler.Free("/").Or(int64(64 * mem.GiB))) }
