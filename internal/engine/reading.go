package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/analyze/trace"
	"hightide/internal/budget"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/quote"
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
	r := analyzeFrom(row.From, run, e.MayRead)
	e.hear(ctx, row.ID, r)
	return r, row, nil
}

// Analyze explains a recording: every analysis, with the lines of the program quoted where its
// files are still here, and allocator snapshots decoded.
func Analyze(run *mem.Run) *report.Report { return analyzeFrom("", run, nil) }

// AnalyzeFrom is the same of a run by where its row says that it is from. A recording that was sent names files of
// its sender's choice, so no line of this machine's is quoted.
func AnalyzeFrom(from string, run *mem.Run) *report.Report {
	return analyzeFrom(from, run, nil)
}

func analyzeFrom(from string, run *mem.Run, may func(path string) error) *report.Report {
	if from == store.FromUpload {
		may = func(string) error { return fs.ErrPermission }
	}
	quotes := quote.New(time.Unix(0, run.Info.StartWall), may)
	for _, cell := range run.Cells { // their text is in the recording
		quotes.Know(cell.Name, cell.Text)
	}
	return analyzed(run, quotes.Line)
}

func analyzed(run *mem.Run, source func(file string, line int) string) *report.Report {
	options := analyze.Options{Source: source, Snapshots: map[string]*mem.AllocatorSnapshot{},
		Profiles: map[string]*mem.Profile{}}
	decoded, failed := recordedSnapshots(run)
	for _, s := range decoded {
		options.Snapshots[s.Name] = s.AllocatorSnapshot
	}
	failed = append(failed, recordedProfiles(run, options.Profiles)...)
	r := analyze.Analyze(run, options)
	for _, err := range failed {
		r.AddNote(err.Error())
	}
	return r
}

// pictureColumns is how many columns the courses of all devices have together: a page is to stay below 1 MB.
const pictureColumns = 1200

// Explain reads files and runs and says who holds the device memory, in one report. A run also gets
// its own analyses where it is the only reference.
func (e *Engine) Explain(ctx context.Context, refs []string, o trace.Options) (*report.Report, error) {
	defer e.Runtime.TuneTo(launch.Explaining)()
	o.Replayer = replay.Adviser{Workers: e.Runtime.Cores}
	x := trace.Explaining{Report: report.New()}
	var names []string
	var kinds []trace.FileKind
	for _, ref := range refs {
		from, err := e.source(ctx, ref)
		if err != nil {
			return nil, err
		}
		name := fileName(ref)
		if from.dumped != "" {
			name = fileName(from.ref)
			x.Report.AddNote(from.dumped)
		}
		kinds = append(kinds, from.kind())
		if err := unanswered(&o, kinds); err != nil && (len(refs) == 1 || len(from.Words) > 0) {
			return nil, err
		}
		names = append(names, name)
		switch {
		case from.Profile != nil:
			if err := trace.OfProfile(x.Report, from.Profile, name, o); err != nil {
				return nil, fail.Usage("name a device or a batch that the file has", "%w", err)
			}
			continue
		case from.Mappings != nil:
			trace.OfMappings(x.Report, from.Mappings, name, o.MostNames())
			continue
		case from.Nodes != nil:
			trace.OfNodes(x.Report, from.Nodes, name, o.MostNames())
			continue
		case from.model != nil:
			trace.OfModel(x.Report, from.model, name, o.MostNames())
			continue
		}
		snapshots, err := from.snapshots()
		if err != nil {
			return nil, err
		}
		if from.Recording != nil && len(refs) == 1 {
			x.Report = analyzeFrom(from.from, from.Recording, e.MayRead)
			if len(from.Recording.Snapshots) == 0 && from.Recording.Info.Verb != "telemetry" {
				x.Report.AddNote("The run recorded no allocator snapshot, so there is nothing of a device to explain: hightide " +
					"run --snapshot-on exit records one.")
			}
		}
		o.Columns = pictureColumns / max(1, len(refs), len(snapshots))
		o.Several = len(refs) > 1 || len(snapshots) > 1
		x.Options = o
		for _, s := range snapshots {
			if err := x.Add(s); err != nil {
				return nil, fail.Input("hightide explain --help says what can be chosen", "%w", err)
			}
		}
	}
	if err := unanswered(&o, kinds); err != nil {
		return nil, err
	}
	if err := x.Finish(); err != nil {
		return nil, fail.Input("name events that exist", "%w", err)
	}
	if x.Report.Run.Name == "" {
		x.Report.Run.Name = strings.Join(names, " ")
	}
	return x.Report, nil
}

