package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/levers"
	"hightide/internal/mem"
)

// expandable is the allocator setting that most often helps.
const expandable = "expandable_segments:True"

// atOnce is how many sets of blocks are run from one start: together with those before, five halve the rest of the
// frontier two and a half times.
const atOnce = 5

// search is one tune at work.
type search struct {
	Options
	host     Host
	result   *Result
	recorded *Recorded
	model    string
	size     int64
	code     string // of the levers, JSON
	room     mem.Bytes
	needed   mem.Bytes // of a GPU with plenty, by a program whose allocator keeps nothing idle
	ran      map[string]*Point
	apart    map[string]*Point // runs for themselves, whose host memory is known
	tight    bool              // what they are to reach on the device: a tight fit
	roomy    *Outcome          // of the unchanged program with plenty of memory
	plenty   bool              // each lever alone runs with plenty of memory too

	framework string   // of the program, as levers have it
	donated   []string // what it could donate
}

func newSearch(o Options, host Host) *search {
	return &search{Options: o, host: host, ran: map[string]*Point{}, result: &Result{Version: 1, Label: mem.Imagined,
		Command: mem.MaskArgs(o.Command), Goal: o.Goal, Host: o.Host,
		Points: []*Point{}, Refused: map[string]string{}, Notes: []string{}}}
}

// begin runs the program as it is, once with plenty of memory and its blocks recorded, and with each lever alone.
func (s *search) begin(ctx context.Context) error {
	first := s.plan(nil)
	words, ranks := s.asksWords(), s.asksRanks()
	runs := []Run{{Plan: first, Roomy: true, Blocks: true, Counted: words || ranks}, {Plan: first, Roomy: s.plenty}}
	for _, lever := range levers.All {
		if lever.Host() || !lever.For(levers.PyTorch) { // the first only where the host is looked at, see host.go
			continue
		}
		if lever.Price != levers.Changing || slices.Contains(s.Allow, lever.Name) {
			if plan := s.plan([]string{"*"}, lever.Name); s.possible(plan) {
				runs = append(runs, Run{Plan: plan, Roomy: s.plenty, Counted: plan.Slices()})
			}
		}
	}
	outcomes := s.host.Try(ctx, runs)
	s.result.Runs += len(runs)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.know(outcomes[0], outcomes[1]); err != nil {
		return err
	}
	if s.framework == levers.JAX {
		runs, outcomes = s.ofJAX(ctx, runs[:2], outcomes[:2])
	}
	for i, run := range runs[1:] {
		if settings := run.Plan.Levers[levers.Checkpoint]; len(settings.Blocks) > 0 { // now their names are known
			if o := outcomes[i+1]; s.recorded == nil && o != nil && o.Refused == "" {
				continue
			}
			settings.Blocks = s.recorded.names()
			run.Plan.Levers[levers.Checkpoint] = settings
		}
		s.took(run.Plan, outcomes[i+1])
	}
	if !s.plenty {
		s.inLess(ctx, runs[1:])
	}
	return ctx.Err()
}

// ofJAX runs each lever of JAX alone, behind runs without a lever; levers of PyTorch were not run.
func (s *search) ofJAX(ctx context.Context, runs []Run, outcomes []*Outcome) ([]Run, []*Outcome) {
	plain, names := len(runs), []string(nil)
	for i := range levers.All {
		if lever := &levers.All[i]; lever.Framework == levers.JAX && (lever.Name != levers.Donate || len(s.donated) > 0) {
			names = append(names, lever.Name)
			runs = append(runs, Run{Plan: s.plan(nil, lever.Name), Roomy: s.plenty})
		}
	}
	s.result.Runs = len(runs)
	outcomes = append(outcomes, s.host.Try(ctx, runs[plain:])...)
	for i := plain; i < len(runs); i++ {
		o := outcomes[i]
		switch {
		case o == nil || o.Refused != "" || o.Verdict == mem.VerdictOOM:
		case o.Fits() && !o.Applied:
			o.Refused = names[i-plain] + ": " + frameworks.Unseen(levers.JAX)
		case !o.Fits() && o.How != "":
			o.Refused = names[i-plain] + ": with it, " + o.How
		}
	}
	return runs, outcomes
}

// checkJAX refuses what was asked of a program of JAX and is of PyTorch's levers.
func (s *search) checkJAX() error {
	for _, name := range s.Allow {
		if lever := levers.Find(name); lever != nil && !lever.For(levers.JAX) {
			return fail.Input("leave it out", "--allow %s: it is a lever of PyTorch, and this program computes with JAX", name)
		}
	}
	return nil
}

