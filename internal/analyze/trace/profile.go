package trace

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// OfProfile adds what a memory profile of another tool says: who holds how much, by line, and on which device
// and of which kind where the file tells. Of the options it answers Device, Filter, Top and Batch.
func OfProfile(r *report.Report, p *mem.Profile, file string, o Options) error {
	if len(p.Kinds) == 0 {
		r.Headline.Say(file + " holds no figures")
		return nil
	}
	samples, err := wanted(p, o)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	kind, counts := p.Kinds[p.Default], p.Counts()
	var uses []usage.Use
	whole := int64(0)
	for _, s := range samples {
		use := usage.Use{Stack: s.Stack, Bytes: mem.Bytes(s.Values[p.Default])}
		if counts >= 0 {
			use.Blocks = uint64(s.Values[counts])
		}
		whole += s.Values[p.Default]
		uses = append(uses, use)
	}
	var all []held
	for _, g := range usage.Groups(usage.NewNames(&p.Stacks), uses) {
		all = append(all, held{name: g.Site.Name, bytes: int64(g.Bytes), count: int64(g.Blocks)})
	}
	t := profileTable(p, "blame", fmt.Sprintf("Who holds what in %s, by line", file), "Site", whole, first(all, o.Top))
	t.Subject, t.Note = report.Subject{File: file, Of: file}, strings.Join(p.Notes, " ")
	holds := "holds"
	if strings.HasPrefix(kind.Name, "alloc") && strings.HasSuffix(kind.Name, "_space") { // what was freed again too
		holds = "allocated in all"
		t.Title = fmt.Sprintf("Who allocated how much in %s, by line", file)
	}
	devices := slices.DeleteFunc(labelled(samples, p.Default, counts, "device"),
		func(h held) bool { return h.name == untold })
	if len(devices) > 1 {
		t.Title += fmt.Sprintf(", over %d devices", len(devices))
		holds += overDevices(devices)
	}
	if o.Filter != nil {
		holds = fmt.Sprintf("with a frame that matches `%s` %s", o.Filter, holds)
	}
	half, err := halfOf(p, o)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	addForeign(r, t, file, holds, p.Label, whole, all)
	switch {
	case half != nil:
		addHalf(r, half, file, whole)
	case o.Filter == nil && ofDevices(p):
		r.AddNote(fmt.Sprintf("What half of a batch would need cannot be told: %s has bytes of arrays, and no shapes. A "+
			"dump of XLA's programs has them.", file))
	}
	for _, label := range []string{"device", "kind"} {
		if by := labelled(samples, p.Default, counts, label); len(by) > 1 {
			r.AddTable(profileTable(p, "profile-"+label, fmt.Sprintf("What is held in %s, by %s", file, label),
				report.UpperFirst(label), whole, by))
		}
	}
	return nil
}

// profileTable lists what names hold.
func profileTable(p *mem.Profile, name, title, of string, whole int64, all []held) report.Table {
	kind, counts := p.Kinds[p.Default], p.Counts()
	t := report.Table{Name: name, Title: title, Columns: []report.Column{report.TextColumn("site", of),
		{Name: "bytes", Title: report.UpperFirst(kind.Name), Unit: kind.Unit, Label: p.Label},
		{Name: "share", Title: "Share", Unit: mem.UnitMilli, Label: p.Label}}}
	if counts >= 0 {
		t.Columns = append(t.Columns, report.Column{Name: "count", Title: report.UpperFirst(p.Kinds[counts].Name),
			Unit: mem.UnitCount, Label: p.Label})
	}
	for _, h := range all {
		t.Add([]any{h.name, h.bytes, report.Share(mem.Bytes(h.bytes), mem.Bytes(whole)), h.count}[:len(t.Columns)]...)
	}
	return t
}

// wanted are the samples that the options ask for.
func wanted(p *mem.Profile, o Options) ([]mem.ProfileSample, error) {
	samples := p.Samples
	if o.Filter != nil {
		matches := make([]bool, p.Stacks.Len())
		for i := range matches {
			matches[i] = slices.ContainsFunc(p.Stacks.Frames(uint32(i)),
				func(l mem.Location) bool { return o.Filter.MatchString(l.File + ":" + l.Function) })
		}
		samples = slices.DeleteFunc(slices.Clone(samples), func(s mem.ProfileSample) bool { return !matches[s.Stack] })
	}
	number, asked := o.Device.Get()
	if !asked {
		return samples, nil
	}
	names := map[string]bool{}
	for _, s := range p.Samples {
		if name := s.Labels["device"]; name != "" {
			names[name] = true
		}
	}
	var of []mem.ProfileSample
	for _, s := range samples {
		if name := s.Labels["device"]; name != "" && deviceNumber(name) == number {
			of = append(of, s)
		}
	}
	for name := range names {
		if deviceNumber(name) == number {
			return of, nil
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("it does not say which device holds what, so it cannot tell of device %d", number)
	}
	return nil, fmt.Errorf("it has no device %d, but %s", number, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// firstNumber is that of a device in its name: 3 of TPU_3(process=0,(1,1,0,0)), cuda:3 and TFRT_CPU_3.
var firstNumber = regexp.MustCompile(`\d+`)

func deviceNumber(name string) int64 {
	n, err := strconv.ParseInt(firstNumber.FindString(name), 10, 32)
	if err != nil {
		return -2 // of no device that can be asked for
	}
	return n
}

// untold is the row of what does not say on which device it is, or of which kind.
const untold = "not told"

// labelled sums samples by a label, the largest first; nil: none has it. What has none is a row of its own.
func labelled(samples []mem.ProfileSample, value, counts int, label string) []held {
	var sums mem.Tally[string, held]
	some := false
	for _, s := range samples {
		name := s.Labels[label]
		if some = some || name != ""; name == "" {
			name = untold
		}
		h := sums.At(name)
		h.name, h.bytes = name, h.bytes+s.Values[value]
		if counts >= 0 {
			h.count += s.Values[counts]
		}
	}
	if !some {
		return nil
	}
	// as programs of XLA, which are on all devices
	sums.All = slices.DeleteFunc(sums.All, func(h held) bool { return h.name == untold && h.bytes == 0 })
	slices.SortStableFunc(sums.All, func(a, b held) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes),
			cmp.Compare(a.name, b.name))
	})
	return sums.All
}

// overDevices says how devices share what they hold: each as much, or one most.
func overDevices(devices []held) string {
	most, least := devices[0].bytes, devices[len(devices)-1].bytes
	if most == least {
		return fmt.Sprintf(" %v on each of %d devices, in all", mem.Bytes(most), len(devices))
	}
	return fmt.Sprintf(" %v on %s, the fullest of %d devices, in all", mem.Bytes(most), devices[0].name, len(devices))
}
