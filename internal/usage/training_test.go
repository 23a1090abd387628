package usage

import (
	"testing"

	"hightide/internal/mem"
)

// block is one that was allocated and is to be freed.
type block struct {
	address uint64
	size    mem.Bytes
}

func (m *made) freeAll(all []block) {
	for _, b := range all {
		m.free(b.address, b.size)
	}
}

var (
	trainLine = mem.Location{File: "/home/me/train.py", Function: "main", Line: 50}
	call      = mem.Location{File: "/x/torch/nn/modules/module.py", Function: "_call_impl", Line: 1}
	adam      = mem.Location{File: "/x/torch/optim/adam.py", Function: "step", Line: 1}
)

// call6 is a call of a model of six equal layers on a batch, whose sizes it decides; what it returns lives on.
func (m *made) call6(batch mem.Bytes) (saved []block) {
	input := m.calls(mem.Location{File: "/home/me/train.py", Function: "load", Line: 9}, trainLine)
	saved = append(saved, block{m.alloc(input, batch*mem.KiB), batch * mem.KiB})
	for range 6 {
		for i := range 4 {
			size := (batch + mem.Bytes(i)) * mem.KiB
			saved = append(saved, block{m.alloc(m.calls(mem.Location{File: "/home/me/train.py", Function: "block", Line: 10 +
				i}, call, trainLine), size), size})
		}
	}
	return saved
}

// pass is a forward and a backward pass; what it returns are the gradients.
func (m *made) pass(batch mem.Bytes) (gradients []block) {
	saved := m.call6(batch)
	for range 6 {
		stack := m.calls(mem.Location{Function: "AddmmBackward0::apply", Native: true},
			mem.Location{Function: "torch::autograd::Engine::thread_main", Native: true})
		m.free(m.alloc(stack, batch*mem.KiB), batch*mem.KiB)
		gradients = append(gradients, block{m.alloc(stack, 64*mem.KiB), 64 * mem.KiB})
	}
	m.freeAll(saved)
	return gradients
}

// optimize is a step of Adam, whose state the first one makes.
func (m *made) optimize(states []block) []block {
	stack := m.calls(adam, trainLine)
	if states == nil {
		for range 6 {
			states = append(states, block{m.alloc(stack, 128*mem.KiB), 128 * mem.KiB})
		}
	}
	for range 6 {
		m.free(m.alloc(stack, 32*mem.KiB), 32*mem.KiB)
	}
	return states
}