// know takes in the recorded pass, and refuses a program that says nothing.
func (s *search) know(roomy, plain *Outcome) error {
	if roomy == nil || !roomy.Fits() {
		how := "it did not run"
		if roomy != nil {
			how = cmp.Or(roomy.How, string(roomy.Verdict))
		}
		return fail.Input("hightide imagine -- "+mem.CommandLine(s.Command)+" says more",
			"the program gives no verdict on a GPU with plenty of memory: %s", how)
	}
	s.roomy = roomy
	name, size, _ := strings.Cut(roomy.Model, " ")
	s.model, s.result.Model, s.result.Need, s.result.NeedCurve = name, name, roomy.Used, roomy.Curve
	s.needed = mem.Bytes(roomy.Allocated.Or(0) + roomy.Used.Or(0) - roomy.Reserved.Or(0))
	s.size, _ = strconv.ParseInt(size, 10, 64)
	s.code = roomy.Code
	s.framework = levers.PyTorch
	if other := frameworks.Untuned[roomy.Other]; name == "" && other.Says != "" {
		return fail.Input(other.Instead, "%s", other.Says)
	}
	if name == "" && roomy.Other == levers.JAX {
		s.framework, s.donated = levers.JAX, roomy.Donated
		s.result.Notes = append(s.result.Notes, "where JAX takes a share of the device as it starts, peak used has that share; "+
			"peak allocated is what arrays hold")
		if err := s.checkJAX(); err != nil {
			return err
		}
	} else if name == "" {
		return fail.Input("levers change trainings: a model that is in training mode and has parameters with gradients",
			"the program trains no PyTorch model")
	}
	var recorded Recorded
	if json.Unmarshal([]byte(roomy.Blocks), &recorded) == nil && len(recorded.Blocks) > 0 {
		s.recorded, s.result.Blocks = &recorded, len(recorded.Blocks)
	} else if s.framework == levers.PyTorch {
		s.result.Notes = append(s.result.Notes, name+" has no repeated blocks that were seen in its second and third "+
			"step, so checkpointing was not planned")
	}
	if plain == nil {
		return fail.Input("", "the program gives no verdict on %s", s.GPU)
	}
	s.result.GPU, s.result.GPUName, s.result.Total = plain.GPU, plain.GPUName, plain.Total
	share, _ := room(s.Goal)
	s.room = plain.Tight
	if share > 0 {
		s.room = mem.Bytes(share * float64(plain.Total))
	}
	s.result.Room = s.room
	return nil
}

// plan makes a plan of levers; blocks are those of checkpoint, which is left out where there are none.
func (s *search) plan(blocks []string, names ...string) *levers.Plan {
	p := &levers.Plan{Version: levers.Version, Command: mem.CommandLine(s.result.Command), Model: s.model,
		Parameters: s.size, Levers: map[string]levers.Settings{}}
	for _, step := range names {
		switch name, settings := named(step); name {
		case levers.Allocator:
			p.Levers[name] = levers.Settings{Value: expandable}
		case levers.Checkpoint:
			if len(blocks) > 0 {
				p.Levers[name] = levers.Settings{Blocks: blocks}
			}
		case levers.Donate:
			p.Levers[name] = levers.Settings{Arguments: s.donated}
		case levers.Words:
			p.Levers[name] = s.worded(settings)
		case levers.Spread:
			p.Levers[name] = levers.Settings{Ranks: s.GPUs}
		default:
			p.Levers[name] = settings
		}
	}
	return p
}

// asksWords says whether the command may be changed and can be; where it cannot, that is said of the lever.
func (s *search) asksWords() bool {
	if !slices.Contains(s.Allow, levers.Words) {
		return false
	}
	_, why := s.parted(levers.Find(levers.Words).Steps[0].Parts)
	if why != "" {
		s.result.Refused[levers.Words] = why
	}
	return why == ""
}

// asksRanks says the same of starting the command as a process for each GPU.
func (s *search) asksRanks() bool {
	if !slices.Contains(s.Allow, levers.Spread) {
		return false
	}
	why := "the command cannot be started by torchrun"
	if s.host.Ranked != nil {
		_, why = s.host.Ranked(s.GPUs)
	}
	if why != "" {
		s.result.Refused[levers.Spread] = why
	}
	return why == ""
}

func (s *search) parted(parts int) (command []string, why string) {
	if s.host.Parted == nil {
		return nil, "the command cannot be changed"
	}
	return s.host.Parted(parts)
}

