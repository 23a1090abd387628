package plan

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/report"
)

// Text is the answer for a terminal: the model, the best GPU, the table, and what follows from them.
func (r *Result) Text(o report.TextOptions) string {
	var b strings.Builder
	for _, line := range []string{r.Model.text(), r.answer()} {
		fmt.Fprintln(&b, strings.Join(report.Wrap(report.Clean(line), o.Width), "\n"))
	}
	b.WriteString(r.Table().Text(o))
	if parts := r.Breakdown(); parts != nil {
		b.WriteString(parts.Text(o))
	}
	fmt.Fprintln(&b)
	for _, text := range r.remarks() {
		fmt.Fprintf(&b, "  %s\n", strings.Join(report.Wrap(report.Clean(text), max(o.Width-2, 0)), "\n  "))
	}
	return b.String()
}

// text is the model in a sentence or two.
func (m *ModelInfo) text() string {
	var types []string
	for _, t := range m.Types[:min(3, len(m.Types))] {
		types = append(types, t.Type)
	}
	where := "from " + report.Counted(int64(m.Files), "file") + " of " + string(m.Format)
	if m.Format == modelfile.FormatConfig {
		where = "from its configuration"
	}
	text := fmt.Sprintf("%s: %v of weights in %s (%s, %s)", m.Name, m.Bytes, strings.Join(types, ", "), m.Label, where)
	if s := m.PerSequence; s.High > 0 {
		text += fmt.Sprintf("; a sequence takes %s in the cache", s.text())
		if m.PerToken > 0 {
			text += fmt.Sprintf(", %v a further token", m.PerToken)
		}
		text += fmt.Sprintf(" (%s)", s.label())
	}
	return text + "."
}

// text is an estimate for people.
func (e Estimate) text() string {
	if e.Low == e.High {
		return e.Bytes.String()
	}
	return fmt.Sprintf("%v (%v to %v)", e.Bytes, e.Low, e.High)
}

// text is what is asked, in words.
func (u *Use) text() string {
	on := ""
	if u.GPUs > 1 {
		on = fmt.Sprintf(" on %d GPUs", u.GPUs)
	}
	seq := report.Count(int64(u.Seq)) + " tokens"
	switch u.For {
	case Serve:
		return fmt.Sprintf("To serve %s of %s at once%s", report.Counted(int64(u.Users), "user"), seq, on)
	case Infer:
		return fmt.Sprintf("For a batch of %d sequences of %s%s", u.Batch, seq, on)
	}
	return fmt.Sprintf("To train (%s) with a batch of %d × %s%s", u.For, u.Batch, seq, on)
}

// answer is the result in a sentence.
func (r *Result) answer() string {
	if row := r.row(r.Cheapest); row != nil {
		return fmt.Sprintf("%s the cheapest GPU that fits is %s, $%.2f an hour (%s); it leaves %v at least.", r.Use.text()+",",
			row.called(&r.Use), row.Price, row.Label, row.Room.Low)
	}
	if row := r.row(r.Smallest); row != nil {
		return fmt.Sprintf("%s the smallest GPU that fits is %s (%s); it leaves %v at least. Its price is not known.",
			r.Use.text()+",", row.called(&r.Use), row.Label, row.Room.Low)
	}
	if len(r.Rows) == 0 {
		return "There is no GPU to look at."
	}
	if best := &r.Rows[0]; best.Verdict == Likely {
		return fmt.Sprintf("%s no GPU is sure to fit; %s likely does (%s): it leaves %s.", r.Use.text()+",", best.called(&r.Use),
			best.Label, best.Room.text())
	}
	return fmt.Sprintf("%s no GPU looked at fits (%s).", r.Use.text()+",", mem.Estimated)
}

// best is the row that the answer is about; nil: there is none.
func (r *Result) best() *Row {
	for _, slug := range []string{r.Cheapest, r.Smallest} {
		if row := r.row(slug); row != nil {
			return row
		}
	}
	if len(r.Rows) == 0 {
		return nil
	}
	return &r.Rows[0]
}

