package levers

import (
	"maps"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Variables of a program that was started again: the program reads the first, the agent both.
const (
	variableRetry = "HIGHTIDE_RETRY"       // how often it was started before
	variableSince = "HIGHTIDE_RETRY_SINCE" // when it was first, in ns since 1970
)

// Start is one of the starts of a command that is started again where memory ran out.
type Start struct {
	Number int    // 0: the first
	Most   int    // how often it may be started again
	Since  int64  // when the first was, in ns since 1970
	Before string // the run that ran out of memory
}

// Ran is what came of a start.
type Ran struct {
	ID      string
	Again   bool   // memory ran out, and nobody wants it to end
	Refused string // why the plan could not be applied: the lever and the reason
}

// Retry starts a command, and again with the next plan as long as memory runs out. A lever of ours that cannot be used
// in this program is left out, which is no start: nothing was trained. told is called before each further start.
func Retry(first Start, plan *Plan, run func(Start, *Plan) (Ran, error), told func(Start, *Plan)) error {
	refused := map[string]bool{}
	for now := first; ; {
		ran, err := run(now, plan)
		if err != nil {
			return err
		}
		lever, _, _ := strings.Cut(ran.Refused, ": ")
		if now.Number > 0 && plan.has(lever) {
			refused[lever] = true
			plan = plan.without(lever)
			continue
		}
		if now.Number == now.Most || !ran.Again {
			return nil
		}
		plan = plan.next(refused)
		now.Number, now.Before = now.Number+1, ran.ID
		told(now, plan)
	}
}

// Variables are what a program that was started again finds in its environment.
func (s Start) Variables() map[string]string {
	if s.Number == 0 {
		return nil
	}
	return map[string]string{variableRetry: strconv.Itoa(s.Number), variableSince: strconv.FormatInt(s.Since, 10)}
}

// Event says in a recording which start it is.
func (s Start) Event(plan *Plan) mem.Event {
	return mem.Event{Time: 1, Kind: mem.EventRetry, Text: plan.Changes(), Facts: map[string]string{"before": s.Before},
		Numbers: map[string]int64{"start": int64(s.Number) + 1, "most": int64(s.Most) + 1}}
}

// after a run that ran out of memory: what takes most at a moderate cost, then the host's memory. All of them keep
// numbers, and each start of a training is dear, so they do not come one by one.
var after = []map[string]Settings{
	{Allocator: {Value: "expandable_segments:True"}, Checkpoint: {Blocks: []string{everyBlock}}},
	{Offload: {}},
}

// next is the plan to try where memory ran out with this one, without levers that were refused; the same where there is
// nothing more. A nil plan changes nothing.
func (p *Plan) next(refused map[string]bool) *Plan {
	next := p.copied()
	for _, more := range after {
		changed := false
		for name, settings := range more {
			before, on := next.Levers[name]
			if refused[name] || next.besides(name) ||
				on && (name != Checkpoint || blocks(before.Blocks) == blocks(settings.Blocks)) {
				continue
			}
			next.Levers[name], changed = settings, true
		}
		if changed {
			next.Planned, next.file = Figures{}, "" // that was of another plan
			return next
		}
	}
	return next
}

// besides says whether it has what does not go with a lever.
func (p *Plan) besides(lever string) bool {
	for name := range p.Levers {
		if len(Beside([]string{lever}, name)) == 0 {
			return true
		}
	}
	return false
}

// without is the plan without a lever.
func (p *Plan) without(lever string) *Plan {
	next := p.copied()
	delete(next.Levers, lever)
	next.Planned, next.file = Figures{}, ""
	return next
}

func (p *Plan) copied() *Plan {
	if p == nil {
		return &Plan{Version: Version, Levers: map[string]Settings{}}
	}
	next := *p
	if next.Levers = maps.Clone(p.Levers); next.Levers == nil {
		next.Levers = map[string]Settings{}
	}
	return &next
}
