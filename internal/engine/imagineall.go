package engine

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"hightide/internal/analyze"
	"hightide/internal/gpus"
	"hightide/internal/mem"

	"golang.org/x/sys/unix"
)

// everyGPU judges every GPU of the catalogue. Kernels, workspaces and scratch depend on the compute
// capability and the number of multiprocessors, so there is a run for each such pair, on the GPU of
// it with most memory; the smaller ones take the same steps as long as those fit into their memory,
// and get a run of their own where they do not.
func (s *session) everyGPU(t trial, main *trialResult) []analyze.GPUVerdict {
	usable := s.usableBy(main)
	groups := map[string][]gpus.GPU{}
	var verdicts []analyze.GPUVerdict
	for i := range s.catalogue.GPUs {
		g := s.catalogue.GPUs[i]
		if why := usable(&g); why != "" {
			verdicts = append(verdicts, analyze.GPUVerdict{GPU: g.Slug, GPUName: g.Name, Compute: g.Compute, SMs: g.SMs, Verdict: analyze.VerdictNone,
				Total: g.Total, Context: g.Overhead, Price: g.Price, Note: why})
			continue
		}
		key := g.Compute + " " + strconv.Itoa(g.SMs)
		groups[key] = append(groups[key], g)
	}
	var lock sync.Mutex
	s.done, s.all = 0, len(groups)
	var jobs []func()
	for _, key := range sortedKeys(groups) {
		group := groups[key]
		slices.SortStableFunc(group, func(a, b gpus.GPU) int { return cmp.Compare(b.Total, a.Total) })
		jobs = append(jobs, func() {
			found := s.group(t, main, group)
			if s.ctx.Err() != nil {
				return
			}
			s.advance("%s: %s", found[0].GPU, found[0].Verdict)
			lock.Lock()
			defer lock.Unlock()
			verdicts = append(verdicts, found...)
		})
	}
	s.atOnce(jobs)
	slices.SortStableFunc(verdicts, compareVerdicts)
	return verdicts
}

// group judges GPUs that differ in their memory only, largest first.
func (s *session) group(t trial, main *trialResult, group []gpus.GPU) []analyze.GPUVerdict {
	var verdicts []analyze.GPUVerdict
	var last *trialResult // the run on the next larger one
	for i := range group {
		if s.ctx.Err() != nil {
			break
		}
		g := &group[i]
		if last != nil {
			if v, ok := follows(last, g); ok {
				verdicts = append(verdicts, v)
				continue
			}
		}
		if g.Slug == t.gpu.Slug {
			last = main
		} else {
			again := t
			again.gpu = *g
			result, err := s.attempt(again)
			if err != nil {
				verdicts = append(verdicts, analyze.GPUVerdict{GPU: g.Slug, GPUName: g.Name, Verdict: analyze.VerdictFailed, Total: g.Total, Label: mem.Imagined, Price: g.Price, Note: "not run: " + err.Error()})
				continue
			}
			last = result
		}
		verdicts = append(verdicts, priced(last.noted(), g))
	}
	return verdicts
}