// TestStepsAreWhatTheProgramTakes: neither micro-batches nor layers nor epochs are steps, and batches of different
// sizes are.
func TestStepsAreWhatTheProgramTakes(t *testing.T) {
	for name, of := range map[string]struct {
		steps  int
		record func(m *made)
	}{
		"gradients of four batches": {6, func(m *made) {
			var states []block
			for range 6 {
				var gradients []block
				for range 4 {
					gradients = append(gradients, m.pass(100)...)
				}
				states = m.optimize(states)
				m.freeAll(gradients)
			}
		}},
		"an evaluation after each fifth": {15, func(m *made) {
			var states []block
			for range 3 {
				for range 5 {
					gradients := m.pass(100)
					states = m.optimize(states)
					m.freeAll(gradients)
				}
				for range 7 {
					m.freeAll(m.call6(400))
				}
			}
		}},
		"batches of all sizes": {20, func(m *made) {
			var states []block
			for i := range 20 {
				gradients := m.pass(mem.Bytes(100 + 37*i%90))
				states = m.optimize(states)
				m.freeAll(gradients)
			}
		}},
		"inference": {30, func(m *made) {
			for range 30 {
				m.freeAll(m.call6(100))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var m made
			of.record(&m)
			if steps := m.device().Steps(nil); steps == nil || len(steps.Steps) != of.steps {
				t.Errorf("%d steps, want %d", len(steps.Steps), of.steps)
			}
		})
	}
}

// trained is a training of some steps that keeps a block in each from one step on, and gives all back at its end.
func trained(steps, keeps int) *Device {
	var m made
	var parameters, states []block
	for range 4 {
		parameters = append(parameters, block{m.alloc(m.calls(mem.Location{File: "/home/me/train.py", Function: "build",
			Line: 3}, trainLine), 256*mem.KiB), 256 * mem.KiB})
	}
	kept := m.calls(mem.Location{File: "/home/me/train.py", Function: "keep", Line: 30}, trainLine)
	for i := range steps {
		gradients := m.pass(100)
		states = m.optimize(states)
		m.freeAll(gradients)
		if i >= keeps {
			m.alloc(kept, 128*mem.KiB)
		}
	}
	m.freeAll(parameters)
	m.freeAll(states)
	return m.device()
}

// TestLateGrowth: what begins to grow late is found, with the step at which it began; what ended by then is not.
func TestLateGrowth(t *testing.T) {
	for keeps, want := range map[int]int{0: 1, 36: 1, 60: 0} {
		d := trained(60, keeps)
		steps := d.Steps(nil)
		bins, _ := d.GrowthBins(steps)
		grows := d.Growing(NewNames(d.Stacks), bins, float64(64*mem.KiB), Trend{}, nil)
		if len(steps.Steps) != 60 || len(grows) != want {
			t.Fatalf("from step %d: %d steps, %+v", keeps, len(steps.Steps), grows)
		}
		if want == 0 {
			continue
		}
		since := 0
		if grows[0].From > 0 {
			since = int(bins.X[grows[0].From]) + 1 // the first step is not looked at
		}
		if grows[0].Site.Line != 30 || mem.Bytes(grows[0].Slope) != 128*mem.KiB || since != keeps {
			t.Errorf("from step %d: %+v from %d", keeps, grows[0], since)
		}
	}
}

// TestSmallGrowthOfEachStep: what every step keeps alike is told from a block on, what only some keep is not said to
// be of each.
func TestSmallGrowthOfEachStep(t *testing.T) {
	for often, want := range map[int]bool{1: true, 3: false} {
		var m made
		var states []block
		for i := range 40 {
			gradients := m.pass(100)
			states = m.optimize(states)
			m.freeAll(gradients)
			if i%often == 0 {
				m.alloc(m.calls(mem.Location{File: "/home/me/train.py", Function: "keep", Line: 30}, trainLine), 512)
			}
		}
		d := m.device()
		bins, _ := d.GrowthBins(d.Steps(nil))
		grows := d.Growing(NewNames(d.Stacks), bins, 512*38/2, Trend{}, nil)
		if each := len(grows) == 1 && grows[0].Every && grows[0].Slope == 512; each != want {
			t.Errorf("in each %d of the steps: %+v", often, grows)
		}
	}
}

// TestWhatLivesThroughATraining: parameters and Adam's state that a program gives back at its end are neither
// activations nor temporaries.
func TestWhatLivesThroughATraining(t *testing.T) {
	d := trained(10, 10)
	c := NewCategories(d, nil)
	seen := map[string]int{}
	for i := range d.Len() {
		if d.Bytes[i] == 256*mem.KiB || d.Bytes[i] == 128*mem.KiB {
			seen[c.Of(i)]++
		}
	}
	if seen["optimizer state"] != 6 || seen["activations"]+seen["temporaries"] != 0 {
		t.Errorf("%v", seen)
	}
}

// TestNoFramesTellNothing: where stacks were not recorded at all, what has none is not autograd's, and no gradient.
func TestNoFramesTellNothing(t *testing.T) {
	d := trained(10, 10)
	for i := range d.Trace.Stack {
		d.Trace.Stack[i] = 0
	}
	d = FromTrace(d.Snapshot, 0, Whole)
	c, seen := NewCategories(d, nil), map[string]int{}
	for i := range d.Len() {
		seen[c.Of(i)]++
	}
	if steps := d.Steps(nil); !d.Frameless() || steps != nil && len(steps.Phases) > 0 ||
		seen["gradients"]+seen["optimizer state"]+seen["activations"] != 0 {
		t.Errorf("%v, %+v", seen, steps)
	}
}

// TestWhoFreedIsNotWhoAllocated: of a trace that only frees nothing tells whose stacks the frees have.
func TestWhoFreedIsNotWhoAllocated(t *testing.T) {
	var m made
	freed := m.calls(mem.Location{File: "/home/me/train.py", Function: "clear", Line: 70}, trainLine)
	for i := range 3 {
		m.event(mem.ActionFreeRequested, 1<<40+uint64(i)<<21, mem.MiB, freed)
		m.event(mem.ActionFreeCompleted, 1<<40+uint64(i)<<21, mem.MiB, freed)
	}
	d := m.device()
	for i := range d.Len() {
		if d.From[i] < 0 && d.Stack[i] == freed {
			t.Fatal("a block from before the trace has the stack of who freed it")
		}
	}
	if d.Begin.Allocated != 3*mem.MiB {
		t.Errorf("%v at the beginning", d.Begin.Allocated)
	}
}
