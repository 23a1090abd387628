package imagine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/analyze/imagined"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// expandable is the allocator setting that most often helps.
const expandable = "expandable_segments:True"

// plenty is the memory of a GPU on which nothing runs out.
const plenty = 1 * mem.TiB

// suggest tries what could make a program fit that does not, and returns what came of each.
func (s *Session) suggest(ctx context.Context, t trial, main *Result) []mem.Try {
	used := frameworkOf(main)
	roomy := t
	roomy.gpu.Total, roomy.gpu.Lowest = plenty, 0
	roomy.env = mergeEnv(t.env, used.AsNeeded)
	first := append([]attempt{{mem.TryMemory, t.gpu.Name + " with all the memory it wants", roomy}},
		s.changes(used, t, main)...)
	tries := s.tryAll(ctx, first)
	var second []attempt
	if i := slices.IndexFunc(tries, func(t mem.Try) bool { return t.Kind == mem.TryMemory && t.Fits() }); i >= 0 {
		need := &tries[i]
		takes, available, share := need.Used.Or(0), int64(t.gpu.Total), 1.0
		if limit, ok := main.Limit.Get(); ok { // of what it has taken it does not need all
			takes -= need.Reserved.Or(0) - need.Allocated.Or(0)
			available = limit + main.Used.Or(0) - main.Reserved.Or(0)
			share = float64(limit) / float64(main.Total)
		}
		if takes > available || !main.OwnLimit.Known() { // a larger device is no cure for a limit of its own
			second = s.otherGPUs(t, mem.Bytes(takes), share)
		}
		need.Total, need.Used, need.Headroom = t.gpu.Total, mem.Some(takes), mem.Some(available-takes) // negative: what lacks
	}
	tries = append(tries, s.tryAll(ctx, second)...)
	tries = append(tries, s.smallerBatch(ctx, t)...)
	sortTries(tries)
	return tries
}

// sortTries puts what fits first.
func sortTries(tries []mem.Try) {
	rank := func(t mem.Try) int {
		switch {
		case t.Kind == mem.TryMemory:
			return 2 // what it would take: no advice
		case t.Fits():
			return 0
		}
		return 1
	}
	slices.SortStableFunc(tries, func(a, b mem.Try) int { return cmp.Compare(rank(a), rank(b)) })
}

// frameworkOf is the framework that took the memory: the one that limits it, else the first of those that can be
// imagined.
func frameworkOf(r *Result) *frameworks.Framework {
	found := &frameworks.Framework{}
	for _, f := range frameworks.All() {
		if f.Imagined == nil || !slices.ContainsFunc(r.run.Processes, func(p *mem.Process) bool { return p.Frameworks[f.Name] != "" }) {
			continue
		}
		if found.Name == "" || f.Title == r.LimitBy {
			found = f
		}
	}
	return found
}

// changes are what a framework knows that may make the program fit.
func (s *Session) changes(f *frameworks.Framework, t trial, main *Result) (list []attempt) {
	if f.Changes == nil {
		return nil
	}
	return s.changed(t, f.Changes(frameworks.Situation{Run: main.run, Total: t.gpu.Total, Limit: main.Limit,
		Beside: mem.Bytes(main.Used.Or(0) - main.Reserved.Or(0))}))
}

// changed are the trials with one of these each.
func (s *Session) changed(t trial, changes []frameworks.Change) (list []attempt) {
	setting := AllocatorSetting(launch.With(s.Base.Env, t.env))
	for _, change := range changes {
		again := t
		if change.Setting != "" {
			if strings.Contains(setting, change.Setting) {
				continue
			}
			again = s.allocator(t, setting)
		}
		again.env, again.told = mergeEnv(again.env, change.Env), change.Agent
		again.says = change.Says
		if change.Switch != "" {
			again.switches = append(slices.Clone(t.switches), change.Switch)
		}
		list = append(list, attempt{change.Kind, change.What, again})
	}
	return list
}

// attempt is a trial with a name.
type attempt struct {
	kind, what string
	trial      trial
}

// allocator is a trial with expandable segments beside what is set.
func (s *Session) allocator(t trial, setting string) trial {
	if setting != "" {
		return s.setting(t, setting+","+expandable)
	}
	return s.setting(t, expandable)
}

// setting is a trial with other settings of the allocator.
func (s *Session) setting(t trial, value string) trial {
	again := t
	again.env = mergeEnv(t.env, map[string]string{allocator.Variable: value})
	return again
}

