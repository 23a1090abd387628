package imagine

import (
	"context"

	"hightide/internal/frameworks"
	"hightide/internal/levers"
	"hightide/internal/mem"
)

// Plan is what the first run applies; nil: nothing.
func (s *Session) Plan() *levers.Plan { return s.first.plan }

// Planned is one run with a plan.
type Planned struct {
	Plan   *levers.Plan
	Roomy  bool // on such a GPU with all the memory that the program wants
	Blocks bool // what each block takes is a fact of it

	Counted bool // so is how the backward passes of a step add up

	Memory mem.Bytes // of such a GPU, what there is of its memory; 0: all
	Apart  bool      // started for itself, with nothing recorded that takes memory: the host's is looked at
}

// TryPlans runs the program with each plan, of which nothing is to be seen or kept but the figures. A nil result did
// not run to a verdict. The first one, where it records blocks, is of the program as it is: where that fails, so do the
// others, and those that are left are not run. Where it trains no model of PyTorch, plans with levers are not run.
func (s *Session) TryPlans(ctx context.Context, plans []Planned) []*Result {
	s.imports = []string{frameworks.ImportedByStep}
	trials := make([]trial, len(plans))
	for i, planned := range plans {
		trials[i] = s.planned(s.first, planned.Plan)
		trials[i].blocks, trials[i].traced = planned.Blocks, !planned.Apart
		trials[i].apart, trials[i].counted = planned.Apart, planned.Counted
		if command, err := Changed(planned.Plan, trials[i].command); err == nil {
			trials[i].command = command
		}
		if planned.Memory > 0 {
			trials[i].gpu.Total, trials[i].gpu.Lowest = planned.Memory, 0
		}
		if planned.Roomy {
			trials[i].gpu.Total, trials[i].gpu.Lowest = plenty, 0
			trials[i].env = mergeEnv(trials[i].env, s.asNeeded)
		}
	}
	results := s.copies(ctx, trials)
	if plans[0].Blocks && results[0] == nil {
		if results[0] = s.withPlenty(ctx, &trials[0]); results[0] == nil || !results[0].Fits() {
			return results
		}
	}
	elsewhere := results[0] != nil && plans[0].Blocks && results[0].Fact(levers.FactModel) == "" &&
		frameworks.Other(results[0].Uses) != ""
	var jobs []func()
	for i := range trials {
		if elsewhere && results[i] == nil && len(plans[i].Plan.Levers) > 0 {
			continue
		}
		jobs = append(jobs, func() {
			if results[i] == nil && ctx.Err() == nil {
				results[i], _ = s.attempt(ctx, trials[i])
			}
			verdict := mem.VerdictNone
			if results[i] != nil {
				verdict = results[i].Verdict
			}
			s.advance("%s: %s", plans[i].Plan.Changes(), verdict)
		})
	}
	s.lock.Lock()
	s.all += len(jobs)
	s.lock.Unlock()
	s.atOnce(jobs)
	return results
}

// withPlenty is a run with all the memory that the program wants: a framework that would take a share of the whole
// device as it starts is told to take what it needs.
func (s *Session) withPlenty(ctx context.Context, t *trial) *Result {
	result, _ := s.attempt(ctx, *t)
	if result == nil || result.Fits() || s.asNeeded != nil || t.gpu.Total != plenty {
		return result
	}
	if s.asNeeded = frameworkOf(result).AsNeeded; len(s.asNeeded) == 0 {
		return result
	}
	t.env = mergeEnv(t.env, s.asNeeded)
	result, _ = s.attempt(ctx, *t)
	return result
}
