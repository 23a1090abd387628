package tune

import (
	"testing"

	"hightide/internal/mem"
)

// TestStepCurve: of each part of a step the highest stays, in the order of the step, however long it is.
func TestStepCurve(t *testing.T) {
	for _, events := range []int{1, 7, curveParts, 100_000} {
		c := &StepCurve{Events: events}
		level := func(i int) mem.Bytes { return mem.Bytes((i * 7919) % 104729) }
		highest := mem.Bytes(-1)
		for i := range events {
			c.Add(i, level(i))
			highest = max(highest, level(i))
		}
		if len(c.Points) != min(events, curveParts) {
			t.Fatalf("%d events have %d points", events, len(c.Points))
		}
		seen, last := mem.Bytes(-1), -1
		for _, p := range c.Points {
			if p.Event <= last || p.Allocated != level(p.Event) {
				t.Fatalf("%d events: %+v after event %d", events, p, last)
			}
			seen, last = max(seen, p.Allocated), p.Event
		}
		if seen != highest {
			t.Errorf("%d events: the highest is %d, not %d", events, seen, highest)
		}
	}
}