// tryAll runs attempts side by side and returns them in order. One whose switch the program does not offer is
// left out. Those that are alike up to the program's first use of CUDA come from one start (copies.go).
func (s *Session) tryAll(ctx context.Context, list []attempt) []mem.Try {
	results := make([]*mem.Try, len(list))
	trials := make([]trial, len(list))
	for i := range list {
		trials[i] = list[i].trial
	}
	s.lock.Lock()
	s.all += len(list)
	s.lock.Unlock()
	copied := s.copies(ctx, trials)
	jobs := make([]func(), len(list))
	for i, a := range list {
		jobs[i] = func() {
			if ctx.Err() != nil {
				return
			}
			result, err := copied[i], error(nil)
			if result == nil {
				result, err = s.attempt(ctx, a.trial)
			}
			if err != nil || ctx.Err() != nil {
				return
			}
			if len(a.trial.switches) > 0 && !result.switched(a.kind) {
				s.advance("%s: cannot be switched on", a.what)
				results[i] = a.notTaken(result)
				return
			}
			try := mem.Try{Kind: a.kind, What: a.said(result), GPUVerdict: priced(result.noted(), &a.trial.gpu)}
			if a.trial.atMost > 0 && result.StoppedFor == report.StoppedForDuration {
				try.Verdict, try.Note = mem.VerdictNone, "after "+a.trial.atMost.Round(time.Second).String()
			}
			if !slices.Equal(a.trial.command, s.Base.Command) && len(s.play) == 0 {
				try.Command = mem.CommandLine(mem.MaskArgs(a.trial.command))
			}
			s.advance("%s: %s", try.What, try.Verdict)
			results[i] = &try
		}
	}
	s.atOnce(jobs)
	var tries []mem.Try
	for _, try := range results {
		if try != nil {
			tries = append(tries, *try)
		}
	}
	return tries
}

// said is the attempt in words.
func (a attempt) said(result *Result) string {
	if a.trial.says {
		for _, s := range result.run.Imagined.Switches {
			if s.Name == a.kind && s.Applied {
				return a.what + " " + s.Text
			}
		}
	}
	return a.what
}

// notTaken tells of a kernel of attention that PyTorch passed over although the others were switched off. Nil for
// what the agent could not switch on: the program does not offer it, and nobody asked for it.
func (a attempt) notTaken(result *Result) *mem.Try {
	if !strings.HasPrefix(a.kind, attentionSwitch) {
		return nil
	}
	v := mem.GPUVerdict{Verdict: mem.VerdictNone, Total: result.Total, Label: mem.Imagined}
	taken := cmp.Or(result.Conditions["attention"], "another kernel")
	return &mem.Try{Kind: a.kind, What: a.what + " (PyTorch takes " + taken + ")", GPUVerdict: priced(v, &a.trial.gpu)}
}

// attentionSwitch begins the name of a switch that asks for a kernel of attention.
const attentionSwitch = "attention:"

// attentionKernels are the ways that scaled_dot_product_attention can be computed.
var attentionKernels = []string{"math", "efficient", "flash", "cudnn"}

// attends says whether the program computed attention in one of these ways.
func (r *Result) attends() bool {
	return slices.ContainsFunc(attentionKernels, r.called)
}

// called says whether a process called a kernel of attention.
func (r *Result) called(kernel string) bool {
	return slices.ContainsFunc(r.run.Imagined.Conditions,
		func(c mem.Condition) bool { return slices.Contains(c.Kernels, kernel) })
}

// switched says whether the agent could throw a switch, and a kernel of attention was really taken.
func (r *Result) switched(name string) bool {
	if kernel, ok := strings.CutPrefix(name, attentionSwitch); ok && !r.called(kernel) {
		return false
	}
	return slices.ContainsFunc(r.run.Imagined.Switches, func(s mem.Switch) bool { return s.Name == name && s.Applied })
}

