package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hightide/internal/analyze/trace"
	"hightide/internal/explore"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/quote"
	"hightide/internal/replay"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/usage"
)

// Opened are the allocator snapshots that a front door shows: files it was given, uploads, those that runs recorded.
// Each is read once, when it is first asked for. What was used longest ago goes where they take too much memory, and
// what nobody looks at goes when Rest is called; asked for again, it is read again. All methods may be called by
// several goroutines.
type Opened struct {
	engine *Engine
	limit  mem.Bytes

	mu    sync.Mutex
	order []*openedOne
}

// OpenedSnapshot is one of them, for a list.
type OpenedSnapshot struct {
	ID      string         `json:"id" doc:"What requests call it."`
	Name    string         `json:"name" doc:"Of the file, or what the sender called it."`
	From    string         `json:"from" enum:"file,upload,run" doc:"Where it is from."`
	Run     string         `json:"run,omitempty" doc:"The run that recorded it."`
	Size    int64          `json:"size_bytes,omitempty" doc:"Of the file."`
	State   string         `json:"state" enum:"known,reading,ready,failed" doc:"What has become of it."`
	Problem string         `json:"problem,omitempty" doc:"Why it failed, and what to do."`
	Devices []OpenedDevice `json:"devices" doc:"Once it is ready."`
}

// OpenedDevice is a device of a snapshot.
type OpenedDevice struct {
	Device   int       `json:"device" doc:"Its number, as requests have it."`
	Name     string    `json:"name,omitempty" doc:"What the device is called, where the file says it."`
	Events   int       `json:"events" doc:"Of its trace."`
	Blocks   int       `json:"blocks" doc:"That its trace tells of, with those from before it."`
	Peak     mem.Bytes `json:"peak_bytes" doc:"Most that was allocated."`
	PeakAt   int       `json:"peak_at" doc:"The point of the peak: so many events before."`
	Reserved mem.Bytes `json:"peak_reserved_bytes" doc:"Most that was reserved."`
	Duration int64     `json:"duration_ns,omitempty" doc:"Of the trace, where it has times."`
}

// States of an OpenedSnapshot.
const (
	SnapshotKnown   = "known"
	SnapshotReading = "reading"
	SnapshotReady   = "ready"
	SnapshotFailed  = "failed"
)

type openedOne struct {
	info OpenedSnapshot // under Opened.mu, as is what follows
	ref  string         // what source understands
	part int            // of several snapshots of one reference
	drop func()         // deletes what was uploaded; nil: the file is not ours
	used time.Time

	reading   sync.Mutex // held while it is read
	reporting sync.Mutex // held while the report is made, which takes longer than all else; taken before reading
	snapshot  *mem.AllocatorSnapshot
	stepEnds  []int64
	wrote     time.Time // when the file was written; zero: its sources may not be shown
	explorers map[int]*explore.Explorer
	report    *report.Report
}

// defaultOpenedLimit is what snapshots that are kept may take.
const defaultOpenedLimit = 6 * mem.GiB

// Open begins with files that were named. Nothing is read yet.
func (e *Engine) Open(files []string) *Opened {
	o := &Opened{engine: e, limit: defaultOpenedLimit}
	for _, file := range files {
		o.add(OpenedSnapshot{ID: OpenedID(file), Name: fileName(file), From: "file"}, file, 0, nil)
	}
	return o
}

// OpenedID is the id under which Open opens a file.
func OpenedID(file string) string { return shortID("file:" + absolute(file)) }

// Upload adds a file that a stranger sent, which lies at a path of this process's own choice; drop deletes it.
func (o *Opened) Upload(path, name string, drop func()) OpenedSnapshot {
	return o.add(OpenedSnapshot{ID: shortID("upload:" + path), Name: name, From: "upload"}, path, 0, drop)
}

// Close forgets a snapshot. A file that was uploaded is deleted with it, any other stays where it is; that of a run
// goes with its run.
func (o *Opened) Close(ctx context.Context, id string) error {
	one, err := o.findOpened(ctx, id)
	if err != nil {
		return err
	}
	if one.info.From == "run" {
		return fail.Usage("delete the run instead", "the snapshot is part of run %s", one.info.Run)
	}
	o.mu.Lock()
	o.order = slices.DeleteFunc(o.order, func(other *openedOne) bool { return other == one })
	o.mu.Unlock()
	if one.drop != nil {
		one.drop()
	}
	return nil
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

func shortID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (o *Opened) add(info OpenedSnapshot, ref string, part int, drop func()) OpenedSnapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.order, func(one *openedOne) bool { return one.info.ID == info.ID }); i >= 0 {
		return o.order[i].info
	}
	info.State, info.Devices = SnapshotKnown, []OpenedDevice{}
	if stat, err := os.Stat(ref); err == nil && info.From != "run" {
		info.Size = stat.Size()
	}
	o.order = append(o.order, &openedOne{info: info, ref: ref, part: part, drop: drop})
	return info
}

// List gives what is open, in the order in which it came.
func (o *Opened) List() []OpenedSnapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]OpenedSnapshot, len(o.order))
	for i, one := range o.order {
		all[i] = one.info
	}
	return all
}

