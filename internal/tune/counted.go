package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"hightide/internal/levers"
)

// counted is what the agent says of how the backward passes of the first steps add up (docs/formats/levers.md).
type counted struct {
	Norm  string      `json:"norm"` // a batch norm; "": there is none
	Steps []addedStep `json:"steps"`
}

// addedStep is one step of the optimizer.
type addedStep struct {
	Passes int       `json:"passes"`
	Alike  bool      `json:"alike"` // the losses of all passes
	Kept   bool      `json:"kept"`  // gradients were there when a further pass began
	Inputs int64     `json:"inputs"`
	Losses []addend  `json:"losses"` // of the first pass
	Rates  []float64 `json:"rates"`
}

// addend is a part of a loss: what it is, and the number that it is multiplied by.
type addend struct {
	Kind  string  `json:"kind"`
	Scale float64 `json:"scale"`
}

const (
	sumOfAll  = "sum"     // over the samples; "mean" and names of operators are divided by their number
	perTensor = "divided" // by a number that was not read
)

// unequal is why the gradient of a step in parts is not that of the whole batch, by how both add up, and the lever that
// cuts it; "": it is.
func unequal(plan *levers.Plan, roomy, o *Outcome) (lever, why string) {
	switch {
	case !o.Fits() || roomy == nil:
	case plan.Ranks() > 0:
		return levers.Spread, unlike(roomy, o, func(a, whole *addedStep) string { return a.slice(whole, plan.Ranks()) })
	case plan.Cuts():
		parts := plan.Levers[levers.Words].Parts
		return levers.Words, unlike(roomy, o, func(a, whole *addedStep) string { return a.against(whole, parts) })
	}
	return "", ""
}

func unlike(roomy, o *Outcome, against func(a, whole *addedStep) string) string {
	var whole, parts counted
	if json.Unmarshal([]byte(roomy.Counted), &whole) != nil || json.Unmarshal([]byte(o.Counted), &parts) != nil ||
		len(whole.Steps) == 0 || len(parts.Steps) == 0 {
		return "how its losses add up was not seen"
	}
	if whole.Norm != "" {
		return whole.Norm + " is a batch norm, which would see the parts alone"
	}
	for i := range min(len(whole.Steps), len(parts.Steps)) {
		if why := against(&parts.Steps[i], &whole.Steps[i]); why != "" {
			return why
		}
	}
	return ""
}

// against holds a step in parts against the step without.
func (a *addedStep) against(whole *addedStep, parts int) string {
	switch {
	case a.Passes != parts*whole.Passes:
		return fmt.Sprintf("a step of the optimizer has %d backward passes in place of %d, and not %d times as many",
			a.Passes, whole.Passes, parts)
	case a.Inputs != whole.Inputs:
		return "a step of the optimizer sees another number of samples"
	case !a.Kept:
		return "gradients are let go between the parts"
	case !a.Alike || !whole.Alike || len(a.Losses) == 0 || len(a.Losses) != len(whole.Losses):
		return "losses of the parts are not made alike"
	case !slices.Equal(a.Rates, whole.Rates):
		return "the learning rate changes with each part"
	}
	for i, loss := range a.Losses {
		if why := loss.against(whole.Losses[i], parts); why != "" {
			return why
		}
	}
	return ""
}

// slice holds the step of one of several ranks against the step of one process: the mean of their gradients is taken.
func (a *addedStep) slice(whole *addedStep, ranks int) string {
	switch {
	case a.Passes != whole.Passes:
		return fmt.Sprintf("a step of the optimizer has %d backward passes in place of %d", a.Passes, whole.Passes)
	case a.Inputs*int64(ranks) != whole.Inputs:
		return fmt.Sprintf("the model's input is no slice of the batch: it has %d numbers of %d, for %d ranks", a.Inputs,
			whole.Inputs, ranks)
	case !slices.Equal(a.Losses, whole.Losses) || len(a.Losses) == 0:
		return "losses of the ranks are not made as that of the whole batch"
	}
	for _, loss := range whole.Losses {
		switch loss.Kind {
		case sumOfAll:
			return "its loss is a sum over the samples, and the mean of the ranks is taken"
		case perTensor:
			return "its loss is divided by a number that is not known"
		}
	}
	return ""
}

// against holds a part of a loss against the same of the whole batch's.
func (a addend) against(whole addend, parts int) string {
	want := whole.Scale
	if a.Kind != sumOfAll {
		want /= float64(parts)
	}
	equal := math.Abs(a.Scale-want) <= 1e-9*math.Abs(want)
	switch {
	case a.Kind != whole.Kind || a.Kind == perTensor:
		return "its loss is divided by a number that is not known"
	case !equal && a.Kind == sumOfAll:
		return "its loss is a sum over the samples, and is divided by the count"
	case !equal:
		return "its loss is not divided by the count"
	}
	return ""
}