// kind of source, for the options that it answers.
func (s *source) kind() trace.FileKind {
	switch {
	case s.Snapshot != nil:
		return trace.SnapshotFile
	case s.Recording != nil && len(s.Recording.Snapshots) > 0:
		return trace.SnapshotRun
	case s.Recording != nil:
		return trace.BareRecording
	case s.Profile != nil:
		return trace.ProfileFile
	case s.Mappings != nil:
		return trace.MappingsFile
	case s.Nodes != nil:
		return trace.NodesFile
	case s.model != nil:
		return trace.ModelFile
	}
	return trace.TextFile
}

// unanswered is the error of an option of explain that was asked for and that no file answers.
func unanswered(o *trace.Options, files []trace.FileKind) error {
	if why := o.Unanswered(files); why != "" {
		return fail.Usage("leave it out, or name such a file", "%s", why)
	}
	return nil
}

// Rules reads a file of category rules; "" is none.
func Rules(path string) ([]usage.CategoryRule, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fail.Unread("name a file of rules; hightide about explain describes them", err)
	}
	rules, err := usage.ParseRules(string(text))
	if err != nil {
		return nil, fail.Input("hightide about explain describes the rules", "%s: %w", path, err)
	}
	return rules, nil
}

// Replay runs recorded traces of allocations again under other settings or on a smaller device.
func (e *Engine) Replay(ctx context.Context, refs []string, o replay.Options) (*replay.Result, error) {
	o.Version, o.Workers = Version, e.Runtime.Cores
	if err := o.Check(); err != nil {
		return nil, err
	}
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

// histories are the snapshots of a file, or the last of each process of a run, that hold an allocator's history.
func (e *Engine) histories(ctx context.Context, ref string) ([]replay.Source, error) {
	_, all, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	last := map[uint32]snapshot{}
	for _, s := range all {
		if len(s.Traces) > 0 {
			last[s.Process] = s
		}
	}
	if len(last) == 0 {
		return nil, fail.Input(frameworks.SnapshotsOrHistory,
			"%s cannot be replayed: it holds no history of an allocator", ref)
	}
	var sources []replay.Source
	for _, process := range slices.Sorted(maps.Keys(last)) {
		name := ref
		if len(last) > 1 {
			name = ref + " " + last[process].Name
		}
		sources = append(sources, replay.Source{Name: name, Snapshot: last[process].AllocatorSnapshot})
	}
	return sources, nil
}

// side is one of two peaks that are compared.
type side struct {
	snapshot *mem.AllocatorSnapshot
	device   int
	name     string // for people
}

// Difference says why the peaks of two differ. Each is a snapshot that is open or a run, by its id: never a file.
func (o *Opened) Difference(ctx context.Context, a, b, by string) (*report.Report, error) {
	before, err := o.side(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := o.side(ctx, b)
	if err != nil {
		return nil, err
	}
	d, err := before.diff(after, by)
	if err != nil {
		return nil, err
	}
	return d.Report(before.name, after.name), nil
}

// Diff compares the peaks of two files or runs on the device that holds most in each. Of a run with
// several snapshots it takes the one that holds most.
func (e *Engine) Diff(ctx context.Context, a, b, by string) (*trace.Difference, error) {
	if a == "-" && b == "-" {
		return nil, fail.Usage("name one of them", "stdin cannot be both sides")
	}
	before, err := e.fullest(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := e.fullest(ctx, b)
	if err != nil {
		return nil, err
	}
	return before.diff(after, by)
}

func (s side) diff(after side, by string) (*trace.Difference, error) {
	d, err := trace.Diff(s.snapshot, after.snapshot, s.device, after.device, by)
	if err != nil {
		return nil, fail.Input("hightide diff --help says what can be compared", "%w", err)
	}
	return d, nil
}

// ErrNoSnapshot: a run or file has nothing of an allocator's blocks.
var ErrNoSnapshot = errors.New("holds no allocator snapshot")

// Compared is why the peaks of two differ: by their blocks, or, where a side has no snapshot, by what both reports
// have.
type Compared struct {
	Blocks *trace.Difference
	Report *report.Report // where there is no Blocks
	Pair   *report.Pair   // that Report was made of
}

// Differ says why the peaks of two differ. Only where by is empty it does with less than the blocks of both.
func (e *Engine) Differ(ctx context.Context, a, b, by string) (c Compared, err error) {
	c.Blocks, err = e.Diff(ctx, a, b, by)
	if !errors.Is(err, ErrNoSnapshot) {
		return c, err
	}
	if by != "" {
		return c, fail.Input("without it runs are compared by what both recorded; or name two snapshots",
			"by %s only the blocks of snapshots are compared: %w", by, err)
	}
	var unread error
	if c.Pair, unread = e.Pair(ctx, a, b); unread != nil {
		return c, unread
	}
	if c.Report = c.Pair.Told; c.Report == nil {
		return c, err
	}
	c.Report.AddNote("Blocks of a device are not compared: " + err.Error() + ".")
	return c, nil
}

// Pair is the reports of two beside each other: of runs, or of files with a snapshot. Of neither a difference on the
// device is needed.
func (e *Engine) Pair(ctx context.Context, a, b string) (*report.Pair, error) {
	pair, err := report.Beside(a, b, func(ref string) (*report.Report, error) { return e.reportOf(ctx, ref) })
	if err == nil {
		pair.Told = analyze.Compare(pair)
	}
	return pair, err
}

func (e *Engine) reportOf(ctx context.Context, ref string) (*report.Report, error) {
	r, _, err := e.Report(ctx, ref)
	if err == nil {
		return r, nil
	}
	if r, other := e.Open([]string{ref}).Report(ctx, OpenedID(ref)); other == nil {
		return r, nil
	}
	return nil, err
}

// side finds the fullest device of a snapshot, or of those of a run.
func (o *Opened) side(ctx context.Context, id string) (side, error) {
	if o.known(id) == nil {
		if run, err := o.engine.Find(ctx, id); err == nil {
			return o.engine.fullest(ctx, run.ID)
		}
	}
	one, err := o.readOpened(ctx, id)
	if err != nil {
		return side{}, err
	}
	best := side{one.snapshot, -1, one.info.Name}
	most := mem.Bytes(-1)
	for _, d := range one.info.Devices {
		if d.Peak > most {
			best.device, most = d.Device, d.Peak
		}
	}
	if best.device < 0 {
		return side{}, fail.Input(frameworks.WasHistoryOn,
			"%s holds nothing about a device", one.info.Name)
	}
	return best, nil
}

func (e *Engine) fullest(ctx context.Context, ref string) (side, error) {
	_, all, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return side{}, err
	}
	best, device := fullestOf(all)
	if best == nil {
		return side{}, fail.Input("name a snapshot, or a run that recorded one", "%s %w", ref, ErrNoSnapshot)
	}
	return side{best, device, ref}, nil
}

// fullestOf is the snapshot and the device of it with the highest peak; nil: there is none.
func fullestOf(all []snapshot) (best *mem.AllocatorSnapshot, device int) {
	most := mem.Bytes(-1)
	for _, s := range all {
		for _, d := range s.AllDevices() {
			if len(all) == 1 && len(s.AllDevices()) == 1 {
				return s.AllocatorSnapshot, d // nothing to choose from: not worth playing its trace
			}
			if peak := usage.FromTrace(s.AllocatorSnapshot, d, usage.Whole).Peak.Bytes; peak > most {
				best, device, most = s.AllocatorSnapshot, d, peak
			}
		}
	}
	return best, device
}

// Check holds the peak of a file or run, on each device by itself, against the budgets of a YAML file. The baseline,
// where not empty, stands for the one that the file names. A wrong key or value is an input error that names its
// position and the nearest valid key. So is a budget for something of which the file or run says nothing.
func (e *Engine) Check(ctx context.Context, file, ref, baseline string) ([]report.Checked, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail.Unread("name a YAML file of budgets; hightide check --help shows one", err)
	}
	budgets, err := budget.Read(text)
	if err != nil {
		return nil, fail.Input("hightide check --help shows such a file", "%s:%w", file, err)
	}
	found, err := e.measured(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := budget.Found{}
	if baseline != "" && !budgets.Relative() {
		return nil, fail.Usage("put limits under baseline into it, as peak: 5%; hightide check --help shows such a file",
			"%s has no budget relative to a baseline, so %s would be compared with nothing", file, baseline)
	}
	if budgets.Relative() {
		if baseline == "" && budgets.Baseline == "" {
			return nil, fail.Input("file: main.pickle under baseline, or --baseline main.pickle",
				"%s: the baseline names no file", file)
		}
		if baseline == "" {
			baseline = baselineOf(budgets.Baseline, file)
			if e.MayRead != nil && e.MayRead(baseline) != nil {
				return nil, e.MayRead(baseline)
			}
		}
		if before, err = e.measured(ctx, baseline); err != nil {
			return nil, err
		}
	}
	return budgets.Check(file, found, before, ref, baseline)
}

// measured is what a file or run holds.
func (e *Engine) measured(ctx context.Context, ref string) (budget.Found, error) {
	from, all, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	found := budget.Found{}
	for _, s := range all {
		devices := devicesOf(s.AllocatorSnapshot)
		for _, device := range devices {
			of := ""
			if len(devices) > 1 {
				of = fmt.Sprintf("device %d", device)
			}
			if len(all) > 1 {
				of = strings.TrimPrefix(of+" of "+s.Name, " of ")
			}
			if err := found.Device(s.AllocatorSnapshot, device, ref, of); err != nil {
				return nil, err
			}
		}
	}
	if from.Recording == nil {
		return found, nil
	}
	headline := analyzeFrom(from.from, from.Recording, e.MayRead).Headline
	found.Add("host", headline.Peak.HostRSS, mem.Measured, "")
	if len(all) == 0 { // the headline's are sums over devices
		found.Add("peak", headline.Peak.Allocated, headline.Peak.Label, "")
		found.Add("reserved", headline.Peak.Reserved, headline.Peak.Label, "")
	}
	if _, ok := found["growth"]; !ok {
		found.Add("growth", headline.Growth, headline.GrowthLabel, "")
	}
	return found, nil
}

// devicesOf are the devices of a snapshot, without pinned memory of the host where there are others.
func devicesOf(s *mem.AllocatorSnapshot) []int {
	all := s.AllDevices()
	if real := slices.DeleteFunc(slices.Clone(all), func(device int) bool { return device < 0 }); len(real) > 0 {
		return real
	}
	return all
}

// baselineOf is the baseline that a file of budgets names: a file, which a relative name has beside the budgets, or a
// run.
func baselineOf(named, file string) string {
	if path := filepath.Join(filepath.Dir(file), named); !filepath.IsAbs(named) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return named
}
