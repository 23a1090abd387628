package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Text is the result for a terminal: the verdict, the figures, the picture, and what follows from them.
func (r *Result) Text(o report.TextOptions) string {
	return r.VerdictText() + r.Table().Text(o) + r.Picture(o) + r.Words()
}

// VerdictText is the verdict, which leads; of several traces that of each. "" where there is none.
func (r *Result) VerdictText() string {
	var b strings.Builder
	files := r.Files
	if files == nil {
		files = []*Result{r}
	}
	for _, f := range files {
		if f.Verdict == nil {
			continue
		}
		text := f.Verdict.Text
		if len(files) > 1 {
			text = f.Trace() + ": " + text
		}
		fmt.Fprintf(&b, "\n  %s\n", report.Clean(text))
	}
	return b.String()
}

// Words are what follows from the figures, a line each.
func (r *Result) Words() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.Spread[0] != r.Spread[1] {
		line("\n  Between %v and %v are reserved with %s settings, as addresses turn out: those cannot be known.",
			r.Spread[0], r.Spread[1], r.subject())
	}
	files := r.Files
	if files == nil {
		files = []*Result{r}
	}
	for _, f := range files {
		if said := f.SearchText(len(files) > 1); len(said) > 0 {
			line("\n  %s", strings.Join(said, "\n  "))
		}
	}
	for _, f := range files {
		if g := f.Smallest(); g != nil {
			line("  The smallest GPU it fits: %s.", g.GPU)
		} else if len(f.GPUs) > 0 {
			line("  It fits no GPU of the catalogue.")
		}
		for _, note := range f.Notes {
			line("  %s", report.Clean(note))
		}
	}
	return b.String()
}

// subject is whose figures the result's own are: of the settings asked for, beside a search's best.
func (r *Result) subject() string {
	if r.asRecorded() {
		return "the recorded"
	}
	return "these"
}

// Picture draws memory in use and reserved over the events, as recorded and replayed, to one scale. ""
// for several files.
func (r *Result) Picture(o report.TextOptions) string {
	if len(r.RecordedCurve) == 0 {
		return ""
	}
	panels := []report.Panel{panel("as recorded", cmp.Or(r.recordedLabel, mem.Measured), r.RecordedCurve,
		len(r.RecordedCurve))}
	switch {
	case !r.asRecorded():
		panels = append(panels, panel(r.name(), r.Label, r.Curve, len(r.RecordedCurve)))
	case r.Best != nil:
		panels = append(panels, panel(settingsName(r.Best.AllocConf), r.Label, r.Best.Curve, len(r.RecordedCurve)))
	}
	return report.Panels(o, panels...)
}

func panel(title string, label mem.Label, curve []allocator.Point, parts int) report.Panel {
	p := report.Panel{Title: title, Label: label, Parts: parts}
	for _, at := range curve {
		p.Used, p.Reserved = append(p.Used, int64(at.Active)), append(p.Reserved, int64(at.Reserved))
	}
	return p
}

// Table compares the record with the replay, and lists what else was tried.
func (r *Result) Table() *report.Table {
	bytes := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &report.Table{Name: "replay", Title: "The same requests under other settings",
		Columns: []report.Column{{Name: "settings", Title: "Settings"}, bytes("reserved", "Peak reserved"),
			bytes("allocated", "Peak allocated"),
			bytes("waste", "Not allocated"), {Name: "calls", Title: "Segment calls", Unit: mem.UnitCount, Label: r.Label},
			{Name: "end", Title: "End"}}}
	if len(r.Files) == 0 {
		r.rows(t, "")
		return t
	}
	names := shortNames(r.Files)
	for i, f := range r.Files {
		f := *f
		f.Search = nil // of the one that was searched; the best is shown for all
		f.rows(t, names[i]+": ")
	}
	return t
}

