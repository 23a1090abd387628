package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/report"
)

// Told is an answer in words, as all doors tell it.
type Told struct {
	Model   string        `json:"model" doc:"The model, in a sentence."`
	Answer  string        `json:"answer" doc:"The answer, in a sentence."`
	Table   *report.Table `json:"table" doc:"The rows."`
	Parts   *report.Table `json:"parts,omitempty" doc:"What takes memory on the GPU that the answer is about; absent: there is no GPU."`
	Remarks []string      `json:"remarks" doc:"What would be cheaper, and what was assumed."`
}

// Told is the answer in words.
func (r *Result) Told() *Told {
	return &Told{r.Model.text(), r.answer(), r.table(), r.breakdown(), append([]string{}, r.remarks()...)}
}

// Text is the answer for a terminal: the model, the best GPU, the table, and what follows from them.
func (r *Result) Text(o report.TextOptions) string {
	told := r.Told()
	var b strings.Builder
	for _, line := range []string{told.Model, told.Answer} {
		fmt.Fprintln(&b, strings.Join(report.Wrap(report.Clean(line), o.Width), "\n"))
	}
	b.WriteString(r.shown(told.Table).Text(o))
	for _, line := range r.footnotes() {
		fmt.Fprintf(&b, "  %s\n", strings.Join(report.Wrap(report.Clean(line), max(o.Width-2, 0)), "\n  "))
	}
	if told.Parts != nil {
		b.WriteString(told.Parts.Text(o))
	}
	fmt.Fprintln(&b)
	for _, text := range told.Remarks {
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
		return fmt.Sprintf("For a batch of %s of %s%s", report.Counted(int64(u.Batch), "sequence"), seq, on)
	}
	return fmt.Sprintf("To train (%s) with a batch of %d × %s%s", u.For, u.Batch, seq, on)
}

// asked is what was asked, as far as it is answered.
func (r *Result) asked() string {
	if r.Alone {
		return "To hold the weights alone"
	}
	return r.Use.text()
}

// answer is the result in a sentence.
func (r *Result) answer() string {
	if row := r.row(r.Cheapest); row != nil {
		return fmt.Sprintf("%s the cheapest %s that fits is %s, $%.2f an hour (%s); it leaves %v at least.", r.asked()+",",
			r.what(), row.called(), row.Price, row.Label, row.Room.Low)
	}
	if row := r.row(r.Smallest); row != nil {
		return fmt.Sprintf("%s the smallest GPU that fits is %s (%s); it leaves %v at least. Its price is not known.",
			r.asked()+",", row.called(), row.Label, row.Room.Low)
	}
	if len(r.Rows) == 0 {
		return "There is no GPU to look at."
	}
	if best := &r.Rows[0]; best.Verdict == Likely {
		return fmt.Sprintf("%s no GPU is sure to fit; %s likely does (%s): it leaves %s.", r.asked()+",", best.called(),
			best.Label, best.Room.text())
	}
	return fmt.Sprintf("%s no GPU looked at fits (%s).", r.asked()+",", mem.Estimated)
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

// breakdown shows what takes memory on the GPU that the answer is about; nil: there is none.
func (r *Result) breakdown() *report.Table {
	best := r.best()
	if best == nil {
		return nil
	}
	t := &report.Table{Name: "parts", Title: "On " + best.called() + ", of each GPU", Columns: []report.Column{
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
	if m := best.Machine; m != nil {
		add("host memory", m.Host.Estimate, m.Host.Label, m.Host.Basis)
	}
	add("may be taken", best.Budget, mem.Measured, "of the GPU's memory, as the catalogue has it")
	return t
}

// what is what the rows are of.
func (r *Result) what() string {
	if len(r.Rows) > 0 && r.Rows[0].Machine != nil {
		return "machine"
	}
	return "GPU"
}

// called is a GPU with how many of it.
func (r *Row) called() string {
	called := r.GPU
	if r.Count > 1 {
		called = fmt.Sprintf("%d × %s", r.Count, r.GPU)
	}
	if r.Machine != nil {
		return fmt.Sprintf("%s of %s (%s)", r.Machine.Name, r.Machine.Provider, called)
	}
	return called
}

func (r *Result) row(slug string) *Row {
	for i := range r.Rows {
		if r.Rows[i].key() == slug {
			return &r.Rows[i]
		}
	}
	return nil
}

// table shows the rows for people.
func (r *Result) table() *report.Table {
	machines, serves := r.what() == "machine", r.Use.For == Serve
	t := &report.Table{Name: "plan", Title: "GPUs"}
	column := func(name, title string, unit mem.Unit) {
		t.Columns = append(t.Columns, report.Column{Name: name, Title: title, Unit: unit})
	}
	if machines {
		t.Title = "Machines"
		column("instance", "machine", "")
		column("count", "GPUs", mem.UnitCount)
	}
	column("gpu", "gpu", "")
	column("memory", "memory", mem.UnitBytes)
	column("verdict", "verdict", "")
	if r.imagined() {
		column("label", "known", "")
	}
	column("price", "$/h", "")
	if serves {
		column("users", "users", "")
		column("tokens", "tokens, about", mem.UnitCount)
	} else {
		column("batch", "largest batch", "")
	}
	column("left", "left, at least", mem.UnitBytes)
	column("most", "at most", mem.UnitBytes)
	if machines {
		column("host", "host", mem.UnitBytes)
	}
	column("note", "note", "")
	for i := range r.Rows {
		t.Add(r.Rows[i].cells(machines, serves, r.imagined())...)
	}
	return t
}

// imagined says whether any row was run.
func (r *Result) imagined() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Label == mem.Imagined })
}