// possible says whether the command can be changed as a plan wants it.
func (s *search) possible(plan *levers.Plan) bool {
	return (!plan.Cuts() || plan.Levers[levers.Words].Command != "") &&
		(plan.Ranks() == 0 || s.result.Refused[levers.Spread] == "")
}

// worded completes the settings by the command that they make; "" where they make none.
func (s *search) worded(settings levers.Settings) levers.Settings {
	if command, why := s.parted(settings.Parts); why == "" {
		settings.Command = mem.CommandLine(mem.MaskArgs(command))
	}
	return settings
}

// degree names a lever that is set by degrees, with one of them, the mildest first: "compile_budget=1".
func degree(name string, at int) string { return fmt.Sprintf("%s=%d", name, at) }

// strongest is a lever with its strongest degree.
func strongest(name string) string {
	if lever := levers.Find(name); lever != nil && len(lever.Steps) > 0 {
		return degree(name, len(lever.Steps)-1)
	}
	return name
}

// named is the lever of such a name, and its settings: the mildest where no degree is said.
func named(step string) (string, levers.Settings) {
	name, at, _ := strings.Cut(step, "=")
	lever := levers.Find(name)
	if lever == nil || len(lever.Steps) == 0 {
		return name, levers.Settings{}
	}
	n, _ := strconv.Atoi(at)
	return name, lever.Steps[n]
}

// inPlan is the name of a lever as a plan has it, with its degree.
func inPlan(p *levers.Plan, lever *levers.Lever) string {
	settings := p.Levers[lever.Name]
	settings.Command = "" // follows from the degree
	for i := range lever.Steps {
		if reflect.DeepEqual(lever.Steps[i], settings) {
			return degree(lever.Name, i)
		}
	}
	return lever.Name
}

// took takes in a run.
func (s *search) took(plan *levers.Plan, o *Outcome) {
	if p := s.point(plan, o); p != nil {
		s.ran[key(plan)] = p
		s.Events.Tell(*p)
	}
}

// point is what a run says of a plan; nil: nothing.
func (s *search) point(plan *levers.Plan, o *Outcome) *Point {
	if o == nil {
		return nil
	}
	if o.Refused != "" {
		name, why, _ := strings.Cut(o.Refused, ": ")
		s.result.Refused[name] = why
		return nil
	}
	if lever, why := unequal(plan, s.roomy, o); why != "" {
		s.result.Refused[lever] = why
		return nil
	}
	if plan.Agent() != "" && len(plan.Levers) > 0 && !o.Applied && o.Verdict != mem.VerdictOOM ||
		!o.Fits() && o.Verdict != mem.VerdictOOM {
		return nil
	}
	plan.GPU, plan.Model, plan.Parameters = s.result.GPU, s.model, s.size
	if o.Fits() {
		plan.Planned = levers.Figures{Allocated: mem.Bytes(o.Allocated.Or(0)), Reserved: mem.Bytes(o.Reserved.Or(0)),
			Used: mem.Bytes(o.Used.Or(0))}
	}
	plan.Planned.Moved, plan.Planned.Host = o.Moved, mem.Bytes(o.Host.Or(0))
	plan.Planned.Recomputed, _ = s.recorded.Share(plan.Levers[levers.Checkpoint].Blocks)
	return &Point{Plan: plan, What: plan.Changes(), Verdict: o.GPUVerdict, Exact: plan.Exact(),
		Numbers: plan.Numbers(), Costs: costs(plan),
		left: o.Left, Text: plan.Text(), Curve: o.Curve, Enough: o.Fits() && o.Headroom.Or(0) >= int64(s.room)}
}

func key(p *levers.Plan) string {
	text, _ := json.Marshal(p.Levers)
	return string(text)
}

// try runs the plans that have not been run, from one start where that can be.
func (s *search) try(ctx context.Context, plans ...*levers.Plan) {
	var runs []Run
	for _, plan := range plans {
		asked := func(r Run) bool { return key(r.Plan) == key(plan) }
		if s.ran[key(plan)] == nil && s.possible(plan) && !slices.ContainsFunc(runs, asked) {
			runs = append(runs, Run{Plan: plan, Counted: plan.Slices()})
		}
	}
	if len(runs) == 0 || ctx.Err() != nil {
		return
	}
	s.result.Runs += len(runs)
	for i, o := range s.host.Try(ctx, runs) {
		s.took(runs[i].Plan, o)
	}
	s.inLess(ctx, runs)
}