// aroundSmallest are the GPUs of interest: the last that are too small and the first that the trace fits.
func (r *Result) aroundSmallest() []GPU {
	first := slices.IndexFunc(r.GPUs, func(g GPU) bool { return g.Fits })
	if first < 0 {
		first = len(r.GPUs)
	}
	return r.GPUs[max(first-3, 0):min(first+5, len(r.GPUs))]
}

// shortNames are the files' names without what all of them begin with.
func shortNames(files []*Result) []string {
	var names []string
	for _, f := range files {
		name, _, _ := strings.Cut(f.Base(), ".")
		names = append(names, name)
	}
	shared := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	shared = shared[:strings.LastIndexAny(shared, "-_.")+1]
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], shared)
	}
	return names
}

// plainly is the one setting that people know to try first.
const plainly = "expandable_segments:True"

// shown are the settings of a search that the table has: what is best, the leading ones, and what people try first.
func (r *Result) shown() (some []Figures) {
	if r.Best != nil && len(r.Search) > 0 {
		some = append(some, r.Best.Figures)
	}
	left := min(len(r.Search), searchShown)
	for i, f := range r.Search {
		if (i < left || f.AllocConf == plainly) &&
			!slices.ContainsFunc(some, func(s Figures) bool { return s.AllocConf == f.AllocConf }) {
			some = append(some, f)
		}
	}
	return some
}

// searchShown is how many settings of a search the table has.
const searchShown = 8

func (r *Result) rows(t *report.Table, of string) {
	row := func(name string, f Figures) {
		t.Add(of+name, f.Reserved, f.Allocated, f.Reserved-f.Allocated, f.SegmentCalls, f.end())
	}
	row("as recorded", r.Recorded)
	if r.Fresh != nil {
		row("default, from a fresh start", *r.Fresh)
	}
	if !r.asRecorded() {
		row(r.name(), r.Figures)
	}
	for _, f := range r.shown() {
		row(settingsName(f.AllocConf), f)
	}
	if r.Best != nil && len(r.Search) == 0 {
		row(settingsName(r.Best.AllocConf), r.Best.Figures)
	}
	for _, f := range r.Policies {
		row("allocator: "+f.Policy, f)
	}
	for _, g := range r.aroundSmallest() {
		row(fmt.Sprintf("%s, %v", g.GPU, g.Capacity), g.Figures)
	}
}

// asRecorded says that nothing else was asked for than what the record has.
func (r *Result) asRecorded() bool {
	return r.AllocConf == r.Recorded.AllocConf && r.Capacity == 0 && r.Policy == "native" && !r.Anew
}

// name is what was asked for.
func (r *Result) name() string {
	name := settingsName(r.AllocConf)
	if r.Policy != "native" {
		name = r.Policy
	}
	if r.Capacity > 0 {
		name += fmt.Sprintf(" on %v", r.Capacity)
	}
	if r.Anew {
		name += ", from a fresh start"
	}
	return name
}

// settingsName is a line of settings as a table has room for it.
func settingsName(conf string) string {
	switch {
	case conf == "":
		return "default"
	case len(conf) > 34:
		return shortSettings.Replace(conf)
	}
	return conf
}

var shortSettings = strings.NewReplacer("expandable_segments:True", "expandable", "roundup_power2_divisions:",
	"roundup ", "max_split_size_mb:", "max_split ",
	"max_non_split_rounding_mb:", "non_split ", "large_segment_size_mb:", "large ", "garbage_collection_threshold:", "gc ",
	"per_process_memory_fraction:", "fraction ", ",", ", ")

// end says how a run ended.
func (f *Figures) end() string {
	text := "to the end"
	switch {
	case f.OOM != nil:
		return "OOM at event " + report.Count(int64(*f.OOM))
	case f.Retries == 1:
		text = "to the end, 1 retry"
	case f.Retries > 1:
		text = fmt.Sprintf("to the end, %d retries", f.Retries)
	}
	if f.Refused > 0 {
		text += fmt.Sprintf(", %d refused", f.Refused)
	}
	return text
}
