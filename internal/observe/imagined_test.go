package observe

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// TestImaginedMessages: what an imagined process says becomes typed frames, the later one in the place of the
// earlier. What has no such form is counted, and of a program on real devices it is not taken at all.
func TestImaginedMessages(t *testing.T) {
	for _, label := range []mem.Label{mem.Imagined, mem.Measured} {
		sink := memorySink{t, mem.NewRun()}
		r := newRecorder(&Options{ID: "x", Label: label}, sink)
		p := r.process(procKey{100, 7})
		for _, text := range []string{
			`{"type":"peak","device":"cuda:0","allocated_bytes":9007199254740993,"time_ns":40,"step":1,"phase":"backward","process":9}`,
			`{"type":"policy","op":"nonzero","policy":"upper","file":"a.py","line":3,"count":1}`,
			`{"type":"policy","op":"nonzero","policy":"upper","file":"a.py","line":3,"count":5,"elements":7}`,
			`{"type":"readback","file":"a.py","line":4,"function":"f","count":2,"bytes":16}`,
			`{"type":"switch","name":"bf16","applied":true,"text":"token=abcdef"}`,
			`{"type":"condition","name":"attention","value":["flash"]}`,
		} {
			r.message(p, &channel{}, &shm.JSON{Time: 50, Data: []byte(text)})
		}
		r.flush(true)
		facts := &sink.run.Imagined
		if label == mem.Measured {
			if len(facts.Peaks)+len(facts.Sizes)+len(facts.Switches) > 0 {
				t.Errorf("of a real device: %+v", facts)
			}
			continue
		}
		if want := (mem.DevicePeak{Process: p.ID, Time: 40, Device: "cuda:0", Allocated: mem.Some(9007199254740993),
			Phase: mem.PhaseBackward, Step: mem.Some(1)}); len(facts.Peaks) != 1 || facts.Peaks[0] != want {
			t.Errorf("peaks %+v", facts.Peaks)
		}
		if len(facts.Sizes) != 1 || facts.Sizes[0].Count != 5 || facts.Sizes[0].Line != 3 {
			t.Errorf("sizes %+v", facts.Sizes)
		}
		if len(facts.Reads) != 1 || !facts.Reads[0].Agent || facts.Reads[0].Function != "f" {
			t.Errorf("reads %+v", facts.Reads)
		}
		if len(facts.Switches) != 1 || !facts.Switches[0].Applied || facts.Switches[0].Text == "token=abcdef" {
			t.Errorf("switches %+v", facts.Switches)
		}
		if len(facts.Conditions) > 0 || len(sink.run.Drops) != 1 || sink.run.Drops[0].Records != 1 {
			t.Errorf("a list for a text: %+v, drops %+v", facts.Conditions, sink.run.Drops)
		}
	}
}