// inLess runs plans again, of the goal headroom, in what that goal leaves of the memory: those whose run left less free
// only by what the allocator kept idle, which it gives back where memory is short.
func (s *search) inLess(ctx context.Context, ran []Run) {
	if share, _ := room(s.Goal); share == 0 {
		return
	}
	left := s.result.Total - s.room
	var again []*Point
	var runs []Run
	for _, run := range ran {
		p := s.ran[key(run.Plan)]
		if p == nil || p.Enough || !p.Verdict.Fits() || slices.Contains(again, p) {
			continue
		}
		v := &p.Verdict
		if needed := mem.Bytes(v.Allocated.Or(0) + v.Used.Or(0) - v.Reserved.Or(0)); v.Reserved.Known() && needed <= left {
			again, runs = append(again, p), append(runs, Run{Plan: p.Plan, Memory: left})
		}
	}
	if len(runs) == 0 || ctx.Err() != nil {
		return
	}
	s.result.Runs += len(runs)
	for i, o := range s.host.Try(ctx, runs) {
		if p := again[i]; o != nil && o.Fits() && (o.Applied || len(p.Plan.Levers) == 0 || p.Plan.Agent() == "") {
			p.Enough, p.Within = true, mem.Some(int64(left))
			s.Events.Tell(*p)
		}
	}
}

// found is the cheapest point that reaches the goal; nil: none so far.
func (s *search) found() *Point {
	var best *Point
	for _, p := range s.ran {
		if p.Enough && (best == nil || cheaper(p, best) < 0 || cheaper(p, best) == 0 && p.What < best.What) {
			best = p
		}
	}
	return best
}

// free are the levers that cost next to nothing and can be used here.
func (s *search) free() (names []string) {
	for _, lever := range levers.All {
		if lever.Price == levers.Free && s.usable(lever.Name) {
			names = append(names, lever.Name)
		}
	}
	return names
}

// usable says whether a lever alone ran and was not refused, now or since.
func (s *search) usable(name string) bool {
	return s.result.Refused[name] == "" && s.ran[key(s.plan(s.recorded.names(), name))] != nil
}

// deeper looks for plans of several levers: those that cost nothing, with what the compiler computes again, and as many
// blocks as it takes; then the host's memory; then what changes numbers, where that is allowed, beside the first of
// these and then with the host's memory too.
func (s *search) deeper(ctx context.Context) {
	with := s.settled(ctx, s.stepped(ctx, s.stepped(ctx, s.free(), levers.Budget), levers.Remat))
	for _, more := range [][]string{{levers.Hosted}, {levers.Offload}, {levers.Hosted, levers.Offload}} {
		if best := s.found(); best == nil && !slices.ContainsFunc(more, s.unusable) {
			s.settled(ctx, append(slices.Clone(with), more...))
		}
	}
	for _, hosts := range [][]string{nil, s.hosts()} {
		beside := append(slices.Clone(with), hosts...)
		for _, more := range s.Allow {
			best := s.found()
			enough := best != nil && (hosts != nil || best.Exact && best.Plan.Planned.Moved == 0)
			if !enough && s.usable(more) {
				beside = s.settled(ctx, s.stepped(ctx, levers.Beside(beside, more), more))
			}
		}
	}
	s.fewer(ctx)
}

// hosts are the levers that use the host's memory and can be used here.
func (s *search) hosts() []string {
	return slices.DeleteFunc([]string{levers.Hosted, levers.Offload}, s.unusable)
}

func (s *search) unusable(name string) bool { return !s.usable(name) }

// stepped adds a lever by its mildest degree that reaches the goal beside others, else by its strongest that ran.
func (s *search) stepped(ctx context.Context, with []string, name string) []string {
	lever := levers.Find(name)
	switch {
	case lever == nil || !s.usable(name):
		return with
	case len(lever.Steps) == 0:
		return append(slices.Clone(with), name)
	}
	var plans []*levers.Plan
	for i := range lever.Steps {
		plans = append(plans, s.plan(nil, append(slices.Clone(with), degree(name, i))...))
	}
	s.try(ctx, plans...)
	last := 0
	for i, plan := range plans {
		if p := s.ran[key(plan)]; p != nil {
			if last = i; p.Enough {
				break
			}
		}
	}
	return append(slices.Clone(with), degree(name, last))
}

// settled runs sets of blocks beside other levers, and again without those that were refused meanwhile: the less memory
// a plan takes, the further its program gets. It returns the levers that are left.
func (s *search) settled(ctx context.Context, with []string) []string {
	for {
		s.blocks(ctx, with)
		left := slices.DeleteFunc(slices.Clone(with), func(step string) bool {
			name, _ := named(step)
			return s.result.Refused[name] != ""
		})
		if len(left) == len(with) || ctx.Err() != nil {
			return left
		}
		with = left
	}
}