// Warm reads the files that are open, one after the other, until the context ends. failed is told of those that
// cannot be read.
func (o *Opened) Warm(ctx context.Context, failed func(error)) {
	for _, info := range o.List() {
		if ctx.Err() != nil {
			return
		}
		if _, err := o.Snapshot(ctx, info.ID); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// OfRun opens the snapshots that a run recorded. The id is one of the store's, never a path.
func (o *Opened) OfRun(ctx context.Context, id string) ([]OpenedSnapshot, error) {
	rows, err := o.engine.Runs(ctx, store.Filter{IDs: []string{id}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fail.Input("hightide ls lists them", "there is no run %q", id)
	}
	_, run, err := o.engine.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	all := []OpenedSnapshot{}
	decoded, _ := recordedSnapshots(run)
	for k, s := range decoded {
		all = append(all, o.add(OpenedSnapshot{ID: id + "-" + strconv.Itoa(k), Name: s.Name, From: "run", Run: id}, id, k,
			nil))
	}
	return all, nil
}

// findOpened is one that is open; that of a run is opened where an id of an earlier server names it.
func (o *Opened) findOpened(ctx context.Context, id string) (*openedOne, error) {
	if one := o.known(id); one != nil {
		return one, nil
	}
	if cut := strings.LastIndex(id, "-"); cut > 0 {
		if _, err := o.OfRun(ctx, id[:cut]); err == nil {
			if one := o.known(id); one != nil {
				return one, nil
			}
		}
	}
	return nil, fail.Input("open it again: hightide ui FILE", "no snapshot %q is open", id)
}

func (o *Opened) known(id string) *openedOne {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.order {
		if one.info.ID == id {
			one.used = time.Now()
			return one
		}
	}
	return nil
}

// Info is one as a list has it.
func (o *Opened) Info(ctx context.Context, id string) (OpenedSnapshot, error) {
	one, err := o.findOpened(ctx, id)
	if err != nil {
		return OpenedSnapshot{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return one.info, nil
}

// Snapshot is the file, read.
func (o *Opened) Snapshot(ctx context.Context, id string) (*mem.AllocatorSnapshot, error) {
	one, err := o.readOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	return one.snapshot, nil
}

// readOpened gives one that is read, as it was then: what is given away later stays with who has it.
func (o *Opened) readOpened(ctx context.Context, id string) (*openedOne, error) {
	one, err := o.findOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	one.reading.Lock()
	defer one.reading.Unlock()
	if one.snapshot == nil {
		o.state(one, SnapshotReading, nil)
		err := o.engine.readInto(ctx, one)
		if err != nil {
			o.state(one, SnapshotFailed, err)
			return nil, err
		}
		o.state(one, SnapshotReady, nil)
		o.shrink(one)
	}
	return &openedOne{info: one.info, snapshot: one.snapshot, stepEnds: one.stepEnds, wrote: one.wrote,
		explorers: one.explorers, report: one.report}, nil
}

func (o *Opened) state(one *openedOne, state string, problem error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one.info.State, one.info.Problem = state, ""
	if problem != nil {
		one.info.Problem = problem.Error()
	}
	if one.explorers != nil {
		one.info.Devices = openedDevices(one)
	}
}

func openedDevices(one *openedOne) []OpenedDevice {
	all := []OpenedDevice{}
	for _, number := range one.snapshot.AllDevices() {
		x := one.explorers[number]
		d := OpenedDevice{Device: number, Name: one.snapshot.DeviceNames[number], Events: x.Moments, Blocks: x.Len(),
			Peak:   x.Peak.Bytes,
			PeakAt: x.Peak.Moment + 1, Reserved: x.Most.Reserved}
		if x.Moments > 0 {
			d.Duration = x.TimeOf(x.Moments-1) - x.TimeOf(0)
		}
		all = append(all, d)
	}
	return all
}

// readInto reads a file and prepares its devices.
func (e *Engine) readInto(ctx context.Context, one *openedOne) error {
	_, all, err := e.snapshotsOf(ctx, one.ref)
	if err != nil {
		return err
	}
	if one.part >= len(all) {
		return fail.Input("hightide run --snapshot-on exit records one", "%s holds no allocator snapshot", one.info.Name)
	}
	s := all[one.part]
	if info, err := os.Stat(one.ref); err == nil && one.info.From == "file" {
		one.wrote = info.ModTime()
	}
	explorers := map[int]*explore.Explorer{}
	for _, device := range s.AllDevices() {
		if err := ctx.Err(); err != nil {
			return err
		}
		explorers[device] = explore.New(usage.FromTrace(s.AllocatorSnapshot, device, usage.Whole))
	}
	one.snapshot, one.stepEnds, one.explorers = s.AllocatorSnapshot, s.StepEnds, explorers
	return nil
}

// shrink gives away what was used longest ago until the rest fits; the newest stays in any case.
func (o *Opened) shrink(newest *openedOne) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := []*openedOne{}
	var sum mem.Bytes
	for _, one := range o.order {
		if one.info.State == SnapshotReady {
			kept = append(kept, one)
			sum += one.size()
		}
	}
	slices.SortFunc(kept, func(a, b *openedOne) int { return a.used.Compare(b.used) })
	for _, one := range kept {
		if sum <= o.limit || one == newest {
			continue
		}
		if size := one.size(); one.letGo() {
			sum -= size
		}
	}
}

// Rest gives away what was last asked for before a time, and says whether there was something.
func (o *Opened) Rest(before time.Time) (some bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.order {
		if one.info.State == SnapshotReady && one.used.Before(before) && one.letGo() {
			some = true
		}
	}
	return some
}

// Holds says whether a snapshot that was given out is still kept.
func (o *Opened) Holds(s *mem.AllocatorSnapshot) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.order, func(one *openedOne) bool {
		if !one.reading.TryLock() {
			return true // it may be that one
		}
		defer one.reading.Unlock()
		return one.snapshot == s
	})
}

// letGo forgets what was read, unless somebody reads it just now. Opened.mu is held.
func (one *openedOne) letGo() bool {
	if !one.reading.TryLock() {
		return false
	}
	defer one.reading.Unlock()
	one.snapshot, one.explorers, one.report = nil, nil, nil
	one.info.State = SnapshotKnown
	return true
}

func (one *openedOne) size() (sum mem.Bytes) {
	for _, x := range one.explorers {
		sum += x.Size()
	}
	return sum
}

// Explorer is a device of a snapshot, to be looked at; device -1: of those with a trace, the one with the highest peak.
func (o *Opened) Explorer(ctx context.Context, id string, device int) (*explore.Explorer, error) {
	one, err := o.readOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	if x := one.explorers[device]; x != nil {
		return x, nil
	}
	if device >= 0 {
		return nil, fail.Input("its list of devices has the others", "%s has no device %d", one.info.Name, device)
	}
	var best *explore.Explorer
	for _, d := range one.info.Devices {
		x := one.explorers[d.Device]
		if traced := x.Moments > 0; best == nil || traced && best.Moments == 0 ||
			traced == (best.Moments > 0) && x.Peak.Bytes > best.Peak.Bytes {
			best = x
		}
	}
	if best == nil {
		return nil, fail.Input(frameworks.WasHistoryOn,
			"%s holds nothing about a device", one.info.Name)
	}
	return best, nil
}

// Report explains a snapshot, as hightide explain does.
func (o *Opened) Report(ctx context.Context, id string) (*report.Report, error) {
	one, err := o.findOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	one.reporting.Lock()
	defer one.reporting.Unlock()
	read, err := o.readOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	if read.report != nil {
		return read.report, nil
	}
	x := trace.Explaining{Report: report.New(), Options: trace.Options{Top: 20, Pictures: true,
		Columns: pictureColumns / max(1, len(read.explorers)),
		Several: len(read.explorers) > 1, Replayer: replay.Adviser{Workers: o.engine.Runtime.Cores}}}
	if err := x.Add(trace.File{AllocatorSnapshot: read.snapshot, Name: read.info.Name, StepEnds: read.stepEnds}); err != nil {
		return nil, err
	}
	if err := x.Finish(); err != nil {
		return nil, err
	}
	x.Report.Run.Name = cmp.Or(x.Report.Run.Name, read.info.Name)
	one.reading.Lock()
	defer one.reading.Unlock()
	if one.snapshot == read.snapshot {
		one.report = x.Report
	}
	return x.Report, nil
}

// Lines are those around a frame's line in its source.
type Lines struct {
	File  string   `json:"file" doc:"The file, as the stack names it."`
	Line  int      `json:"line" doc:"The line that was asked for, from 1."`
	First int      `json:"first" doc:"The number of the first line of text, from 1."`
	Text  []string `json:"text" doc:"The lines around it."`
	Why   string   `json:"why,omitempty" doc:"Why there are none; absent: there are."`
}

const linesAround = 8

// Source quotes the source of a place that stacks of a snapshot name, by its number. Only Python files that stacks of
// a local file name are read, which did not change since it was written: of an upload or a run none is.
func (o *Opened) Source(ctx context.Context, id string, place int) (*Lines, error) {
	one, err := o.readOpened(ctx, id)
	if err != nil {
		return nil, err
	}
	all := one.snapshot.Stacks.Locations
	if place < 0 || place >= len(all) {
		return nil, fail.Input("stacks and flame graphs have the numbers of their frames' places",
			"%s has no frame at place %d", one.info.Name, place)
	}
	at := all[place]
	lines := &Lines{File: at.File, Line: at.Line, First: max(at.Line-linesAround, 1), Text: []string{}}
	switch quotes := quote.New(one.wrote, nil); {
	case at.Native || at.Line == 0:
		lines.Why = "native code: no line is known"
	case one.wrote.IsZero():
		lines.Why = "the sources of uploads and of recorded runs are not read"
	case !quotes.Quotable(at.File):
		lines.Why = "the file is not on this machine, is not Python, or changed after the snapshot was written"
	default:
		lines.Text = quotes.Around(at.File, lines.First, at.Line+linesAround)
	}
	return lines, nil
}