// otherGPUs are the cheapest GPU and the smallest one that have what the program takes, of the share of a device that
// its framework's allocator may take.
func (s *Session) otherGPUs(t trial, need mem.Bytes, share float64) []attempt {
	var fitting []gpus.GPU
	room := func(g *gpus.GPU) mem.Bytes {
		return min(g.Total-g.Overhead, mem.Bytes(share*float64(g.Total))) - g.Tight()
	}
	for _, g := range s.catalogue.Common() {
		if major, _, ok := g.Capability(); ok && major >= 7 && g.CUDA() && g.Total > t.gpu.Total &&
			need-t.gpu.Overhead <= room(&g) && (imagined.Built{CUDA: s.Python.CUDA}).Knows(major, 5) {
			fitting = append(fitting, g)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	cheapest := slices.MinFunc(fitting, func(a, b gpus.GPU) int {
		price := func(g gpus.GPU) float64 {
			if g.Price <= 0 {
				return 1e9
			}
			return g.Price
		}
		return cmp.Or(cmp.Compare(price(a), price(b)), cmp.Compare(a.Total, b.Total))
	})
	smallest := slices.MinFunc(fitting, func(a, b gpus.GPU) int { return cmp.Compare(a.Total, b.Total) })
	var list []attempt
	for i, g := range []gpus.GPU{cheapest, smallest} {
		if i == 1 && g.Slug == cheapest.Slug {
			break
		}
		again := t
		again.gpu = g
		what := "on " + g.Slug
		if g.Price > 0 {
			what += fmt.Sprintf(" ($%.2f an hour)", g.Price)
		}
		list = append(list, attempt{mem.TryGPU, what, again})
	}
	return list
}

// smallerBatch halves the batch until it fits, where the command says it.
func (s *Session) smallerBatch(ctx context.Context, t trial) []mem.Try {
	flag, ok := findBatch(t.command)
	if !ok {
		return nil
	}
	var tries []mem.Try
	for size := flag.size / 2; size >= 1 && len(tries) < 8 && ctx.Err() == nil; size /= 2 {
		again := t
		again.command = flag.with(t.command, size)
		found := s.tryAll(ctx, []attempt{{"batch", fmt.Sprintf("batch %d instead of %d", size, flag.size), again}})
		tries = append(tries, found...)
		if len(found) == 0 || found[0].Verdict != mem.VerdictOOM {
			break
		}
	}
	return tries
}

// vary runs the program under the conditions that change the answer most.
func (s *Session) vary(ctx context.Context, t trial, main *Result) []mem.Try {
	if used := frameworkOf(main); used.Vary != nil {
		return s.tryAll(ctx, s.changed(t, used.Vary))
	}
	var list []attempt
	setting := AllocatorSetting(launch.With(s.Base.Env, t.env))
	if strings.Contains(setting, expandable) {
		without := s.setting(t, strings.ReplaceAll(setting, expandable, "expandable_segments:False"))
		list = append(list, attempt{"allocator", "without expandable segments", without})
	} else {
		list = append(list, attempt{"allocator", "expandable segments", s.allocator(t, setting)})
	}
	if len(main.Policies) > 0 {
		for _, size := range []string{"upper", "0.5", "zero"} {
			if size != s.Sizes {
				again := t
				again.sizes = size
				list = append(list, attempt{"sizes", "data-dependent sizes: " + size, again})
			}
		}
	}
	for _, other := range []struct{ what, setting string }{{"blocks above 128 MiB are never split",
		"max_split_size_mb:128"}, {"cudaMallocAsync for an allocator", "backend:cudaMallocAsync"}} {
		if setting == "" {
			list = append(list, attempt{"allocator", other.what, s.setting(t, other.setting)})
		}
	}
	behind := t
	behind.lag = true
	list = append(list, attempt{"lag", "a GPU that is always behind the host", behind})
	for _, backend := range attentionKernels {
		if !main.attends() || main.Conditions["attention"] == backend {
			continue
		}
		again := t
		again.switches = append(slices.Clone(t.switches), attentionSwitch+backend)
		list = append(list, attempt{attentionSwitch + backend, backend + " attention", again})
	}
	tries := s.tryAll(ctx, list)
	return append(tries, s.compileCaches(ctx, t, main)...)
}

// compileCaches runs a compiled program with empty caches of the compiler, and again with what that
// run left in them.
func (s *Session) compileCaches(ctx context.Context, t trial, main *Result) []mem.Try {
	if main.Conditions["compile cache"] == "" {
		return nil
	}
	again, drop, err := t.withEmptyCaches()
	if err != nil {
		return nil
	}
	defer drop()
	tries := s.tryAll(ctx, []attempt{{"compile", "cold compile caches", again}})
	return append(tries, s.tryAll(ctx, []attempt{{"compile", "warm compile caches", again}})...)
}

// withEmptyCaches is the trial with caches of the compiler that are empty when it first runs; drop removes them.
func (t trial) withEmptyCaches() (with trial, drop func(), err error) {
	dir, err := os.MkdirTemp("", "hightide-compile-")
	if err != nil {
		return t, nil, err
	}
	t.env = mergeEnv(t.env, map[string]string{"TORCHINDUCTOR_CACHE_DIR": dir, "TRITON_CACHE_DIR": dir + "/triton"})
	return t, func() { os.RemoveAll(dir) }, nil
}
