package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hightide/device"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/report"
)

// ImagineOptions of Imagine; only Command, Env and GPU are needed. Of RunOptions, Steps is not looked at: Until has
// its place.
type ImagineOptions struct {
	RunOptions
	imagine.Options
}

// ImagineResult is what came of it. Verdict is nil where the recording could not be read back.
type ImagineResult struct {
	RunResult
	Verdict *report.Imagined
}

// ExitProgram: the imagined program failed for a reason of its own, so there is no verdict.
const ExitProgram = 5

// Imagine runs a program on GPUs that are not there, records it and says whether it fits. An
// error means that there is no run; what came of a run that there was is in the result.
func (e *Engine) Imagine(ctx context.Context, o ImagineOptions) (*ImagineResult, error) {
	if _, err := o.check(); err != nil {
		return nil, err
	}
	s, err := e.imagineSession(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer e.Runtime.TuneTo(Recording)()
	result := &ImagineResult{}
	info := mem.RunInfo{Name: o.Name, Tags: o.Tags, Verb: "imagine", Label: mem.Imagined, StartMono: 1}
	place, files, writer, err := e.place(info, &result.RunResult)
	if err != nil {
		return nil, explain(err)
	}
	defer files.Close()
	result.ID = writer.ID()
	s.Base.ID, s.Base.OutDir = result.ID, place.scratch(result.ID)
	main, err := s.Run(ctx, writer)
	result.Notes = append(result.Notes, s.Notes...)
	if main != nil {
		result.Outcome, result.Verdict = main.Outcome, main.Imagined
	}
	if closing := writer.Close(); closing != nil {
		result.Notes = append(result.Notes, closing.Error())
	}
	if kept := place.keep(files, result.ID); kept != nil {
		result.Notes = append(result.Notes, kept.Error())
	}
	if err != nil {
		_ = place.remove(files, result.ID)
		return nil, err
	}
	result.File = writer.Run().File
	place.conclude(&o.RunOptions, files, &result.RunResult)
	if result.Report != nil && result.Report.Imagined != nil {
		result.Verdict = result.Report.Imagined
	}
	return result, nil
}

// imagineSession prepares a session of package imagine that records by this engine.
func (e *Engine) imagineSession(ctx context.Context, o *ImagineOptions) (*imagine.Session, error) {
	s, err := imagine.New(ctx, o.Options, observe.Options{
		Command: o.Command, Env: o.Env, Name: o.Name, Tags: o.Tags, Version: Version, Interval: o.Interval, Duration: o.Duration,
		SnapshotOn: o.SnapshotOn, NoStacks: o.NoStacks, Runtime: o.sharing(e.Runtime), Events: o.Events,
	})
	if err != nil {
		return nil, err
	}
	helpers, err := imagineHelpers(e.helpersDir())
	if err != nil {
		return nil, err
	}
	s.Helpers = *helpers
	s.Record = func(ctx context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
		outcome, err := observe.Run(ctx, o, sink)
		if err != nil {
			err = launchError(err)
		}
		return outcome, err
	}
	return s, nil
}

// imagineHelpers extracts agent, heap sampler and device.
func imagineHelpers(fallback string) (*imagine.Helpers, error) {
	h := &imagine.Helpers{}
	list, notes := helpers(fallback, true)
	for _, helper := range list {
		switch helper.Name {
		case "agent":
			h.Agent = helper
		case "heap":
			h.Heap = &helper
		}
	}
	if h.Agent.Name == "" {
		return nil, EnvironmentError("is there a folder that hightide can write to?", "%s", strings.Join(notes, "; "))
	}
	files, err := deviceFiles()
	if err != nil {
		return nil, err
	}
	dir, err := launch.Extract(files, helperParents(fallback)...)
	if err != nil {
		return nil, EnvironmentError("is there a folder that hightide can write to?", "%w", err)
	}
	h.Device = deviceHelper(dir)
	return h, nil
}

// deviceFiles are the libraries of the imaginary GPUs, by their path in the helpers' folder. The driver's
// own names stand beside the one that is preloaded: Triton links against libcuda.so, and pynvml opens
// libnvidia-ml.so.1 in processes of its own.
func deviceFiles() (map[string][]byte, error) {
	libraries, ok := device.Libraries()
	if !ok {
		return nil, EnvironmentError("build it with make", "this hightide was built without its device library")
	}
	files := map[string][]byte{}
	for name, image := range libraries {
		files["device/"+name] = image
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so"} {
		files["device/"+name] = libraries[device.LibraryName]
	}
	return files, nil
}

// deviceHelper is the device as it rides along.
func deviceHelper(dir string) launch.Helper {
	lib := filepath.Join(dir, "device")
	return launch.Helper{Name: "device", Preload: filepath.Join(lib, device.LibraryName), Libraries: lib}
}

// CanImagine says whether this build has the imaginary GPU.
func CanImagine() bool {
	_, err := deviceFiles()
	return err == nil
}

// imagineAbility says whether programs of this interpreter can be imagined.
func imagineAbility(p *pythons.Interpreter) Ability {
	a := Ability{Name: "imaginary GPUs", Can: Yes}
	switch {
	case !CanImagine():
		a.Can, a.Text, a.Hint = No, "this hightide was built without its device library", "build it with make"
	case p == nil || p.Version == "":
		a.Can, a.Text = Partly, "no Python was found; a command names its own"
	case p.Frameworks["torch"] == "" || p.CUDA == "":
		a.Can, a.Text, a.Hint = Partly, "this Python has no CUDA build of PyTorch; a command names its own", "pip install torch; it needs no GPU"
	default:
		a.Text = fmt.Sprintf("hightide imagine runs torch %s on any GPU of the catalogue", p.Frameworks["torch"])
	}
	return a
}

// ImagineSummary is what `imagine --json` prints: that of a run, and the verdict.
type ImagineSummary struct {
	Summary
	*report.Imagined
}

// ImagineSummary of a run that ended.
func (r *ImagineResult) ImagineSummary() ImagineSummary {
	s := ImagineSummary{r.Summary(), r.Verdict}
	s.Label = mem.Imagined
	return s
}

// Judged says whether there is a verdict.
func (r *ImagineResult) Judged() bool {
	if r.Verdict == nil {
		return false
	}
	return r.Verdict.Fits() || r.Verdict.Verdict == mem.VerdictOOM
}

// ExitCode is 0 for a program that fits (over a catalogue: on one of its GPUs), 1 for one that does not.
func (r *ImagineResult) ExitCode() int {
	if r.Verdict == nil {
		return ExitOwn
	}
	if slices.ContainsFunc(r.Verdict.All, func(v mem.GPUVerdict) bool { return v.Fits() }) {
		return 0
	}
	switch r.Verdict.Verdict {
	case mem.VerdictFits, mem.VerdictTight:
		return 0
	case mem.VerdictOOM:
		return 1
	case mem.VerdictUnused:
		return ExitEnvironment
	}
	return ExitProgram
}

// ParseSize reads a size as people write it: 24GiB.
func ParseSize(text string) (mem.Bytes, error) {
	size, err := mem.ParseBytes(text)
	if err != nil {
		return 0, UsageError("as in --memory 24GiB", "%w", err)
	}
	return size, nil
}
