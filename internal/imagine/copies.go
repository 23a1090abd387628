package imagine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/analyze/imagined"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/sampler"
)

// copyRequest is one GPU on which a forked copy of the program is to run; its JSON form is read by the
// agent (docs/formats/imagined.md).
type copyRequest struct {
	Name   string `json:"name"`
	State  string `json:"table"`
	Spec   string `json:"spec"`
	Output string `json:"output"`
}

// copyRequests is all that the agent is told.
type copyRequests struct {
	GPUs   int           `json:"gpus"`
	AtOnce int           `json:"at_once"`
	Copies []copyRequest `json:"copies"`
}

// forks says whether the program can be started once and forked for each GPU: it must be one Python
// process that the command itself starts.
func (s *Session) forks(t *trial) bool {
	apart, ok := takeApart(t.command)
	return ok && t.count == 1 && len(s.play) == 0 && pythons.Named(t.command[0]) && slices.Equal(apart.rank, t.command)
}

// single has libraries start no threads of their own: a process with threads cannot be forked.
var single = map[string]string{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

// copies starts the program once, has it fork at its first use of CUDA for each of the GPUs, and returns
// what came of those that ran. What failed for a reason of its own is left out, as forking may be the reason.
func (s *Session) copies(ctx context.Context, t trial, list []gpus.GPU) map[string]*Result {
	again := t
	again.env = mergeEnv(t.env)
	for name, value := range single {
		if !slices.ContainsFunc(s.Base.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			again.env[name] = value
		}
	}
	dir, err := os.MkdirTemp("", "hightide-copies-")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(dir)
	o, _, out, err := s.quiet(&again, s.Base.ID+"-copies"+strconv.Itoa(int(s.trials.Add(1))), dir)
	if err != nil {
		return nil
	}
	defer out.Close()
	requests := copyRequests{GPUs: 1, AtOnce: s.workers(len(list))}
	vendors := &copyVendors{}
	for i := range list {
		g := &list[i]
		request := copyRequest{Name: g.Slug, State: filepath.Join(o.Channels, "device-table-"+g.Slug), Spec: DeviceSpec(g, 1), Output: filepath.Join(dir, "output-"+g.Slug)}
		requests.Copies = append(requests.Copies, request)
		vendors.list = append(vendors.list, newImaginary(imaginaryGPUs(g, 1), &deviceState{path: request.State}))
	}
	text, err := json.Marshal(requests)
	if err != nil {
		return nil
	}
	o.Devices = []sampler.Vendor{vendors}
	for i := range o.Helpers {
		if o.Helpers[i].Name == "agent" {
			o.Helpers[i].Env = mergeEnv(o.Helpers[i].Env, map[string]string{"HIGHTIDE_IMAGINE_COPIES": string(text)})
		}
	}
	sink := &tee{mem.NewRun(), nil, len(list) * s.room()}
	if _, err := s.Record(ctx, o, sink); err != nil {
		return nil
	}
	found := map[string]*Result{}
	for i := range list {
		alone := again
		alone.gpu = list[i]
		run := apart(sink.run, list[i].Slug, s.setup(&alone))
		if run == nil {
			continue
		}
		for _, f := range vendors.list[i].frames(run, run.End.Time) {
			_ = run.Add(f)
		}
		result := &Result{Imagined: imagined.Judge(run), run: run, Outcome: observe.Outcome{ExitCode: run.End.ExitCode, Signal: run.End.Signal}}
		if f, err := os.Open(requests.Copies[i].Output); err == nil {
			result.Said = lastWords(f)
			f.Close()
		}
		if result.Fits() || result.Verdict == mem.VerdictOOM {
			found[list[i].Slug] = result
			s.advance("%s: %s", list[i].Slug, result.Verdict)
		}
	}
	return found
}

// apart is the part of a run that one copy made, as if it had been a run of its own; nil where there is
// no such copy or nobody saw its end.
func apart(whole *mem.Run, name string, setup mem.ImaginedSetup) *mem.Run {
	mine := map[uint32]bool{}
	status := mem.Optional{}
	run := mem.NewRun()
	_ = run.Add(whole.Info)
	_ = run.Add(setup)
	for _, p := range whole.Processes { // parents come first
		if code, err := strconv.ParseInt(p.Facts["copy "+name], 10, 64); err == nil {
			status = mem.Some(code)
		}
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
