package run

import (
	"fmt"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// devices compares what a device has in use with what each framework's allocator holds, and what
// the allocator holds with what it has handed out.
func devices(in *Input) (r report.Part) {
	t := report.Table{
		Name: "devices", Title: "Devices",
		Columns: []report.Column{report.TextColumn("device", "device"), report.TextColumn("process", "process"),
			report.TextColumn("framework", "framework"), report.BytesColumn("allocated", "peak allocated", in.Label()),
			report.BytesColumn("reserved", "peak reserved", in.Label()),
			report.BytesColumn("process_used", "peak of process", in.Label()),
			report.BytesColumn("used", "peak used", in.Label()), report.BytesColumn("inactive", "peak unusable gaps",
				in.Label()), report.CountColumn("retries", "retries")},
	}
	type key struct {
		process           uint32
		device, framework string
	}
	index := map[key]int{}
	column := map[mem.Quantity]int{mem.SeriesAllocated: 3, mem.SeriesReserved: 4, mem.SeriesDeviceProcess: 5,
		mem.SeriesDeviceUsed:    6,
		mem.SeriesInactiveSplit: 7, mem.SeriesRetries: 8}
	for _, s := range in.Run.Series {
		at, ok := column[s.Name]
		if !ok || len(s.Values) == 0 {
			continue
		}
		k := key{s.Process, s.Device, s.Framework}
		i, ok := index[k]
		if !ok {
			i = len(t.Rows)
			index[k] = i
			process := ""
			if s.Process != 0 {
				process = in.ProcessName(s.Process)
			}
			t.Add(s.Device, process, s.Framework)
		}
		t.Rows[i][at] = s.Values[s.Peak()]
		if s.Name == mem.SeriesInactiveSplit {
			in.fragmentation(&r, s)
		}
	}
	for _, p := range in.Run.Imagined.Peaks { // between two readings there was more, and the process itself knows
		if i, ok := index[key{p.Process, p.Device, frameworks.Torch}]; ok {
			raise(t.Rows[i], 3, p.Allocated)
			raise(t.Rows[i], 4, p.Reserved)
		}
	}
	r.AddTable(t)
	in.preallocated(&r)
	if in.Verdict == nil { // else the devices say what each byte is for
		in.gap(&r)
	}
	return r
}

// raise sets a figure of a row to a higher one.
func raise(row []report.Cell, at int, to mem.Optional) {
	if now, _ := row[at].(int64); to.Known() && to.Or(0) > now {
		row[at] = to.Or(0)
	}
}

const (
	leastFragmented = 512 * mem.MiB
	leastGap        = 1 * mem.GiB
)

// fragmentation: memory that the allocator has cached in pieces it cannot give to others.
func (in *Input) fragmentation(r *report.Part, s *mem.Series) {
	reserved := in.sameAllocator(s, mem.SeriesReserved)
	if reserved == nil {
		return
	}
	at := reserved.Times[reserved.Peak()]
	gaps, whole := s.At(at).Or(0), reserved.Values[reserved.Peak()]
	if mem.Bytes(gaps) < leastFragmented || whole <= 0 || gaps < whole/5 {
		return
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindFragmentation, Severity: report.Warning, Process: s.Process, Bytes: mem.Some(gaps), Label: s.Label,
		Title: fmt.Sprintf("%v on %s is cached in gaps", mem.Bytes(gaps), s.Device),
		Text: fmt.Sprintf("At the peak of reserved memory, %v of %v (%d %%, %s) lay idle in segments that other tensors pin.",
			mem.Bytes(gaps), mem.Bytes(whole), gaps*100/whole, s.Label),
		Advice: in.againstGaps(s),
	})
}

// preallocated tells what a framework took of a device as it started from what it used: nothing else can have the rest.
func (in *Input) preallocated(r *report.Part) {
	for _, pool := range in.Run.Series {
		of := frameworks.Of(pool.Framework)
		if pool.Name != mem.SeriesReserved || of.Preallocates == "" || len(pool.Values) == 0 {
			continue
		}
		used := in.sameAllocator(pool, mem.SeriesAllocated)
		if used == nil {
			continue
		}
		whole, most := pool.Values[pool.Peak()], used.Values[used.Peak()]
		if pool.Values[0] < whole/10*9 || most >= whole/2 {
			continue
		}
		r.AddNote(fmt.Sprintf("%s had %v of %s from its first reading on, of which arrays and programs used at most %v "+
			"at any reading (%s). %s", of.Title, mem.Bytes(whole), pool.Device, mem.Bytes(most), pool.Label, of.Preallocates))
	}
}

// againstGaps is what to try where a framework's allocator cannot use what it has cached.
func (in *Input) againstGaps(s *mem.Series) string {
	of := frameworks.Of(s.Framework)
	if of.AgainstGaps == nil {
		return ""
	}
	var facts map[string]string
	if p := in.Run.Process(s.Process); p != nil {
		facts = p.Facts
	}
	return of.AgainstGaps(facts)
}

// sameAllocator is another quantity of the same allocator, or nil.
func (in *Input) sameAllocator(s *mem.Series, name mem.Quantity) *mem.Series {
	for _, other := range in.Run.Series {
		if other.Process == s.Process && other.Device == s.Device && other.Framework == s.Framework && other.Name == name &&
			len(other.Values) > 0 {
			return other
		}
	}
	return nil
}

// gap: what a process takes of a device beyond its framework's allocator: the context, libraries'
// workspaces, other allocators.
func (in *Input) gap(r *report.Part) {
	for _, p := range in.Run.Processes {
		used, reserved := in.Find(p.ID, mem.SeriesDeviceProcess), in.Find(p.ID, mem.SeriesReserved)
		if used == nil || reserved == nil {
			continue
		}
		at := used.Times[used.Peak()]
		beyond := mem.Bytes(used.Values[used.Peak()] - reserved.At(at).Or(0))
		if beyond < leastGap {
			continue
		}
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindGap, Severity: report.Info, Process: p.ID, Bytes: mem.Some(int64(beyond)), Label: used.Label,
			Title: fmt.Sprintf("%v on %s is outside the framework's allocator", beyond, used.Device),
			Text: fmt.Sprintf("The device puts %v down to %s, its allocator holds %v: the difference of %v (%s) is the "+
				"context, libraries' workspaces and other allocators.",
				mem.Bytes(used.Values[used.Peak()]), in.ProcessName(p.ID), mem.Bytes(reserved.At(at).Or(0)), beyond, used.Label),
		})
	}
}