// cells are a row of the table.
func (r *Row) cells(machines, serves, labelled bool) (cells []any) {
	if machines {
		cells = append(cells, r.Machine.Name, r.Count)
	}
	price := ""
	if r.Price > 0 {
		price = fmt.Sprintf("%.2f", r.Price)
	}
	if cells = append(cells, r.GPU, r.Total, string(r.Verdict)); labelled {
		cells = append(cells, string(r.Label))
	}
	cells = append(cells, price)
	if serves {
		cells = append(cells, r.Users.text(), r.Tokens.figure())
	} else {
		cells = append(cells, r.Batch.text())
	}
	cells = append(cells, r.Room.Low, r.Room.High)
	if machines {
		cells = append(cells, r.Machine.Memory)
	}
	return append(cells, r.told())
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

// figure is the figure of a range; absent: there is no range.
func (r *Range) figure() mem.Optional {
	if r == nil {
		return mem.Optional{}
	}
	return mem.Some(r.Figure)
}

// remarks are what takes memory on the best GPU, what would be cheaper, and what was assumed.
func (r *Result) remarks() (all []string) {
	if best := r.best(); best != nil {
		if best.Price > 0 {
			all = append(all, fmt.Sprintf("The price of %s: %s, %s.", best.key(), best.Source, best.Date))
		}
	}
	if text := r.cheaper(); text != "" {
		all = append(all, text)
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.contradicts() {
			all = append(all, row.against())
		}
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

// text is a guess in words.
func (g *Guess) text() string {
	text := string(g.Verdict)
	if g.Users != nil {
		text += ", " + g.Users.text() + " users"
	}
	return text + ", " + g.Room.text() + " left"
}

// against are both figures, where a run contradicts the estimate.
func (r *Row) against() string {
	run := fmt.Sprintf("%s, %v left", r.Verdict, r.Room.Bytes)
	if r.Verdict == No {
		run = cmp.Or(r.Note, string(No))
	}
	return fmt.Sprintf("%s: imagined: %s; estimated: %s.", r.called(), run, r.Estimated.text())
}