// spared says whether the goal is reached without a cost: nothing is computed again or moved.
func (s *search) spared() bool {
	best := s.found()
	if best != nil && s.framework == levers.JAX {
		_, again := best.Plan.Levers[levers.Remat]
		return !again
	}
	return best != nil && best.Exact && best.Plan.Planned.Moved == 0 && best.Plan.Levers[levers.Budget].Budget == 0 &&
		len(best.Plan.Levers[levers.Checkpoint].Blocks) == 0
}

// blocks finds the cheapest set of blocks that reaches the goal beside other levers. The frontier of the recorded pass
// is tried at both ends and where that pass says the goal is reached, then searched from several sides at once.
func (s *search) blocks(ctx context.Context, with []string) {
	if s.recorded == nil || !s.usable(levers.Checkpoint) {
		s.try(ctx, s.plan(nil, with...))
		return
	}
	sets := s.recorded.Frontier()
	sets = append(sets, s.recorded.further(sets[len(sets)-1])...)
	all := append(slices.Clone(with), levers.Checkpoint)
	low, high := -1, len(sets) // sets[low] is not enough, sets[high] is, or nothing is
	guess := s.guess(sets)
	for at := []int{0, guess - 1, guess, guess + 1, len(sets) - 1}; high-low > 1 && ctx.Err() == nil; at = between(low, high) {
		at = slices.DeleteFunc(at, func(n int) bool { return n <= low || n >= high })
		slices.Sort(at)
		at = slices.Compact(at)
		plans := make([]*levers.Plan, len(at))
		for i, n := range at {
			plans[i] = s.plan(sets[n], all...)
		}
		s.try(ctx, plans...)
		for i, n := range at {
			if p := s.ran[key(plans[i])]; p != nil && p.Enough {
				high = n
				break
			}
			low = n
		}
	}
}

// between are places inside a part of the frontier, evenly spaced.
func between(low, high int) (at []int) {
	for i := 1; i <= atOnce; i++ {
		at = append(at, low+(high-low)*i/(atOnce+1))
	}
	return at
}

// guess is the first set by which the recorded pass says that the goal is reached. With expandable segments, and seldom
// without, the allocator takes little more from the device than it gives.
func (s *search) guess(sets [][]string) int {
	over := s.needed + s.room - s.result.Total // that the plan has to save
	n := slices.IndexFunc(sets, func(set []string) bool { return s.recorded.Highest-s.recorded.Peak(set) >= over })
	if n < 0 {
		return len(sets) - 1
	}
	return n
}

// pick is the cheapest point that reaches the goal, else one with less room than the figures are sure of; nil: none.
func (s *search) pick() *Point {
	if best := s.found(); best != nil || s.result.Goal != fitGoal {
		return best
	}
	var best *Point
	for _, p := range s.ran {
		if p.Verdict.Fits() && (best == nil || cheaper(p, best) < 0 || cheaper(p, best) == 0 && p.What < best.What) {
			best = p
		}
	}
	return best
}

// fewer takes levers that cost nothing out of what was found: all of them, or all but one, or else each that it can do
// without by itself, and all these at once.
func (s *search) fewer(ctx context.Context) {
	best := s.found()
	if best == nil {
		return
	}
	sets := best.Plan.Levers[levers.Checkpoint].Blocks
	var costly, free []string
	for i := range levers.All {
		lever := &levers.All[i]
		switch _, on := best.Plan.Levers[lever.Name]; {
		case on && lever.Price != levers.Free:
			costly = append(costly, inPlan(best.Plan, lever))
		case on:
			free = append(free, lever.Name)
		}
	}
	plans := []*levers.Plan{s.plan(sets, costly...)}
	for i := range free {
		plans = append(plans, s.plan(sets, append(slices.Clone(costly), free[i])...))
	}
	s.try(ctx, plans...)
	if s.found() != best {
		return
	}
	plans = plans[:0]
	for i := range free {
		plans = append(plans, s.plan(sets, append(slices.Delete(slices.Clone(free), i, i+1), costly...)...))
	}
	s.try(ctx, plans...)
	kept := slices.Clone(costly)
	for i := range free {
		if p := s.ran[key(plans[i])]; p == nil || !p.Enough {
			kept = append(kept, free[i])
		}
	}
	s.try(ctx, s.plan(sets, kept...))
}
