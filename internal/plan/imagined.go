package plan

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Imagined is told after each run, and before the first: the whole answer as it is now.
type Imagined struct {
	Row    *Row // that was run; nil: none yet
	Result *Result
	Doing  string // what is done now, in a sentence
}

// EventName implements event.Event.
func (Imagined) EventName() string { return "imagined" }

// colours are what programs write to terminals besides text.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func plainText(said string) string { return strings.TrimSpace(colours.ReplaceAllString(said, "")) }

// flagsOn are what a server is started with besides on a GPU: a port that nobody has, and before Ampere another type.
func (f *facts) flagsOn(g *gpus.GPU) (flags []string) {
	if !f.serves() {
		return nil
	}
	flags = []string{"--host", "127.0.0.1", "--port", strconv.Itoa(freePort())}
	if f.needsHalf(g) {
		flags = append(flags, "--dtype", "half")
	}
	return flags
}

// freePort is one that nobody listens on now; 0 where that cannot be told.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	at, _ := listener.Addr().(*net.TCPAddr)
	return at.Port
}

// replace puts the figures of a run in place of a row's estimates. why is why there are none; "": they are there.
func (f *facts) replace(row *Row, g *gpus.GPU, v *report.Imagined) (why string) {
	switch {
	case v.Verdict == mem.VerdictOOM:
		f.ranOut(row, v)
	case !v.Fits():
		return cmp.Or(v.Broken, v.How, string(v.Verdict))
	case f.serves() && (v.Serving == nil || !v.Serving.KVTokens.Known()):
		return "the server said nothing of its cache"
	case f.serves():
		f.served(row, g, v.Serving)
	default:
		f.ran(row, g, v)
	}
	row.Label, row.Batch = mem.Imagined, nil // the largest one was not looked for
	if row.Verdict = verdictOf(row.Room); v.Verdict == mem.VerdictConditional && row.Verdict == Fits {
		row.Verdict = Likely
		row.Note = "the run fits on a condition"
	}
	if row.Machine != nil {
		left := exactly(row.Machine.Memory - row.Machine.Memory/20).minus(row.Machine.Host.Estimate)
		if host := verdictOf(left); rank[host] > rank[row.Verdict] {
			row.Verdict = host
		}
	}
	return ""
}

// beside is what the catalogue is not sure of: the run has its figure of what a process takes beside its allocator.
func beside(g *gpus.GPU, figure mem.Bytes) Estimate {
	p := process(g).Estimate
	return Estimate{max(0, figure-(p.Bytes-p.Low)), figure, figure + p.High - p.Bytes}
}

// ran are the figures of a training, or of a batch that was generated.
func (f *facts) ran(row *Row, g *gpus.GPU, v *report.Imagined) {
	held, reserved, used := mem.Bytes(v.Allocated.Or(0)), mem.Bytes(v.Reserved.Or(0)), mem.Bytes(v.Used.Or(0))
	row.Parts = []Portion{
		{"tensors", mem.Imagined, exactly(held), "the most that PyTorch's allocator gave"},
		{"kept by the allocator", mem.Imagined, exactly(reserved - held), "reserved beyond what was allocated"},
		{"context and libraries", mem.Estimated, beside(g, used-reserved), process(g).Basis},
	}
	row.Room = row.Budget.minus(sum(row.Parts))
}

