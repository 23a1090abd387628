package imagine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/sampler"
)

// copyRequest is one forked copy of the program; its JSON form is read by the agent (docs/formats/imagined.md).
type copyRequest struct {
	Name   string            `json:"name"`
	Output string            `json:"output"`
	Env    map[string]string `json:"env"`
}

// copyRequests is all that the agent is told.
type copyRequests struct {
	GPUs    int           `json:"gpus"`
	AtOnce  int           `json:"at_once"`
	Needs   string        `json:"needs,omitempty"` // a copy whose failure makes the others that are left needless
	Imports []string      `json:"imports,omitempty"`
	Copies  []copyRequest `json:"copies"`
}

// forks says whether the program can be started once and forked for each GPU: it must be one Python
// process that the command itself starts. The command of an LLM server may be a script of Python's.
func (s *Session) forks(t *trial) bool {
	apart, err := takeApart(t.command)
	return err == nil && t.count == 1 && len(s.play) == 0 && slices.Equal(apart.rank, t.command) &&
		(pythons.Named(t.command[0]) || s.serves && pythons.OfCommand(t.command) != "")
}

// single has libraries start no threads of their own: a process with threads cannot be forked.
var single = map[string]string{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
	"TOKENIZERS_PARALLELISM": "false"}

// alike are the trials that may be forked from one start: up to its first use of CUDA the program does the same in
// each. They differ in what is read from there on: the GPU, whether it is behind, the allocator's setting, switches
// thrown at a module's first call. The allocator itself is chosen when PyTorch is loaded, and programs choose kernels
// of attention before they use CUDA: such trials are started. So are an LLM server's on other GPUs, as it asks about its
// GPU while it is imported. Returns their places; none where fewer than two are alike.
func (s *Session) alike(list []trial) []int {
	var found []int
	for i := range list {
		if t, first := &list[i], &list[0]; s.forks(t) && !t.apart && t.atMost == 0 &&
			!strings.Contains(t.env[allocator.Variable], "backend:") &&
			!slices.ContainsFunc(t.switches, func(name string) bool { return strings.HasPrefix(name, attentionSwitch) }) &&
			slices.Equal(t.command, first.command) && t.sizes == first.sizes && t.other == first.other &&
			t.flip == first.flip && maps.Equal(common(t), common(first)) &&
			(!s.serves || DeviceSpec(&t.gpu, 1) == DeviceSpec(&first.gpu, 1)) {
			found = append(found, i)
		}
	}
	if len(found) < 2 {
		return nil
	}
	return found
}

// common is the environment that trials must share to be forked from one start.
func common(t *trial) map[string]string {
	env := mergeEnv(t.env)
	delete(env, allocator.Variable)
	return env
}

// copies starts the program once, has it fork at its first use of CUDA for each of the trials that are alike. It
// returns what came of those that ran, at their places. A program that could not be forked once is not tried again.
func (s *Session) copies(ctx context.Context, trials []trial) []*Result {
	found := make([]*Result, len(trials))
	places := s.alike(trials)
	if len(places) == 0 || s.unforkable {
		return found
	}
	again := trials[places[0]]
	again.env, again.lag, again.switches, again.plan, again.blocks = common(&again), false, nil, nil, false
	again.counted = false
	again.load = ""
	for name, value := range single {
		if !slices.ContainsFunc(s.Base.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			again.env[name] = value
		}
	}
	dir, err := os.MkdirTemp("", "hightide-copies-")
	if err != nil {
		return found
	}
	defer os.RemoveAll(dir)
	o, _, out, err := s.quiet(&again, s.Base.ID+"-copies"+strconv.Itoa(int(s.trials.Add(1))), dir)
	if err != nil {
		return found
	}
	defer out.Close()
	requests := copyRequests{GPUs: 1, AtOnce: s.workers(len(places)), Imports: s.imports}
	if trials[0].blocks && places[0] == 0 {
		requests.Needs = "0"
	}
	vendors := &copyVendors{}
	for _, i := range places {
		t, name := &trials[i], strconv.Itoa(i)
		state := filepath.Join(o.Channels, "device-table-"+name)
		env := mergeEnv(t.env, t.device(state), t.agent(s.givenLength()))
		if t.load != "" {
			env[loadVariable] = t.load
		}
		requests.Copies = append(requests.Copies, copyRequest{Name: name, Output: filepath.Join(dir, "output-"+name),
			Env: env})
		vendors.list = append(vendors.list, newImaginary(imaginaryGPUs(&t.gpu, 1), &deviceState{path: state}))
	}
	text, err := json.Marshal(requests)
	if err != nil {
		return found
	}
	o.Devices = []sampler.Vendor{vendors}
	o.Steps = 0 // the agent ends each copy at its own; the first one's end is not the run's
	for i := range o.Helpers {
		if o.Helpers[i].Name == "agent" {
			o.Helpers[i].Env = mergeEnv(o.Helpers[i].Env, map[string]string{"HIGHTIDE_IMAGINE_COPIES": string(text)})
		}
	}
	sink := &tee{mem.NewRun(), nil, len(places) * s.room(&again)}
	if _, err := s.Record(ctx, o, sink); err != nil {
		return found
	}
	s.unforkable = true
	for n, i := range places {
		run := apart(sink.run, requests.Copies[n].Name, s.setup(&trials[i]))
		if run == nil {
			continue
		}
		s.unforkable = false
		for _, f := range vendors.list[n].frames(run, run.End.Time) {
			_ = run.Add(f)
		}
		result := &Result{Imagined: imagined.Judge(run), run: run,
			Outcome: observe.Outcome{ExitCode: run.End.ExitCode, Signal: run.End.Signal}}
		if f, err := os.Open(requests.Copies[n].Output); err == nil {
			result.Said = lastWords(f)
			f.Close()
		}
		if copied(result) {
			found[i] = result
		}
	}
	return found
}

