package run

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// peak says of what the high-water marks were made.
func peak(in *Input) (r report.Part) {
	if in.Lead.Series != nil {
		in.composition(&r, in.Lead.Series.Times[in.Lead.Series.Peak()], in.Lead)
	}
	return r
}

// composition says what the peak of the host's memory was made of. The rows add up to the process
// tree; each figure says how it was come by.
func (in *Input) composition(r *report.Part, at int64, l facts.Lead) {
	process := in.LargestAt(at, facts.Lead{})
	if l.Process != 0 {
		process = l.Process
	}
	rss, ok := in.RSSAt(process, at)
	if !ok {
		return
	}
	t := composition{Table: report.Table{
		Name: "composition", Title: fmt.Sprintf("What %s held at the %s", in.ProcessName(process), in.peakName()),
		Columns: []report.Column{report.TextColumn("what", "what"), report.BytesColumn("bytes", "bytes", mem.Measured),
			report.BytesColumn("error", "±", mem.Sampled), report.TextColumn("label", "label"), report.TextColumn("part", ""),
			report.TextColumn("kind", "")},
	}}
	model := in.modelRows(&t, process)
	rest, label := rss-model, mem.Measured
	if heap, ok := in.HeapAt(process, at, rss); ok {
		other := max(min(int64(heap.Live), rss)-model, 0) // what was freed since, or not looked at yet, is not held now
		t.Note = strings.TrimSpace(absentNote(heap.Absent))
		what, kind, part := "allocations", "allocations", "allocations"
		switch {
		case in.HeapTraced(): // a model's tensors are native memory
			other, kind, part = max(min(int64(heap.Live), rss-model), 0), "python", "Python's memory"
			what = "Python's memory, by tracemalloc"
		case model > 0:
			what = "other allocations (activations, data, optimizer's temporaries)"
		}
		t.add(kind, part, what, other, int64(usage.Half95(heap.Variance, heap.Live)), in.HeapLabel())
		rest, label = rss-model-other, mem.Estimated
	}
	if free := min(in.HolesAt(process, at).Or(0), rest); free > 0 {
		t.add("free", "free inside malloc's arenas", "free inside malloc's arenas: holes between blocks in use", free,
			-1, mem.Estimated)
		rest -= free
	}
	files, shared := in.kindsAt(process, at, rss, rss-rest)
	if files = min(files, rest); files > 0 {
		t.add("files", "mapped files", "mapped files: libraries, and data read through mmap", files, -1, mem.Measured)
		rest -= files
	}
	if shared = min(shared, rest); shared > 0 {
		t.add("shared", "shared memory", "shared memory that no line is known of, at least", shared, -1, mem.Measured)
		rest -= shared
	}
	t.add("rest", "rest", in.restName(process, files > 0), max(rest, 0), -1, label)
	own := len(t.Rows)
	for _, p := range in.Run.Processes {
		if p.ID == process {
			continue
		}
		if v, ok := in.RSSAt(p.ID, at); ok && p.Start <= at && p.End.Or(at) >= at {
			t.add("process", facts.ProcessKind(p),
				"process "+facts.ProcessName(p)+" (RSS: pages it shares count again)", v, -1, mem.Measured)
		}
		if len(t.Rows) > 24 {
			break
		}
	}
	if len(t.Rows) > own {
		t.Title += ", and the other processes"
	}
	r.AddTable(t.Table)
	r.Parts = t.parts
}

// kindsAt is what of a process' resident memory was of mapped files, and what was shared memory beyond all that is
// known by line, explained.
func (in *Input) kindsAt(process uint32, at, rss, explained int64) (files, shared int64) {
	of, all := in.Find(process, mem.SeriesRSSFile), in.Find(process, mem.SeriesRSS)
	if of == nil {
		return 0, 0
	}
	if _, read := slices.BinarySearch(of.Times, at); !read && all.At(at-1).Or(0) < rss/2 {
		return 0, 0 // the kernel's mark of what it had between two readings: of what kind nobody knows
	}
	files = of.At(at).Or(0)
	if s := in.Find(process, mem.SeriesRSSShared); s != nil {
		shared = s.At(at).Or(0) - explained
	}
	return min(files, rss), max(shared, 0)
}

// restName says what the rest may be; files: those of libraries are told apart. What a forked process has of its
// parent it did not allocate: a worker of a DataLoader begins with all that the training had.
func (in *Input) restName(process uint32, files bool) string {
	var parent *mem.Process
	p := in.Run.Process(process)
	if p != nil {
		parent = in.Run.Process(p.Parent)
	}
	switch {
	case in.HeapTraced():
		return "rest: native memory, tracemalloc's own, unexplained"
	case parent != nil && !in.Attached() && len(p.Command) > 0 && slices.Equal(p.Command, parent.Command):
		return "rest: what a fork left of its parent, interpreter, unexplained"
	case in.Attached() && files:
		return "rest: what was there before, unexplained"
	case in.Attached():
		return "rest: what was there before, interpreter, libraries, unexplained"
	case files:
		return "rest: interpreter, allocator's own, unexplained"
	}
	return "rest: interpreter, libraries, allocator's own, unexplained"
}

// peakName is what the moment is called that the composition is of.
func (in *Input) peakName() string {
	if in.Peak.Time.Known() {
		return "peak"
	}
	return "highest sample"
}

// composition is what the peak was made of, as a table and for who compares.
type composition struct {
	report.Table
	parts []report.Holding
}

// add adds a row; part is what it is called beside another run, where numbers of processes and remarks differ.
func (t *composition) add(kind, part, what string, bytes, half int64, label mem.Label) {
	var e mem.Optional
	if half >= 0 {
		e = mem.Some(half)
	}
	t.Add(what, bytes, e, label, part, kind)
	t.parts = append(t.parts, report.Holding{Kind: kind, Name: part, Bytes: bytes, Half: max(half, 0), Label: label})
}

// modelRows adds the model's own tensors that live in host memory, and returns their sum.
func (in *Input) modelRows(t *composition, process uint32) int64 {
	var sum int64
	for _, m := range in.Run.Models {
		if m.Process != process || m.Device != "cpu" {
			continue
		}
		for _, part := range []struct {
			kind, name string
			bytes      mem.Optional
		}{{"parameters", "model parameters", m.Parameters}, {"gradients", "gradients", m.Gradients},
			{"optimizer", "optimizer state", m.Optimizer}} {
			if v, ok := part.bytes.Get(); ok && v > 0 {
				t.add(part.kind, part.name, part.name, v, -1, mem.Measured)
				sum += v
			}
		}
	}
	return sum
}

// absentNote says what is allocated besides, and takes no memory.
func absentNote(absent mem.Bytes) string {
	if absent < mem.MiB {
		return ""
	}
	return fmt.Sprintf(" Another %v are allocated and not resident: never touched, or given back. They take no memory.",
		absent)
}
