package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/analyze/trace"
	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/format/stacks"
	"hightide/internal/format/torch"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/memray"
	"hightide/internal/modelfile"
	"hightide/internal/pickle"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// source is what a reference means: a file of any kind that package format reads, compressed or not, "-" for
// stdin, or a run.
type source struct {
	*format.Document
	ref  string
	open opener // of files that belong to it
	from string // as a row says

	model  *modelfile.Model // of a model's file, which is known by its name
	dumped string           // of a folder of programs, of which this is one: how many there are
}

// opener opens a file by name, where files of a snapshot or run are.
type opener func(name string) (io.ReadCloser, error)

// source reads what a reference means. A file that is not there, or of no known kind, is an input error
// with a hint.
func (e *Engine) source(ctx context.Context, ref string) (*source, error) {
	if inside := filepath.Join(ref, store.Recording); isFile(inside) {
		ref = inside
	}
	if isFile(ref) && modelfile.Named(ref) {
		return modelSource(ref)
	}
	if isFile(ref) {
		document, err := e.document(ctx, ref)
		if errors.Is(err, format.ErrUnknown) && isProgramText(ref) {
			err = textAlone("%s is a program of XLA as text", ref)
		}
		return &source{Document: document, ref: ref, open: beside(ref)}, err
	}
	if program, err := e.dumped(ctx, ref); program != nil || err != nil {
		return program, err
	}
	row, run, err := e.Load(ctx, ref)
	open := func(name string) (io.ReadCloser, error) {
		s, err := e.store()
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return s.Open(row.ID, name)
	}
	return &source{Document: &format.Document{Recording: run}, ref: ref, open: open, from: row.From}, err
}

// modelSource reads what a model's file says of its weights.
func modelSource(ref string) (*source, error) {
	model, err := modelfile.Read(os.DirFS(filepath.Dir(ref)), filepath.Base(ref))
	if err != nil {
		return nil, fail.Input("the file is damaged, or of a kind that is not known", "read %s: %w", ref, err)
	}
	return &source{Document: &format.Document{Format: "a model"}, ref: ref, open: beside(ref), model: model}, nil
}

// isFile says whether a reference is something to read as it is, were it a pipe, and not a run.
func isFile(ref string) bool {
	info, err := os.Stat(ref)
	return ref == "-" || err == nil && !info.IsDir()
}

// beside opens what lies in the folder of a file.
func beside(path string) opener {
	return func(name string) (io.ReadCloser, error) {
		if path == "-" {
			return nil, fs.ErrNotExist
		}
		return os.OpenInRoot(filepath.Dir(path), name)
	}
}

// fileName is how a report calls a file.
func fileName(ref string) string {
	switch {
	case ref == "-":
		return "stdin"
	case strings.HasPrefix(ref, "/dev/fd/"): // a pipe of the shell's
		return "pipe " + filepath.Base(ref)
	}
	return filepath.Base(ref)
}

// document reads a file, with its kind told from its content.
func (e *Engine) document(ctx context.Context, path string) (*format.Document, error) {
	if path == "-" {
		return e.decode(ctx, e.stdin(), "stdin")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Input("name a file that can be read", "%w", err)
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.Close() })() // what still reads it fails
	document, err := e.decode(ctx, file, path)
	if !errors.Is(err, stacks.ErrMemray) {
		return document, err
	}
	if e.NoPrograms {
		return nil, fail.Input("memray transform csv makes a table of it that can be read",
			"%s is a capture of memray, and starting memray to read it is not allowed here", path)
	}
	err = memray.Table(ctx, path, func(table io.Reader) (err error) {
		document, err = e.decode(ctx, table, path)
		return err
	})
	return document, err
}