// served are the figures of a server that started: the engine's own.
func (f *facts) served(row *Row, g *gpus.GPU, s *report.Serving) {
	row.Parts = nil
	add := func(name string, figure mem.Optional, basis string) {
		if n, ok := figure.Get(); ok {
			row.Parts = append(row.Parts, Portion{name, mem.Imagined, exactly(mem.Bytes(n)), basis})
		}
	}
	add("weights", s.Weights, "as the engine measured them")
	add("activations", s.Activations, "of the engine's profiling pass")
	n := mem.Bytes(s.NonTorch.Or(0))
	own := Estimate{n, n, n + 256*mem.MiB} // servers' logs on real GPUs have 0.06 to 0.16 GiB, and 0.35 GiB of older ones
	row.Parts = append(row.Parts, Portion{"beside the allocator", mem.Estimated, own,
		"as the engine found it; real GPUs may have more"})
	if budget, ok := s.Budget.Get(); ok {
		row.Budget = exactly(mem.Bytes(budget))
	}
	tokens, kv, block := s.KVTokens.Or(0), float64(s.KVBytes.Or(0)), s.BlockSize.Or(1)
	byToken := kv / float64(max(1, tokens))
	one := (f.seq() + block - 1) / block * block
	cache := exactly(mem.Rounded(float64(int64(f.use.Users)*one) * byToken))
	row.Cache = &cache
	spread := Estimate{own.Bytes - own.High, 0, own.Bytes - own.Low} // what the cache gains or loses
	row.Room = exactly(mem.Rounded(kv)).plus(spread).minus(cache)
	at := func(e mem.Bytes) int64 { return max(0, int64((kv+float64(e))/byToken)/block*block) }
	row.Tokens = &Range{at(spread.Low), tokens, at(spread.High)}
	row.Users = &Range{row.Tokens.Low / one, tokens / one, row.Tokens.High / one}
}

// ranOut is a row of a run that had not enough memory: how much is missing is known of some, else it is estimated.
func (f *facts) ranOut(row *Row, v *report.Imagined) {
	if n, ok := v.Headroom.Get(); ok && n < 0 {
		row.Room = exactly(mem.Bytes(n))
	} else {
		row.Room = Estimate{min(row.Room.Low, -1), min(row.Room.Bytes, -1), min(row.Room.High, -1)}
	}
	row.Note = "ran out of memory"
	if s := v.Serving; s != nil && s.KVNeeded.Known() && s.KVAvailable.Known() {
		row.Room = exactly(mem.Bytes(s.KVAvailable.Or(0) - s.KVNeeded.Or(0)))
		row.Note = "the cache does not hold one sequence"
	}
	row.Tokens, row.Users = nil, nil
}

// settle concludes anew from rows that have changed.
func (r *Result) settle(f *facts, places []Place) {
	sortRows(r.Rows)
	r.Cheapest, r.Smallest = "", ""
	r.conclude()
	r.Changes = f.changes(r, places)
}

// Line says what a run was, for who follows without a terminal.
func (e *Imagined) Line() string {
	row := e.Row
	text := fmt.Sprintf("%s: %s", row.called(), row.Verdict)
	switch {
	case row.Verdict == No && row.Note != "":
		text += ", " + row.Note
	case row.Users != nil:
		text += fmt.Sprintf(", %s users, %s tokens", row.Users.text(), report.Count(row.Tokens.Figure))
	default:
		text += fmt.Sprintf(", %s left", row.Room.text())
	}
	return fmt.Sprintf("%s (%s; it was estimated: %s)", text, row.Label, row.Estimated.text())
}

// tryingRows is how many rows are shown while some are imagined: few enough for any terminal.
const tryingRows = 10

// Trying is the table while some rows are imagined: what was run, and what may do it besides, the cheapest first.
func (r *Result) Trying(o report.TextOptions) string {
	var run, may []Row
	for i := range r.Rows {
		switch row := &r.Rows[i]; {
		case row.Label == mem.Imagined:
			run = append(run, *row)
		case row.Verdict != No:
			may = append(may, *row)
		}
	}
	for _, rows := range [][]Row{run, may} {
		slices.SortStableFunc(rows, func(a, b Row) int { return comparePrice(a.Price, b.Price) })
	}
	some := *r
	some.Cheapest, some.Smallest = "", ""
	some.Rows = slices.Clone(r.Rows)
	sortRows(some.Rows)
	some.conclude()
	answer := report.Wrap(report.Clean(some.answer()), o.Width)
	some.Rows = append(run[max(0, len(run)-tryingRows+2):], may...)
	some.Rows = some.Rows[:min(tryingRows, len(some.Rows))]
	return strings.Join(answer, "\n") + "\n" + some.table().Text(o)
}

// Text is the answer as it is now, for a terminal: few lines.
func (e *Imagined) Text(o report.TextOptions) string {
	return e.Result.Trying(o) + strings.Join(report.Wrap(report.Clean(e.Doing), o.Width), "\n") + "\n"
}
