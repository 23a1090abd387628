package run

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// A forked process shares its parent's pages until one of both writes to them. So a worker that only reads a list of
// Python objects copies it: each look writes a reference count.

const (
	leastCopies = 48 * mem.MiB // of all workers together
	leastEach   = 24 * mem.MiB // of one that reads a dataset of objects: what any worker of PyTorch writes to is about that
	leastUnseen = 64 * mem.MiB // of one of which is not known what it reads
)

// copier is a forked process that has copies of its parent's pages.
type copier struct {
	*mem.Process
	own, copied mem.Bytes // what no other process shares; and what of that it did not allocate itself
}

// copies finds forked workers whose own pages grow while they allocate nothing, and says what of a dataset is read
// there.
func copies(in *Input) (r report.Part) {
	byParent := map[uint32][]copier{}
	var parents []uint32
	for _, p := range in.Run.Processes {
		c, ok := in.copier(p)
		if !ok || in.datasetOf(p.Parent) == nil && c.copied < leastUnseen {
			continue
		}
		if byParent[p.Parent] == nil {
			parents = append(parents, p.Parent)
		}
		byParent[p.Parent] = append(byParent[p.Parent], c)
	}
	for _, parent := range parents {
		all, sum := byParent[parent], mem.Bytes(0)
		at, others := in.AtOnce(len(all), func(i int) (uint32, float64) { return all[i].ID, float64(all[i].copied) })
		workers := make([]copier, len(at))
		for n, i := range at {
			workers[n] = all[i]
			sum += all[i].copied
		}
		if sum >= leastCopies {
			r.Findings = append(r.Findings, in.copiesFinding(parent, workers, sum, len(others)))
		}
	}
	return r
}

// copier says what a process copied of its parent's pages: of its own pages, those that it did not allocate. Each copy
// is a page fault.
func (in *Input) copier(p *mem.Process) (c copier, ok bool) {
	if p.Number("heap_walk").Known() {
		return c, false // to look through its heap the agent wrote to all of it
	}
	parent := in.Run.Process(p.Parent)
	uss, rss, faults := in.Find(p.ID, mem.SeriesUSS), in.Find(p.ID, mem.SeriesRSS), in.Find(p.ID, mem.SeriesMinorFaults)
	if parent == nil || uss == nil || rss == nil || faults == nil ||
		mem.CommandLine(parent.Command) != mem.CommandLine(p.Command) {
		return c, false
	}
	if end, ended := parent.End.Get(); ended && end < uss.Times[0] {
		return c, false // nobody shares with it any more
	}
	allocated := in.allocatedSince(p, rss)
	for i, own := range uss.Values {
		if end, ended := parent.End.Get(); ended && uss.Times[i] >= end {
			break
		}
		if copied := mem.Bytes(own - allocated(uss.Times[i])); copied > c.copied {
			c.own, c.copied = mem.Bytes(own), copied
		}
	}
	c.Process = p
	faulted := mem.Bytes(faults.Values[faults.Peak()]) * mem.Bytes(max(in.Run.Info.Host.PageSize, 1))
	return c, c.copied >= leastEach && faulted >= c.copied/2
}

// allocatedSince says what a forked process has allocated itself by a time, at least; it is asked in the order of time.
// What it allocates raises its RSS, while a copied page takes the place of the one that was shared. Two things hide some
// of it from its RSS: what it allocated before that was first read, for which its parent's stands, and what took the
// place of memory that it let go. The sampled heap knows of the latter. Where there is none, all that it let go may have
// been replaced.
func (in *Input) allocatedSince(p *mem.Process, rss *mem.Series) func(time int64) int64 {
	first, heap := rss.Values[0], in.Find(p.ID, mem.SeriesHeapLive)
	if before := in.Find(p.Parent, mem.SeriesRSS); before != nil {
		first = min(first, before.At(p.Start).Or(first))
	}
	read, sampled := 0, 0
	highest, fell, lives := first, int64(0), int64(0)
	return func(time int64) int64 {
		for ; read < len(rss.Times) && rss.Times[read] <= time; read++ {
			highest = max(highest, rss.Values[read])
			fell = max(fell, highest-rss.Values[read])
		}
		grew := rss.Values[max(read-1, 0)] - first
		if heap == nil {
			return max(grew, 0) + fell
		}
		for ; sampled < len(heap.Times) && heap.Times[sampled] <= time; sampled++ {
			lives = heap.Values[sampled]
		}
		soon := lives // pages may have been read between two of its samples
		if sampled < len(heap.Values) {
			soon = heap.Values[sampled]
		}
		return max(grew, lives, soon, 0)
	}
}

// copiesFinding puts it into words.
func (in *Input) copiesFinding(parent uint32, workers []copier, sum mem.Bytes, others int) report.Finding {
	kind, most := "forked process", workers[0]
	if workers[0].Role == "dataloader" {
		kind = "DataLoader worker"
	}
	for _, c := range workers {
		if c.copied > most.copied {
			most = c
		}
	}
	who := report.Counted(int64(len(workers)), kind)
	f := report.Finding{Kind: report.KindCopies, Severity: report.Warning, Process: most.ID, Bytes: mem.Some(int64(sum)),
		Label: mem.Measured,
		Title: fmt.Sprintf("%s copied %v of their parent's memory", who, sum)}
	if len(workers) == 1 {
		f.Title = strings.Replace(f.Title, "their", "its", 1)
	}
	f.Text = fmt.Sprintf("%s took %v of pages for themselves that they did not allocate, up to %v in one (measured: "+
		"USS, less what they allocated by RSS or the sampled heap). They are copies of what %s had made before it forked them: a page is copied when "+
		"one of both writes to it.",
		who, sum, most.copied, in.ProcessName(parent))
	if others > 0 {
		f.Text += fmt.Sprintf(" So did %s at other times: these ran at once.", report.Counted(int64(others), "process"))
	}
	data := in.datasetOf(parent)
	if data == nil {
		f.Text += " Python writes a reference count into each object that is looked at, and its collector into each that " +
			"it visits. What they read was not seen."
		f.Advice = "Keep large data that workers read in NumPy arrays, tensors or memory-mapped files, which are one " +
			"object each. Call gc.freeze() before the workers are started."
		return f
	}
	if data.Where != nil {
		f.File, f.Line = data.Where.File, data.Where.Line
	}
	f.Holder = data.Facts["name"]
	at := ""
	if f.File != "" {
		at = " (" + mem.LineName(*data.Where) + ")"
	}
	f.Text += fmt.Sprintf(" The %s `%s`%s of the dataset holds %d items (%s), about %v with them (estimated). Python "+
		"writes a reference count into each object that is looked at, so reading it copies it into each worker.",
		data.Facts["kind"], f.Holder, at, data.Numbers["items"], data.Facts["contains"], mem.Bytes(data.Bytes.Or(0)))
	f.Advice = fmt.Sprintf("Keep `%s` in few objects: a NumPy array (np.array(…), of strings dtype \"S\" or one bytes "+
		"object with offsets), a tensor, or an Arrow table. That saves up to %v in each worker.",
		f.Holder, most.copied)
	return f
}

// datasetOf is the largest container of Python objects in a dataset that a process gave to workers; nil where none
// was seen.
func (in *Input) datasetOf(process uint32) (found *mem.Event) {
	for i := range in.Run.Events {
		e := &in.Run.Events[i]
		if e.Process == process && e.Kind == "dataset" && (found == nil || e.Bytes.Or(0) > found.Bytes.Or(0)) {
			found = e
		}
	}
	return found
}
