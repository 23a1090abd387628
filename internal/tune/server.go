package tune

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Start is what came of a server's start.
type Start struct {
	mem.GPUVerdict
	Figures         mem.ServingFigures
	Engine, Version string
	Ready           bool
	How             string // why there is no verdict, in words
}

// ServerHost starts a server. A nil start did not run, or the engine has no such setting.
type ServerHost struct {
	Start    func(context.Context) (*Start, error) // as it is
	Settings func() (must, list []Setting)         // what could be changed of that start
	Try      func(context.Context, [][]Setting) []*Start
	Whole    func(context.Context, []Setting) (*Start, error) // by its command with their flags
	Command  func([]Setting) []string                         // that command
}

// serverSearch is a tune of a server at work.
type serverSearch struct {
	Options
	host   ServerHost
	result *Result
	server *Server
	asIs   *ServerPoint // with the length that was asked for
	base   *ServerPoint // with all that it cannot do without
	must   []Setting
	gains  []gain
	ran    map[string]*ServerPoint
}

// gain is a setting that was tried by itself, and how many tokens it added; less than none where it takes some.
type gain struct {
	Setting
	tokens int64
	known  bool
}

// rounds is how often sets of settings are tried at most, and sets how many at once.
const rounds, sets = 3, 3

// Serve starts a server with other settings until the cheapest are known that reach the goal.
func Serve(ctx context.Context, o Options, host ServerHost) (*Result, error) {
	s := &serverSearch{Options: o, host: host, ran: map[string]*ServerPoint{},
		server: &Server{Users: o.Users, Tokens: o.Tokens, Points: []*ServerPoint{}}}
	s.result = &Result{Version: 1, Label: mem.Imagined, Command: mem.MaskArgs(o.Command), Goal: o.Goal,
		Points: []*Point{}, Notes: []string{}, Server: s.server}
	if err := s.begin(ctx); err != nil {
		return s.result, err
	}
	if !s.spared() {
		s.alone(ctx)
		s.together(ctx)
	}
	err := s.choose(ctx)
	s.conclude()
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		s.result.Answer = s.server.sentence(s.result)
	}
	return s.result, err
}

// begin starts the server as it is, and refuses a program that says nothing.
func (s *serverSearch) begin(ctx context.Context) error {
	start, err := s.host.Start(ctx)
	s.result.Runs++
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case start == nil || start.Engine == "" || !start.Ready && start.Verdict != mem.VerdictOOM ||
		start.Verdict == mem.VerdictFailed:
		how := "it did not run"
		if start != nil {
			how = cmp.Or(start.How, string(start.Verdict))
		}
		return fail.Input("hightide imagine -- "+mem.CommandLine(s.Command)+" says more",
			"the server gives no verdict on %s: %s", s.GPU, how)
	}
	s.server.Engine, s.server.Version = start.Engine, start.Version
	s.result.GPU, s.result.GPUName, s.result.Total = start.GPU, start.GPUName, start.Total
	must, list := s.host.Settings()
	var given []Setting // which the start had already
	for _, one := range must {
		if one.Argument == lengthOf && start.Figures.MaxModelLen.Or(0) == int64(s.Tokens) {
			given = append(given, one)
		}
	}
	s.asIs, s.must = s.took(given, start), must
	s.server.first = s.asIs
	for _, one := range list {
		s.gains = append(s.gains, gain{Setting: one})
	}
	return nil
}

// spared says whether nothing needs to be tried: it serves all that was asked for as it is.
func (s *serverSearch) spared() bool { return s.Users > 0 && s.asIs.Enough }

// alone tries each setting by itself, beside those that are needed.
func (s *serverSearch) alone(ctx context.Context) {
	list := [][]Setting{}
	for _, one := range s.gains {
		list = append(list, s.needed(one.Setting))
	}
	s.try(ctx, append([][]Setting{s.must}, list...)...)
	base := s.ran[flags(s.must)]
	if base == nil {
		s.gains = nil
		return
	}
	s.base = base
	for i := range s.gains {
		p := s.ran[flags(s.needed(s.gains[i].Setting))]
		if p == nil || !p.Verdict.KVTokens.Known() {
			continue
		}
		s.gains[i].known = true
		s.gains[i].tokens = p.Verdict.KVTokens.Or(0) - base.Verdict.KVTokens.Or(0)
	}
	s.gains = slices.DeleteFunc(s.gains, func(one gain) bool {
		return !one.known || one.tokens <= 0 && base.Verdict.KVTokens.Known()
	})
	slices.SortStableFunc(s.gains, func(a, b gain) int { return slices.Compare(price(a.Setting), price(b.Setting)) })
}

