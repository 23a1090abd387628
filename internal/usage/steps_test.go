package usage

import (
	"testing"

	"hightide/internal/mem"
)

// made writes the trace of a device by hand: each block at an address of its own.
type made struct {
	mem.AllocatorSnapshot
	t    mem.Trace
	next uint64
}

// calls are a stack, innermost first; none: autograd's own, of which Python knows nothing.
func (m *made) calls(frames ...mem.Location) uint32 {
	var numbers []uint32
	for _, l := range frames {
		numbers = append(numbers, m.Stacks.Location(l))
	}
	return m.Stacks.Add(numbers)
}

func (m *made) event(action mem.Action, address uint64, size mem.Bytes, stack uint32) {
	t := &m.t
	t.Action, t.Address, t.Size = append(t.Action, action), append(t.Address, address), append(t.Size, size)
	t.Stream, t.Stack = append(t.Stream, 0), append(t.Stack, stack)
}

func (m *made) alloc(stack uint32, size mem.Bytes) uint64 {
	address := 1<<40 + m.next
	m.next += 2 << 20
	m.event(mem.ActionAlloc, address, size, stack)
	return address
}

func (m *made) free(address uint64, size mem.Bytes) {
	m.event(mem.ActionFreeRequested, address, size, 0)
	m.event(mem.ActionFreeCompleted, address, size, 0)
}

func (m *made) device() *Device {
	m.t.Device = 0
	m.Traces = []mem.Trace{m.t}
	return FromTrace(&m.AllocatorSnapshot, 0, Whole)
}

// backward is a pass through some layers, which leaves a gradient of each: with the frames of C++, or with none at all.
func (m *made) backward(layers int, cpp bool) {
	of := func(name string) uint32 {
		if !cpp {
			return 0
		}
		return m.calls(mem.Location{Function: name, Native: true},
			mem.Location{Function: "torch::autograd::Engine::thread_main", Native: true})
	}
	for range layers {
		for i, name := range []string{"AddmmBackward0::apply", "MulBackward0::apply", "ViewBackward0::apply",
			"GeluBackward0::apply", "AddBackward0::apply"} {
			size := mem.Bytes(64+i) * mem.KiB
			m.free(m.alloc(of(name), size), size)
		}
		m.alloc(of("AddmmBackward0::apply"), mem.MiB)
	}
}

// forward is a pass through layers of a model, or of a plain function; what it allocates is kept for backward.
func (m *made) forward(layers int, modules bool) {
	for range layers {
		for i := range 6 {
			frames := []mem.Location{{File: "/home/me/train.py", Function: "block", Line: 10 + i}}
			if modules {
				frames = append(frames, mem.Location{File: "/x/torch/nn/modules/module.py", Function: "_call_impl", Line: 1})
			}
			m.alloc(m.calls(append(frames, mem.Location{File: "/home/me/train.py", Function: "main", Line: 50})...),
				mem.Bytes(40+i)*mem.KiB)
		}
	}
}

// TestLayersAreNoSteps: what repeats from layer to layer within one pass of a training makes no steps, and so no leak.
func TestLayersAreNoSteps(t *testing.T) {
	for name, record := range map[string]func(m *made){
		"one backward pass with the frames of C++": func(m *made) { m.backward(22, true) },
		"after a forward pass": func(m *made) {
			m.forward(1, true)
			m.backward(22, true)
		},
		"after a forward pass, without frames": func(m *made) {
			m.forward(1, true)
			m.backward(22, false)
		},
		"without frames, of a program without modules": func(m *made) {
			m.forward(1, false)
			m.backward(22, false)
		},
		"a forward pass of a training": func(m *made) {
			m.backward(2, true)
			m.forward(22, true)
		},
		"both": func(m *made) {
			m.forward(22, true)
			m.backward(22, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m made
			record(&m)
			d := m.device()
			if steps := d.Steps(nil); steps != nil && len(steps.Steps) > 0 {
				t.Errorf("%d steps", len(steps.Steps))
			}
		})
	}
}

// TestStepsOfATraining: the same layers, trained for some steps, do.
func TestStepsOfATraining(t *testing.T) {
	for name, how := range map[string]struct{ modules, cpp bool }{
		"modules, C++": {true, true}, "modules": {true, false}, "no modules, C++": {false, true},
		"no modules": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var m made
			for range 7 {
				m.forward(3, how.modules)
				m.backward(3, how.cpp)
				loss := m.calls(mem.Location{File: "/home/me/train.py", Function: "main", Line: 60})
				for i := range 4 {
					m.free(m.alloc(loss, mem.Bytes(3+i)*mem.KiB), mem.Bytes(3+i)*mem.KiB)
				}
			}
			if steps := m.device().Steps(nil); steps == nil || len(steps.Steps) != 7 {
				t.Errorf("%+v", steps)
			}
		})
	}
}
