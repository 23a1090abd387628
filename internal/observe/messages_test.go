package observe

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// told feeds messages of an agent to a recorder and returns the recording.
func told(t *testing.T, texts ...string) (*mem.Run, *Recorder) {
	t.Helper()
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x"}, sink)
	p := r.process(procKey{100, 7})
	c := &channel{}
	for i, text := range texts {
		r.message(p, c, &shm.JSON{Time: shm.Time(i + 1), Data: []byte(text)})
	}
	r.takeRecord(p, c, &shm.Counters{Time: 50, Counters: []shm.Counter{{Series: 4, Value: 1234}, {Series: 5, Value: 1}}})
	r.flush(true)
	return sink.run, r
}

func TestMessagesBecomeFrames(t *testing.T) {
	run, r := told(t,
		`{"type":"hello","pid":100,"argv":["train.py","--api-key","abc"],"python":"3.11.7","rank":3,"world_size":8,"role":"rank"}`,
		`{"type":"framework","name":"torch","version":"2.15.0","cuda":"13.2","devices":0}`,
		`{"type":"fact","key":"amp","value":"bfloat16"}`,
		`{"type":"fact","key":"unobserved","value":"no optimizer hooks in this version"}`,
		`{"type":"series","id":4,"name":"allocator.allocated","framework":"torch","unit":"bytes","device":"cuda:0"}`,
		`{"type":"modules","modules":[{"id":1,"name":"Net","class":"Net","parameter_bytes":10,"buffer_bytes":2}]}`,
		`{"type":"model","step":2,"device":"cpu","parameter_bytes":10,"gradient_bytes":20}`,
		`{"type":"holder","step":9,"kind":"list","name":"history","file":"C:\\me\\a.py","line":4,"items":9,"items_per_step":1.5,"graph":true,"saved_bytes":0,`+
			`"parts":[{"at":"['loss']","type":"Tensor","elements":1,"bytes":4,"storage_bytes":4,"grad_fn":"MulBackward0"}],`+
			`"bound_items":12,"bound_by":"maxlen=12","others":[{"file":"a.py","line":3}],"ran":true}`,
		`{"type":"oom","text":"CUDA out of memory, token=abcdef","bytes":77,"device":"cuda:0","file":"a.py","line":5,"step":9,"source":"torch.cuda"}`,
		`{"type":"oom","bytes":78,"device":"cpu","source":"MemoryError"}`,
		`{"type":"exception","class":"ValueError","text":"no","file":"a.py","line":6}`,
		`{"type":"dropped","count":3}`,
		`{"type":"something-new","x":1}`,
		`{"type":"bye","maxrss_bytes":4096,"cpu_ns":5}`,
		`{not json`,
	)
	p := run.Processes[0]
	if p.Rank.Or(-1) != 3 || p.WorldSize.Or(-1) != 8 || p.LocalRank.Known() || p.Role != "rank" ||
		p.Python != "3.11.7" || p.Frameworks["torch"] != "2.15.0" {
		t.Errorf("process %+v", p)
	}
	if p.Command[2] != mem.Masked || p.Facts["amp"] != "bfloat16" || p.Facts["torch.cuda"] != "13.2" ||
		p.MaxRSS.Or(0) != 4096 {
		t.Errorf("command %q, facts %v", p.Command, p.Facts)
	}
	if s := run.Find(p.ID, mem.SeriesAllocated); s == nil || s.Device != "cuda:0" || s.Framework != "torch" ||
		len(s.Values) != 1 || s.Values[0] != 1234 {
		t.Errorf("series %+v: want the one reading that was announced", s)
	}
	if len(run.Modules) != 1 || run.Models[0].Optimizer.Known() || run.Models[0].Gradients.Or(0) != 20 ||
		run.Holders[0].Where.Line != 4 || !run.Holders[0].Graph {
		t.Errorf("modules %+v, models %+v, holders %+v", run.Modules, run.Models, run.Holders)
	}
	held := mem.Holder{Process: p.ID, Time: run.Holders[0].Time, Step: 9, Kind: "list", Name: "history",
		Where: mem.Location{File: "C:/me/a.py", Line: 4}, // of Windows, with slashes
		Items: 9, PerStep: 1.5, Graph: true, Saved: mem.Some(0),
		Parts: []mem.HeldPart{{At: "['loss']", Type: "Tensor", Elements: 1, Bytes: 4, Storage: 4, GradFn: "MulBackward0"}},
		Bound: mem.Some(12), BoundBy: "maxlen=12", Others: []mem.Location{{File: "a.py", Line: 3}}, Ran: true}
	if !reflect.DeepEqual(run.Holders[0], held) {
		t.Errorf("holder %+v, want %+v", run.Holders[0], held)
	}
	kinds := map[string]mem.Event{}
	for _, e := range run.Events {
		kinds[e.Kind+e.Facts["source"]] = e
	}
	if oom := kinds["oomMemoryError"]; oom.Bytes.Or(0) != 78 || oom.Step.Known() {
		t.Errorf("oom outside any step %+v", oom)
	}
	if oom := kinds["oomtorch.cuda"]; oom.Bytes.Or(0) != 77 || oom.Step.Or(0) != 9 || oom.Where.Line != 5 ||
		oom.Facts["source"] != "torch.cuda" || oom.Text != "CUDA out of memory, token="+mem.Masked {
		t.Errorf("oom %+v", oom)
	}
	if kinds["exception"].Facts["class"] != "ValueError" || kinds["unobserved"].Text == "" {
		t.Errorf("events %+v", run.Events)
	}
	drops := map[string]uint64{}
	for _, d := range run.Drops {
		drops[d.Place] = d.Records
	}
	if drops["agent"] != 3 || drops["message"] != 1 {
		t.Errorf("drops %v", drops)
	}
	if r.modulesOf(p.ID)[1] != "Net" {
		t.Errorf("modules by id %v", r.modulesOf(p.ID))
	}
}