// together tries sets of settings: the cheapest that may reach the goal by what each gained alone, or without users
// those that cost less than any other of their size.
func (s *serverSearch) together(ctx context.Context) {
	for range rounds {
		list := s.next()
		if len(list) == 0 || ctx.Err() != nil {
			return
		}
		s.try(ctx, list...)
		if s.Users == 0 {
			return
		}
	}
}

// next are sets that were not tried, the cheapest first.
func (s *serverSearch) next() (list [][]Setting) {
	best := s.best()
	all, starts := len(s.gains), s.base != nil && s.base.Verdict.KVTokens.Known()
	if s.Users == 0 || !starts {
		for n := 2; n <= all && (best == nil || starts); n++ { // each with all that cost less
			if s.gains[n-1].GPUs == 0 || best == nil { // which is started anew
				list = append(list, s.set(1<<n-1))
			}
		}
	} else {
		for mask := range 1 << all {
			if bits.OnesCount(uint(mask)) > 1 && s.predicted(mask) >= float64(s.Users) {
				list = append(list, s.set(mask))
			}
		}
		if len(list) == 0 && best == nil && all > 1 {
			list = append(list, s.set(1<<all-1)) // the most that there is
		}
	}
	list = slices.DeleteFunc(list, func(set []Setting) bool {
		_, tried := s.ran[flags(set)]
		return tried || s.Users > 0 && best != nil && slices.Compare(cost(set), cost(best.Settings)) >= 0
	})
	slices.SortStableFunc(list, func(a, b []Setting) int { return slices.Compare(cost(a), cost(b)) })
	if s.Users > 0 && len(list) > sets {
		list = list[:sets]
	}
	return list
}

// predicted is how many sequences a set of settings may run at once: what each added alone, added up.
func (s *serverSearch) predicted(mask int) float64 {
	base := s.base
	tokens := base.Verdict.KVTokens.Or(0)
	share := float64(base.Held.Or(0)+1) / float64(tokens) // one more was not quite there
	for i := range s.gains {
		if mask>>i&1 == 1 {
			tokens += s.gains[i].tokens
		}
	}
	return share * float64(tokens)
}

// set has the settings of a mask; of one argument the dearer value.
func (s *serverSearch) set(mask int) []Setting {
	var set []Setting
	for i := range s.gains {
		if mask>>i&1 == 0 {
			continue
		}
		set = slices.DeleteFunc(set, func(one Setting) bool { return one.Argument == s.gains[i].Argument })
		set = append(set, s.gains[i].Setting)
	}
	return s.needed(set...)
}

// needed are settings beside those that the server cannot do without; of one argument those of must.
func (s *serverSearch) needed(set ...Setting) []Setting {
	all := slices.Clone(s.must)
	for _, one := range set {
		if !slices.ContainsFunc(s.must, func(other Setting) bool { return other.Argument == one.Argument }) {
			all = append(all, one)
		}
	}
	return all
}

// try starts the server with sets of settings.
func (s *serverSearch) try(ctx context.Context, list ...[]Setting) {
	list = slices.DeleteFunc(list, func(set []Setting) bool { return s.ran[flags(set)] != nil || len(set) == 0 })
	list = slices.CompactFunc(list, func(a, b []Setting) bool { return flags(a) == flags(b) })
	if len(list) == 0 || ctx.Err() != nil {
		return
	}
	starts := s.host.Try(ctx, list)
	s.result.Runs += len(list)
	for i, start := range starts {
		if start != nil && ctx.Err() == nil {
			s.took(list[i], start)
		}
	}
}

// took keeps what came of a start.
func (s *serverSearch) took(set []Setting, start *Start) *ServerPoint {
	f := &start.Figures
	p := &ServerPoint{Settings: slices.Concat([]Setting{}, set), What: cmp.Or(flags(set), asItIs),
		Verdict: start.GPUVerdict, Length: f.MaxModelLen, Sequences: f.MaxSeqs, Batched: f.MaxBatched, KVType: f.KVType,
		GPUs: int(f.TensorParallel.Or(1)), Graphs: f.CUDAGraphs, Utilization: f.Utilization}
	p.Held = start.Users
	if held := int64(start.Figures.MaxConcurrency); s.Users == 0 && held > 0 {
		p.Held = mem.Some(min(held, start.Figures.MaxSeqs.Or(held)))
	}
	p.Costs = costsOf(p.Settings, s.Tokens)
	fits := start.Verdict == mem.VerdictFits || start.Verdict == mem.VerdictConditional
	p.Enough = fits && p.Verdict.KVTokens.Known()
	s.ran[flags(set)] = p
	return p
}

// flags are the settings as words of a command; "": none.
func flags(set []Setting) string {
	words := make([]string, len(set))
	for i, one := range set {
		words[i] = one.Flag
	}
	return strings.Join(words, " ")
}