// noted is the verdict with, for a failure, what the program said last.
func (r *trialResult) noted() analyze.GPUVerdict {
	v := r.GPUVerdict
	switch {
	case v.Verdict == analyze.VerdictFailed:
		v.Note = fmt.Sprintf("exit code %d", r.outcome.ExitCode.Or(0))
		if signal, ok := r.outcome.Signal.Get(); ok {
			v.Note = "ended by " + unix.SignalName(syscall.Signal(signal))
		}
		if r.said != "" {
			v.Note += ", last said: " + shortened(r.said, 120)
		}
	case v.Verdict == analyze.VerdictOOM:
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

// follows says what a run on a larger GPU of the same kind tells about a smaller one: the same where
// it never came near the smaller one's memory; out of memory where the larger one ran out. ok is false
// where only a run can tell.
func follows(larger *trialResult, g *gpus.GPU) (analyze.GPUVerdict, bool) {
	v := priced(larger.GPUVerdict, g)
	v.Total, v.Context, v.Note = g.Total, g.Overhead, ""
	switch larger.Verdict {
	case analyze.VerdictOOM:
		v.Label, v.Note, v.Used, v.Allocated, v.Reserved = mem.Estimated, "not run: "+larger.GPU+" has more and ran out", mem.Optional{}, mem.Optional{}, mem.Optional{}
		return v, true
	case analyze.VerdictFits, analyze.VerdictTight:
		for _, d := range larger.Devices {
			if d.Failed > 0 {
				return v, false // it was short of memory already, and went on with less
			}
		}
		processes := mem.Bytes(max(1, len(larger.Ranks)/max(1, len(larger.Devices))))
		used := mem.Bytes(larger.Used.Or(0)) + processes*(g.Overhead-larger.Context)
		if used > g.Total {
			return v, false
		}
		v.Used, v.Headroom = mem.Some(int64(used)), mem.Some(int64(g.Total-used))
		v.Verdict = analyze.VerdictFits
		if g.Total-used < g.Tight() {
			v.Verdict = analyze.VerdictTight
		}
		return v, true
	}
	return v, false
}

// compareVerdicts: what fits, cheapest first; then what is tight; then the others by memory; then what
// cannot be used.
func compareVerdicts(a, b analyze.GPUVerdict) int {
	order := []string{analyze.VerdictFits, analyze.VerdictTight, analyze.VerdictOOM, analyze.VerdictFailed, analyze.VerdictUnused, analyze.VerdictNone}
	cost := func(v analyze.GPUVerdict) float64 {
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

// usableBy says of a GPU why the program's framework cannot use it, "" where it can: by the
// architectures torch was built for where the run told them, else by those of its CUDA version.
func (s *session) usableBy(main *trialResult) func(*gpus.GPU) string {
	cuda, archs := s.python.CUDA, ""
	for _, p := range main.run.Processes {
		archs = cmp.Or(archs, p.Facts["torch.arch_list"])
		cuda = cmp.Or(cuda, p.Facts["torch.cuda"])
	}
	return func(g *gpus.GPU) string {
		major, minor, ok := g.Capability()
		switch {
		case !ok || !g.CUDA():
			return "not with a CUDA build"
		case archs != "" && !runsOn(strings.Fields(archs), major, minor):
			return "this torch build has no kernels for " + g.Compute
		case archs == "" && !cudaKnows(cuda, major, minor):
			return "CUDA " + cuda + " does not know " + g.Compute
		}
		return ""
	}
}

// runsOn says whether a build for these architectures (sm_80, compute_90) has kernels for a capability:
// binaries of the same major version and no later minor one, or code that the driver compiles.
func runsOn(archs []string, major, minor int) bool {
	for _, arch := range archs {
		kind, number, _ := strings.Cut(strings.Trim(arch, ",[]'"), "_")
		exact := strings.TrimRight(number, "af") != number // sm_90a: for that one alone
		n, err := strconv.Atoi(strings.TrimRight(number, "af"))
		switch {
		case err != nil:
		case exact && n == major*10+minor,
			!exact && kind == "sm" && n/10 == major && n%10 <= minor,
			!exact && kind == "compute" && n <= major*10+minor:
			return true
		}
	}
	return false
}

// cudaKnows says whether a CUDA version compiles for a capability (its release notes).
func cudaKnows(cuda string, major, minor int) bool {
	head, tail, _ := strings.Cut(cuda, ".")
	version, err := strconv.Atoi(head)
	if err != nil {
		return true
	}
	second, _ := strconv.Atoi(strings.SplitN(tail, ".", 2)[0])
	switch {
	case version >= 13:
		return major*10+minor >= 75
	case version == 12 && second >= 8:
		return major >= 5
	case version == 12:
		return major >= 5 && major <= 9
	case version == 11:
		return major*10+minor >= 35 && (major < 9 || second >= 8)
	}
	return major < 9
}

// atOnce runs jobs side by side, as many as processors and memory allow. Jobs that have not begun when
// the run is interrupted do not begin.
func (s *session) atOnce(jobs []func()) {
	workers := max(1, min(runtime.NumCPU(), 8, int(availableMemory()/trialMemory), len(jobs)))
	restore := runtime.GOMAXPROCS(min(workers, runtime.NumCPU()))
	defer runtime.GOMAXPROCS(restore)
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

// trialMemory is what a process that imagines a training takes on the host, with room.
const trialMemory = 2 * mem.GiB

// availableMemory is what the host says is free; plenty where it does not say.
func availableMemory() mem.Bytes {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 64 * mem.GiB
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			if kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
				return mem.Bytes(kib) * mem.KiB
			}
		}
	}
	return 64 * mem.GiB
}