// modulesOf is for the test alone.
func (r *Recorder) modulesOf(id uint32) map[uint16]string { return r.byID(id).spans.modules }

// What a training says when it ends ends the run, but for a forked copy: the process that it is of makes others.
func TestStopOfACopy(t *testing.T) {
	const stop = `{"type":"stop","step":3,"reason":"steady"}`
	for _, test := range []struct {
		texts    []string
		stopping bool
	}{
		{[]string{stop}, true},
		{[]string{`{"type":"fact","key":"copy","value":"4"}`, stop}, false},
		{[]string{`{"type":"fact","key":"copy 4","value":0}`, stop}, true},
	} {
		run, r := told(t, test.texts...)
		if r.stopping != test.stopping || len(run.Events) != 1 || run.Events[0].Text != "steady" {
			t.Errorf("%q: stopping %v, events %+v", test.texts, r.stopping, run.Events)
		}
	}
}

// TestSnapshotPath: a path outside the run's folder, which another process could name, is not read.
func TestSnapshotPath(t *testing.T) {
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x", OutDir: t.TempDir()}, sink)
	r.snapshots.add(1, 5, &message{Path: "/etc/hostname", Format: "torch-pickle"})
	r.flush(true)
	if len(sink.run.Snapshots) != 0 || len(sink.run.Events) != 1 {
		t.Errorf("snapshots %v, events %+v", sink.run.Snapshots, sink.run.Events)
	}
	inside := r.opts.OutDir + "/oom.pickle"
	write := make([]byte, snapshotPiece+10)
	for i := range write {
		write[i] = byte(i * 7)
	}
	if err := os.WriteFile(inside, write, 0o600); err != nil {
		t.Fatal(err)
	}
	r.snapshots.add(1, 6, &message{Path: inside, Format: "torch-pickle"})
	r.flush(false)
	if got := sink.run.Snapshots; len(got) != 1 || !got[0].Complete || !bytes.Equal(got[0].Data, write) {
		t.Errorf("the snapshot did not arrive whole: %d files", len(got))
	}
	if _, err := os.Stat(inside); err == nil {
		t.Error("its file is still there, though the recording has it")
	}
}

// TestACompilerAtWorkIsTold: since it began, until it ends.
func TestACompilerAtWorkIsTold(t *testing.T) {
	_, r := told(t, `{"type":"compiling","compiling":true,"count":0}`, `{"type":"compiling","compiling":true,"count":41}`)
	if c := r.status(180e9 + 1).Compiling; c != (Compiling{Since: 1, For: 180e9, Kernels: 41}) {
		t.Errorf("%+v", c)
	}
	_, r = told(t, `{"type":"compiling","compiling":true,"count":0}`, `{"type":"compiling","compiling":false,"count":41}`)
	if c := r.status(180e9).Compiling; c.Since != 0 {
		t.Errorf("it has ended: %+v", c)
	}
}
