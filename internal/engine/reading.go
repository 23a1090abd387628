package engine

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"hightide/internal/analyze"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/replay"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/usage"
)

// What people learn of recordings and other files.

// Report explains the run that a reference means (see Resolve), from its recording alone.
func (e *Engine) Report(ctx context.Context, ref string) (*report.Report, store.Run, error) {
	row, run, err := e.Load(ctx, ref)
	if err != nil {
		return nil, row, err
	}
	return Analyze(run), row, nil
}

// Analyze explains a recording: every analysis, with the lines of the program quoted where its
// files are still here, and allocator snapshots decoded.
func Analyze(run *mem.Run) *report.Report {
	quotes := quotes{map[string][][]byte{}, time.Unix(0, run.Info.StartWall)}
	options := analyze.Options{Source: quotes.line, Snapshots: map[string]*mem.AllocatorSnapshot{}, Profiles: map[string]*mem.Profile{}}
	decoded, failed := recordedSnapshots(run)
	for _, s := range decoded {
		options.Snapshots[s.name] = s.AllocatorSnapshot
	}
	failed = append(failed, recordedProfiles(run, options.Profiles)...)
	r := analyze.Analyze(run, options)
	for _, err := range failed {
		r.AddNote(err.Error())
	}
	return r
}

// quotes are lines of Python files, each read once. A file that changed after the run began
// shows other lines than those that ran, so it is not quoted. Nor is what is not a source at all: the
// paths come from a recording, which may be a stranger's.
type quotes struct {
	files map[string][][]byte
	began time.Time
}

const maxSource = 4 << 20 // bytes; larger files are not sources

func (q *quotes) line(file string, line int) string {
	lines, seen := q.files[file]
	if !seen {
		if q.quotable(file) {
			data, _ := os.ReadFile(file)
			lines = bytes.Split(data, []byte("\n"))
		}
		q.files[file] = lines
	}
	if line < 1 || line > len(lines) {
		return ""
	}
	return mem.MaskText(string(bytes.TrimSpace(lines[line-1])))
}

func (q *quotes) quotable(file string) bool {
	if !strings.HasSuffix(file, ".py") || !filepath.IsAbs(file) {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() <= maxSource && !info.ModTime().After(q.began)
}

// pictureColumns is how many columns the courses of all devices have together: a page is to stay below 1 MB.
const pictureColumns = 1200

// Explain reads files and runs and says who holds the device memory, in one report. A run also gets
// its own analyses where it is the only reference.
func (e *Engine) Explain(ctx context.Context, refs []string, o analyze.ExplainOptions) (*report.Report, error) {
	defer e.Runtime.TuneTo(launch.Explaining)()
	o.Advise = e.adviseOOM
	x := analyze.Explaining{Report: report.New()}
	var names []string
	for _, ref := range refs {
		from, err := e.source(ctx, ref)
		if err != nil {
			return nil, err
		}
		name := fileName(ref)
		names = append(names, name)
		switch {
		case from.Profile != nil:
			analyze.ExplainProfile(x.Report, from.Profile, name, o.Top)
			continue
		case from.Mappings != nil:
			analyze.ExplainMappings(x.Report, from.Mappings, name, o.Top)
			continue
		}
		snapshots, err := from.snapshots()
		if err != nil {
			return nil, err
		}
		if from.Recording != nil && len(refs) == 1 {
			x.Report = Analyze(from.Recording)
			if len(from.Recording.Snapshots) == 0 && from.Format != "telemetry" {
				x.Report.AddNote("The run recorded no allocator snapshot, so there is nothing of a device to explain: hightide run --snapshot-on exit records one.")
			}
		}
		o.Columns = pictureColumns / max(1, len(refs), len(snapshots))
		o.Several = len(refs) > 1 || len(snapshots) > 1
		x.Options = o
		for _, s := range snapshots {
			if err := x.Add(s.AllocatorSnapshot, s.name, s.stepEnds); err != nil {
				return nil, fail.Input("hightide explain --help says what can be chosen", "%w", err)
			}
		}
	}
	if err := x.Finish(); err != nil {
		return nil, fail.Input("name events that exist", "%w", err)
	}
	if x.Report.Run.Name == "" {
		x.Report.Run.Name = strings.Join(names, " ")
	}
	return x.Report, nil
}

// adviseOOM says which settings would have avoided an out-of-memory, in words and for programs.
func (e *Engine) adviseOOM(s *mem.AllocatorSnapshot, device int) (string, any) {
	advice, err := replay.Advise(s, device, e.Runtime.Cores)
	if err != nil || advice == nil {
		return "", nil // such a trace cannot be replayed
	}
	return advice.Text(), advice
}

// Rules reads a file of category rules; "" is none.
func Rules(path string) ([]usage.CategoryRule, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fail.Unread("name a file of rules; docs/explain.md describes them", err)
	}
	rules, err := usage.ParseRules(string(text))
	if err != nil {
		return nil, fail.Input("docs/explain.md describes the rules", "%s: %w", path, err)
	}
	return rules, nil
}

// Replay runs recorded traces of allocations again under other settings or on a smaller device.
func (e *Engine) Replay(ctx context.Context, refs []string, o replay.Options) (*replay.Result, error) {
	o.Version, o.Workers = Version, e.Runtime.Cores
	var sources []replay.Source
	for _, ref := range refs {
		found, err := e.histories(ctx, ref)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	return replay.Run(ctx, sources, o)
}

// rankOf finds the rank in the name of a run's snapshot; a later one of a rank replaces the earlier.
var rankOf = regexp.MustCompile(`rank\d+`)

// histories are the snapshots of a file, or the last of each rank of a run, that hold an allocator's history.
func (e *Engine) histories(ctx context.Context, ref string) ([]replay.Source, error) {
	from, err := e.source(ctx, ref)
	if err != nil {
		return nil, err
	}
	all, err := from.snapshots()
	if err != nil {
		return nil, err
	}
	last := map[string]snapshot{}
	for _, s := range all {
		if len(s.Traces) > 0 {
			last[rankOf.FindString(s.name)] = s
		}
	}
	if len(last) == 0 {
		return nil, fail.Input("hightide run --snapshot-on exit records one; torch.cuda.memory._record_memory_history must be on",
			"%s cannot be replayed: it holds no history of an allocator", ref)
	}
	var sources []replay.Source
	for _, rank := range slices.Sorted(maps.Keys(last)) {
		name := ref
		if len(last) > 1 {
			name = ref + " " + last[rank].name
		}
		sources = append(sources, replay.Source{Name: name, Snapshot: last[rank].AllocatorSnapshot})
	}
	return sources, nil
}