// Breakdown shows what takes memory on the GPU that the answer is about; nil: there is none.
func (r *Result) Breakdown() *report.Table {
	best := r.best()
	if best == nil {
		return nil
	}
	t := &report.Table{Name: "parts", Title: "On " + best.called(&r.Use) + ", of each GPU", Columns: []report.Column{
		{Name: "part", Title: "part"}, {Name: "bytes", Title: "takes", Unit: mem.UnitBytes},
		{Name: "low", Title: "at least", Unit: mem.UnitBytes}, {Name: "high", Title: "at most", Unit: mem.UnitBytes},
		{Name: "label", Title: "known"}, {Name: "basis", Title: "because"},
	}}
	add := func(name string, e Estimate, label mem.Label, basis string) {
		if e.Low == e.High {
			t.Add(name, e.Bytes, mem.Optional{}, mem.Optional{}, string(label), basis)
			return
		}
		t.Add(name, e.Bytes, e.Low, e.High, string(label), basis)
	}
	for _, p := range best.Parts {
		add(p.Name, p.Estimate, p.Label, p.Basis)
	}
	if best.Cache != nil {
		add("cache", *best.Cache, best.Cache.label(), "keys and values of "+report.Counted(int64(r.Use.Users), "user"))
	}
	add("may be taken", best.Budget, mem.Measured, "of the GPU's memory, as the catalogue has it")
	return t
}

// called is a GPU with how many of it.
func (r *Row) called(u *Use) string {
	if u.GPUs > 1 {
		return fmt.Sprintf("%d × %s", u.GPUs, r.GPU)
	}
	return r.GPU
}

func (r *Result) row(slug string) *Row {
	for i := range r.Rows {
		if r.Rows[i].GPU == slug {
			return &r.Rows[i]
		}
	}
	return nil
}

// Table shows the rows for people.
func (r *Result) Table() *report.Table {
	t := &report.Table{Name: "plan", Title: "GPUs", Columns: []report.Column{
		{Name: "gpu", Title: "gpu"}, {Name: "memory", Title: "memory", Unit: mem.UnitBytes},
		{Name: "verdict", Title: "verdict"}, {Name: "left", Title: "left, at least"}, {Name: "most", Title: "at most"},
	}}
	serves := r.Use.For == Serve
	if serves {
		t.Columns = append(t.Columns, report.Column{Name: "tokens", Title: "tokens, about"},
			report.Column{Name: "users", Title: "users"})
	} else {
		t.Columns = append(t.Columns, report.Column{Name: "batch", Title: "largest batch"})
	}
	t.Columns = append(t.Columns, report.Column{Name: "price", Title: "$/h"}, report.Column{Name: "note", Title: "note"})
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []any{row.GPU, row.Total, string(row.Verdict), row.Room.Low.String(), row.Room.High.String()}
		if serves {
			cells = append(cells, row.Tokens.figure(), row.Users.text())
		} else {
			cells = append(cells, row.Batch.text())
		}
		price := ""
		if row.Price > 0 {
			price = fmt.Sprintf("%.2f", row.Price)
		}
		t.Add(append(cells, price, row.Note)...)
	}
	return t
}

// text is a range for people.
func (r *Range) text() string {
	switch {
	case r == nil:
		return ""
	case r.Low == r.High:
		return report.Count(r.Low)
	}
	return report.Count(r.Low) + " to " + report.Count(r.High)
}

// figure is the figure of a range for people.
func (r *Range) figure() string {
	if r == nil {
		return ""
	}
	return report.Count(r.Figure)
}

// remarks are what takes memory on the best GPU, what would be cheaper, and what was assumed.
func (r *Result) remarks() (all []string) {
	if best := r.best(); best != nil {
		if best.Price > 0 {
			all = append(all, fmt.Sprintf("The price of %s: %s, %s.", best.GPU, best.Source, best.Date))
		}
	}
	if text := r.cheaper(); text != "" {
		all = append(all, text)
	}
	for _, note := range r.Notes {
		all = append(all, strings.ToUpper(note[:1])+note[1:]+".")
	}
	return all
}

// cheaper says what would let a cheaper GPU do, or any.
func (r *Result) cheaper() string {
	if len(r.Changes) == 0 {
		return ""
	}
	var ways []string
	for _, c := range r.Changes {
		price := ""
		if c.Price > 0 {
			price = fmt.Sprintf(", $%.2f an hour", c.Price)
		}
		ways = append(ways, fmt.Sprintf("%s with %s (%s%s)", c.GPU, c.Says, c.Flags, price))
	}
	begin := "It would fit on "
	if r.Cheapest != "" {
		begin = "Cheaper, and fits too: "
	}
	return begin + strings.Join(ways, "; ") + fmt.Sprintf(" (each was computed; %s).", mem.Estimated)
}