// decode reads a file and explains why it cannot be read.
func (e *Engine) decode(ctx context.Context, r io.Reader, name string) (*format.Document, error) {
	if !isSmall(r) {
		defer e.Runtime.TuneTo(launch.Reading)()
	}
	document, err := format.Decode(r, name)
	var unread *format.UnreadError
	switch {
	case err == nil:
		return document, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unread):
		return nil, fail.Input(unread.Instead, "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrText):
		return nil, fail.Input("paste the error itself, whole; a kind that is not known is not guessed. "+
			"hightide about intake lists what is read", "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrUnknown):
		return nil, fail.Input("hightide reads "+format.Known(), "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrEmpty):
		return nil, fail.Input("did what wrote it end too early, or was the disk full?", "%s %w", filepath.Base(name), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fail.Input("was it copied whole, and had what wrote it ended?", "%s ends in the middle", name)
	case errors.Is(err, stacks.ErrMemray):
		return nil, fail.Input("give memray's captures by name, not through a pipe", "%s: %w", name, err)
	case errors.Is(err, pickle.ErrUnsafe):
		return nil, fail.Input("a genuine snapshot holds plain data only: do not load this file with Python's pickle",
			"%s: %w", name, err)
	}
	return nil, fail.Input("is the file whole, and of this kind?", "%s: %w", name, err)
}

// isSmall says whether reading takes no more than some 100 MB. A larger snapshot becomes columns that hold no
// pointers: collecting often costs little then, and keeps what has been outgrown from piling up beside them.
func isSmall(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() < 16<<20
}

// snapshot is an allocator snapshot, with what it is called and what its run knows of it.
type snapshot = trace.File

// Message is a pasted out-of-memory message, explained in sentences. It is an error where a report was asked for.
type Message struct {
	Sentences []string        `json:"message"`
	Figures   *mem.OOMMessage `json:"figures,omitempty"`
}

func (m Message) Error() string { return strings.Join(m.Sentences, " ") }

// Text is the message in sentences, a line each, and the buffers that it lists as a table.
func (m Message) Text(o report.TextOptions) string {
	text := strings.Join(m.Sentences, "\n") + "\n"
	if m.Figures == nil || len(m.Figures.Largest) == 0 {
		return text
	}
	t := report.Table{Name: "largest", Title: "Largest buffers that XLA lists; they need not live at once",
		Columns: []report.Column{report.BytesColumn("bytes", "size", ""), report.TextColumn("line", "line"),
			report.TextColumn("shape", "shape"), report.TextColumn("kind", "kind"), report.TextColumn("operator", "operator")}}
	for _, b := range m.Figures.Largest {
		line := ""
		if b.File != "" {
			line = mem.LineName(mem.Location{File: b.File, Line: b.Line})
		}
		t.Add(b.Size, line, b.Shape, b.Kind, b.Operator)
	}
	return text + t.Text(o)
}

// snapshots gives the allocator snapshots of a file or run, with their owners where there are some. A file of
// another kind that says nothing of an allocator is an input error.
func (s *source) snapshots() (all []snapshot, err error) {
	switch {
	case s.Snapshot != nil:
		all = []snapshot{{AllocatorSnapshot: s.Snapshot, Name: fileName(s.ref)}}
	case s.Recording != nil:
		all, _ = recordedSnapshots(s.Recording)
	case len(s.Words) > 0:
		return nil, fail.Input("explain it alone", "%s is a message: %w", fileName(s.ref), Message{s.Words, s.OOM})
	default:
		return nil, fail.Input("hightide explain "+s.ref+" shows it", "%s is %s, which holds no allocator snapshot", s.ref,
			s.Format)
	}
	for _, one := range all {
		if err := addOwners(one, s.open); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// snapshotsOf reads what a reference means, for its allocator snapshots.
func (e *Engine) snapshotsOf(ctx context.Context, ref string) (*source, []snapshot, error) {
	from, err := e.source(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	all, err := from.snapshots()
	return from, all, err
}

// addOwners adds what the agent wrote beside a snapshot (docs/formats/imagined.md), if it did.
func addOwners(s snapshot, open opener) error {
	name := s.Name + ".owners.json"
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail.Input("make it readable, or move it away", "%w", err)
	}
	defer file.Close()
	if s.Owners, err = torch.Owners(file); err != nil {
		return fail.Input("move it away to do without", "%s: %w", name, err)
	}
	return nil
}

// recordedSnapshots are those of a recording that can be read, and why the others cannot.
func recordedSnapshots(run *mem.Run) (all []snapshot, failed []error) {
	for _, file := range run.Snapshots {
		if file.IsProfile() {
			continue
		}
		s, err := snapshotIn(file)
		if err != nil {
			failed = append(failed, fmt.Errorf("allocator snapshot %s cannot be read: %w", file.Name, err))
			continue
		}
		if l := run.Info.Label; l == mem.Imagined || l == mem.Replayed {
			s.Label = l
		}
		all = append(all, snapshot{AllocatorSnapshot: s, Name: file.Name, StepEnds: stepEnds(run, file.Process),
			Process: file.Process})
	}
	return all, failed
}

// snapshotIn reads one file of a recording: a snapshot of PyTorch, or what TensorFlow's profiler told.
func snapshotIn(file *mem.SnapshotFile) (*mem.AllocatorSnapshot, error) {
	if file.Format != mem.HistoryFormat {
		return torch.Read(bytes.NewReader(file.Data))
	}
	d, err := format.Decode(bytes.NewReader(file.Data), file.Name)
	if err == nil && d.Snapshot == nil {
		err = errors.New("it is of another format")
	}
	if err != nil {
		return nil, err
	}
	return d.Snapshot, nil
}

// recordedProfiles reads them into a map by name, and says why some cannot be read.
func recordedProfiles(run *mem.Run, into map[string]*mem.Profile) (failed []error) {
	for _, file := range run.Snapshots {
		if !file.IsProfile() {
			continue
		}
		d, err := format.Decode(bytes.NewReader(file.Data), file.Name)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("memory profile %s cannot be read: %w", file.Name, err))
		case d.Profile != nil:
			into[file.Name] = d.Profile
		}
	}
	return failed
}

// stepEnds are those of a process, of the wall clock.
func stepEnds(run *mem.Run, process uint32) (ends []int64) {
	for _, s := range run.Steps {
		if s.Process == process {
			ends = append(ends, run.Info.StartWall+s.Time-run.Info.StartMono)
		}
	}
	return ends
}

// Gathered is what references mean to a front door that shows things: files of snapshots, and runs.
type Gathered struct {
	Snapshots []string    // paths, in their order
	Runs      []store.Run // of the store, and visitors
}

// snapshotFormats are the formats that become an allocator snapshot.
var snapshotFormats = []string{"torch-pickle", "torch-json", "profiler-trace", "xspace"}

// Gather looks at references as a person names them: a snapshot, a recording, a folder of these, or a run of the
// store. Recordings outside the store become the engine's visitors. Of a file only the beginning is read.
func (e *Engine) Gather(ctx context.Context, refs []string) (*Gathered, error) {
	g := &Gathered{}
	for _, ref := range refs {
		if err := e.gather(ctx, g, ref); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (e *Engine) gather(ctx context.Context, g *Gathered, ref string) error {
	if ref == "-" {
		return fail.Usage("write it to a file, and name that", "nothing is read from stdin here")
	}
	info, err := os.Stat(ref)
	switch {
	case err == nil && info.IsDir():
		return e.gatherFolder(ctx, g, ref)
	case err == nil:
		return e.gatherFile(ctx, g, ref)
	}
	run, err := e.Resolve(ctx, ref)
	if err == nil {
		g.Runs = append(g.Runs, run)
	}
	return err
}

// gatherFolder takes the recording of a run's folder, else every file of a folder that can be shown.
func (e *Engine) gatherFolder(ctx context.Context, g *Gathered, folder string) error {
	if inside := filepath.Join(folder, store.Recording); isFile(inside) {
		return e.gatherFile(ctx, g, inside)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fail.Input("name a folder that can be read", "%w", err)
	}
	found := 0
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch kind, _, err := tellFormat(path); {
		case err != nil || !isFile(path):
		case kind.Name == recordingFormat || slices.Contains(snapshotFormats, kind.Name):
			if err := e.gatherFile(ctx, g, path); err != nil {
				return err
			}
			found++
		}
	}
	if found == 0 {
		return fail.Input("name a file, or a folder with snapshots in it", "%s holds neither a snapshot nor a recording",
			folder)
	}
	return nil
}

const recordingFormat = "recording"

func (e *Engine) gatherFile(ctx context.Context, g *Gathered, path string) error {
	kind, compressed, err := tellFormat(path)
	switch {
	case errors.Is(err, format.ErrUnknown):
		return fail.Input("hightide reads "+format.Known(), "%s: %w", path, err)
	case errors.Is(err, format.ErrEmpty):
		return fail.Input("did what wrote it end too early, or was the disk full?", "%s %w", path, err)
	case err != nil:
		return fail.Input("name a file that can be read", "%s: %w", path, err)
	case slices.Contains(snapshotFormats, kind.Name):
		g.Snapshots = append(g.Snapshots, path)
	case kind.Name == recordingFormat && compressed:
		return fail.Input("unpack it first, as by gunzip or unzstd", "%s is a compressed recording", path)
	case kind.Name == recordingFormat:
		run, err := e.Visit(ctx, path, store.FromFile, nil)
		if err != nil {
			return err
		}
		g.Runs = append(g.Runs, run)
	default:
		return fail.Input("hightide explain "+path+" shows it", "%s is %s, which this page does not show", path, kind.Reads)
	}
	return nil
}

// Visit has a recording outside the store listed with its runs, and says how it is called. The function drop takes
// its file away when the run is deleted, or at once where the store has the run already. Nil: the file stays.
func (e *Engine) Visit(ctx context.Context, path, from string, drop func()) (store.Run, error) {
	if e.Visitors == nil {
		e.Visitors = new(store.Visitors)
	}
	var known bool
	run, err := inStore(ctx, e, func(s store.Store) (run store.Run, err error) {
		run, known, err = e.Visitors.Add(s, absolute(path), from, drop)
		return run, err
	})
	if err == nil && known && drop != nil {
		drop()
	}
	return run, err
}

func tellFormat(path string) (*format.Format, bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	kind, compressed, err := format.Tell(file)
	if err != nil && !errors.Is(err, format.ErrUnknown) && !errors.Is(err, format.ErrEmpty) {
		err = fmt.Errorf("it cannot be read: %w", err)
	}
	return kind, compressed, err
}

// FileFacts is what a stranger's file turned out to be.
type FileFacts struct {
	Format  string `json:"format" doc:"The format that it was read as, by its name in the list of formats."`
	Devices int    `json:"devices" doc:"How many devices it tells of."`
	Events  int    `json:"events" doc:"Events of allocators' histories; of a recording, those of its snapshots."`
	Blocks  int    `json:"blocks" doc:"Blocks at the end."`
}

// CheckFile reads a stranger's file whole, as an allocator snapshot, a trace of one or a recording, and says what is
// in it. It starts no other program, whatever the file is. Meant for a process of its own, with limits: reading may
// take whatever the file makes it take.
func (e *Engine) CheckFile(ctx context.Context, path string) (*FileFacts, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Input("name a file that can be read", "%w", err)
	}
	defer file.Close()
	document, err := e.decode(ctx, file, "the file")
	if errors.Is(err, format.ErrUnknown) { // the list of all formats would name many that this page does not show
		return nil, fail.Input("send a memory snapshot of PyTorch, or a recording of hightide", "the file: %w",
			format.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	if document.Format == recordingFormat {
		return recordingFacts(file, document.Recording)
	}
	if document.Snapshot == nil {
		return nil, fail.Input("hightide explain FILE shows it", "the file is %s, which this page does not show",
			kindOf(document.Format))
	}
	facts := &FileFacts{Format: document.Format}
	facts.count(document.Snapshot)
	return facts, nil
}

func (f *FileFacts) count(s *mem.AllocatorSnapshot) {
	f.Devices = max(f.Devices, len(s.AllDevices()))
	for i := range s.Traces {
		f.Events += len(s.Traces[i].Action)
	}
	for i := range s.Segments {
		f.Blocks += len(s.Segments[i].Blocks)
	}
}

// recordingFacts reads what the recording holds as whoever shows it will.
func recordingFacts(file *os.File, run *mem.Run) (*FileFacts, error) {
	start := make([]byte, len(wire.Magic))
	if _, err := file.ReadAt(start, 0); err != nil || string(start) != wire.Magic {
		return nil, fail.Input("unpack it first, as by gunzip or unzstd", "the file is a compressed recording")
	}
	facts := &FileFacts{Format: recordingFormat}
	decoded, _ := recordedSnapshots(run)
	for _, s := range decoded {
		facts.count(s.AllocatorSnapshot)
	}
	AnalyzeFrom(store.FromUpload, run)
	return facts, nil
}

// kindOf says in words what a format is.
func kindOf(name string) string {
	for _, f := range format.Formats {
		if f.Name == name && f.Reads != "" {
			return f.Reads
		}
	}
	return "of another kind"
}

// A folder that XLA dumped its programs into has a file for each, and many more.
const (
	programEnding = "after_optimizations.hlo.pb" // of what has an assignment of buffers
	programsRead  = 500                          // of a folder, those of the largest files
)

// isProgramText knows what XLA dumps of a program where it was not asked for protos.
func isProgramText(name string) bool {
	_, ending, _ := strings.Cut(name, strings.TrimSuffix(programEnding, ".hlo.pb"))
	return ending == ".txt" || ending == "-buffer-assignment.txt"
}

func textAlone(text, name string) error {
	return fail.Input(`dump again with XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_proto"`,
		text+", and of those the protos are read", name)
}

// dumped reads the program of a folder that needs the most; nil: it has none, or is no folder.
func (e *Engine) dumped(ctx context.Context, folder string) (*source, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil // it is told of as anything else that cannot be read
	}
	size, texts := map[string]int64{}, false
	for _, entry := range entries {
		texts = texts || isProgramText(entry.Name())
		info, err := entry.Info()
		if err == nil && strings.HasSuffix(entry.Name(), programEnding) && info.Mode().IsRegular() {
			size[entry.Name()] = info.Size()
		}
	}
	names := slices.SortedFunc(maps.Keys(size), func(a, b string) int {
		return cmp.Or(cmp.Compare(size[b], size[a]), cmp.Compare(a, b))
	})
	var most *source
	var needs int64
	read, failed := 0, error(fs.ErrNotExist)
	for _, name := range names[:min(len(names), programsRead)] {
		path := filepath.Join(folder, name)
		document, err := e.document(ctx, path)
		if err != nil || document.Profile == nil {
			failed = cmp.Or(err, failed)
			continue
		}
		read++
		if of := whole(document.Profile); most == nil || of > needs {
			most, needs = &source{Document: document, ref: path, open: beside(path)}, of
		}
	}
	if most == nil {
		if len(names) > 0 {
			return nil, failed
		}
		if texts {
			return nil, textAlone("%s has programs of XLA as text alone", folder)
		}
		return nil, nil
	}
	most.dumped = fmt.Sprintf("%s has %s of XLA. This is the one that needs the most.", folder,
		report.Counted(int64(read), "program"))
	return most, nil
}

// whole is what all samples of a profile have together.
func whole(p *mem.Profile) (sum int64) {
	for _, s := range p.Samples {
		sum += s.Values[p.Default]
	}
	return sum
}