// dear are arguments by what they cost, the dearest first: sequences that are refused, numbers that change, GPUs,
// slower decoding, sequences that wait, and prompts that are read in more pieces. Another share costs no time.
var dear = []string{lengthOf, "kv_cache_dtype", "tensor_parallel_size", "enforce_eager", "max_cudagraph_capture_size",
	"cuda_graph_sizes", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"}

// price is what a setting costs, to compare it with others: of what is made smaller, more the smaller it is.
func price(one Setting) []int64 {
	costs := make([]int64, len(dear))
	at := slices.Index(dear, one.Argument)
	if at < 0 {
		return costs
	}
	costs[at] = 1
	if number, err := strconv.ParseInt(one.Value, 10, 64); err == nil {
		if costs[at] = 1<<40 - number; one.GPUs > 0 {
			costs[at] = number
		}
	}
	return costs
}

// cost is what settings cost together.
func cost(set []Setting) []int64 {
	costs := make([]int64, len(dear))
	for _, one := range set {
		for i, c := range price(one) {
			costs[i] += c
		}
	}
	return costs
}

// best is the cheapest start that reaches the goal; without users, of those that cost nothing the one with most tokens.
func (s *serverSearch) best() *ServerPoint {
	return s.cheapest(func(p *ServerPoint) bool { return p.Enough })
}

func (s *serverSearch) cheapest(is func(*ServerPoint) bool) (best *ServerPoint) {
	for _, p := range s.ran {
		if is(p) && (best == nil || s.compare(p, best) < 0) {
			best = p
		}
	}
	return best
}

// compare orders starts by what they cost in time and numbers; then without users by tokens, the most first, else by
// whether the share is another.
func (s *serverSearch) compare(a, b *ServerPoint) int {
	ac, bc, last := cost(a.Settings), cost(b.Settings), len(dear)-1
	more, share := cmp.Compare(b.Verdict.KVTokens.Or(0), a.Verdict.KVTokens.Or(0)), cmp.Compare(ac[last], bc[last])
	slower := slices.Compare(ac[:last], bc[:last])
	if s.Users > 0 {
		return cmp.Or(slower, share, more, cmp.Compare(a.What, b.What))
	}
	return cmp.Or(slower, more, share, cmp.Compare(a.What, b.What))
}

func (s *serverSearch) note(format string, values ...any) {
	s.result.Notes = append(s.result.Notes, fmt.Sprintf(format, values...))
}

// choose recommends the cheapest start, once the command with its flags was started whole and reaches the goal too.
func (s *serverSearch) choose(ctx context.Context) error {
	for range 2 {
		best := s.best()
		if best == nil {
			best = s.cheapest((*ServerPoint).tight)
		}
		if best == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if len(best.Settings) > 0 {
			start, err := s.host.Whole(ctx, best.Settings)
			s.result.Runs++
			if err != nil || ctx.Err() != nil {
				return cmp.Or(ctx.Err(), err)
			}
			before := best.Verdict.KVTokens.Or(0)
			best = s.took(best.Settings, start)
			if now := best.Verdict.KVTokens; now.Known() && now.Or(0) != before {
				s.note("started with its flags it holds %s tokens, and %s as it was tried: the figures are those with the flags",
					report.Count(now.Or(0)), report.Count(before))
			}
		}
		if best.Enough || best.tight() {
			best.Chosen, s.server.Chosen, s.result.Verdict = true, best, best.Verdict.Verdict
			s.server.Command = mem.MaskArgs(s.host.Command(best.Settings))
			if best.tight() {
				s.note("it leaves %v, less than the figures are sure of: the fit is tight",
					mem.Bytes(best.Verdict.Headroom.Or(0)))
			}
			return nil
		}
	}
	return nil
}

// conclude sorts the starts, and marks those than which no other holds as many tokens at no more cost.
func (s *serverSearch) conclude() {
	for _, p := range s.ran {
		s.server.Points = append(s.server.Points, p)
	}
	slices.SortFunc(s.server.Points, s.compare)
	for _, p := range s.server.Points {
		p.Best = p.Verdict.KVTokens.Known() && !slices.ContainsFunc(s.server.Points, p.beaten)
	}
}

// beaten says whether another start holds as many tokens at no more cost of any kind.
func (p *ServerPoint) beaten(q *ServerPoint) bool {
	pc, qc := cost(p.Settings), cost(q.Settings)
	same, more := slices.Equal(pc, qc), q.Verdict.KVTokens.Or(0)-p.Verdict.KVTokens.Or(0)
	for i := range dear[:len(dear)-1] {
		if qc[i] > pc[i] {
			return false
		}
	}
	return q != p && q.Verdict.KVTokens.Known() && (more > 0 || more == 0 && !same)
}