// copied says whether a copy's result is that of a start. What failed for a reason of its own may have failed as it was
// forked; not so a server that had started and failed at a request.
func copied(r *Result) bool {
	return r.Fits() || r.Verdict == mem.VerdictOOM || r.Verdict == mem.VerdictFew || r.PlanRefused() != "" ||
		r.Verdict == mem.VerdictFailed && r.Serving != nil && r.Serving.Ready
}

// apart is the part of a run that one copy made, as if it had been a run of its own. Nil where there is
// no such copy or nobody saw its end.
func apart(whole *mem.Run, name string, setup mem.ImaginedSetup) *mem.Run {
	mine := map[uint32]bool{}
	status := mem.Optional{}
	run := mem.NewRun()
	_ = run.Add(whole.Info)
	_ = run.Add(setup)
	for _, p := range whole.Processes { // parents come first
		status = cmp.Or(p.Number("copy "+name), status)
		if p.Facts["copy"] == name || mine[p.Parent] {
			mine[p.ID] = true
			_ = run.Add(*p)
		}
	}
	code, ok := status.Get()
	if len(mine) == 0 || !ok {
		return nil
	}
	for _, series := range whole.Series {
		if mine[series.Process] {
			_ = run.Add(series.SeriesDef)
			_ = run.Add(mem.Samples{Series: series.ID, Times: series.Times, Values: series.Values})
		}
	}
	for _, s := range whole.Snapshots {
		if mine[s.Process] {
			run.Snapshots = append(run.Snapshots, s)
		}
	}
	for _, step := range whole.Steps {
		if mine[step.Process] {
			run.Steps = append(run.Steps, step)
		}
	}
	for _, e := range whole.Events {
		if mine[e.Process] {
			_ = run.Add(e)
		}
	}
	for f := range whole.Imagined.Frames {
		if mine[mem.ProcessOf(f)] {
			_ = run.Add(f)
		}
	}
	end := mem.End{Time: whole.Start(), ExitCode: mem.Some(code), Reason: "exit"}
	if whole.End != nil {
		end.Time = whole.End.Time
	}
	if code < 0 {
		end.ExitCode, end.Signal = mem.Optional{}, mem.Some(-code)
	}
	_ = run.Add(end)
	return run
}

// copyVendors look at the copies' devices once, when all have ended.
type copyVendors struct{ list []*imaginary }

// Name implements sampler.Vendor.
func (v *copyVendors) Name() string { return "imaginary" }

// Devices implements sampler.Vendor.
func (v *copyVendors) Devices() []mem.GPU { return nil }

// Sample implements sampler.Vendor.
func (v *copyVendors) Sample([]*sampler.Process) ([]sampler.Reading, error) { return nil, nil }

// Close implements sampler.Vendor.
func (v *copyVendors) Close() {
	for _, one := range v.list {
		one.Close()
	}
}
