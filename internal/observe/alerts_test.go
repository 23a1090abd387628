package observe

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

func TestParseAlert(t *testing.T) {
	for _, test := range []struct {
		text string
		want Alert
	}{
		{"host.rss > 8GiB", Alert{Series: mem.SeriesTreeRSS, Above: true, Limit: 8 << 30}},
		{"rss>50MiB/step", Alert{Series: mem.SeriesTreeRSS, Above: true, Limit: 50 << 20, PerStep: true}},
		{"growth > 1MiB/step", Alert{Above: true, Limit: 1 << 20, PerStep: true}},
		{"device.used > 90%", Alert{Series: mem.SeriesDeviceUsed, Above: true, Limit: 90, OfTotal: true}},
		{"system.available < 1.5 GB", Alert{Series: mem.SeriesSystemAvailable, Limit: 1.5e9}},
		{"allocator.allocated >= 1024B", Alert{Series: mem.SeriesAllocated, Above: true, Limit: 1024}},
		{"heap.live > 50MiB", Alert{Series: mem.SeriesHeapLive, Above: true, Limit: 50 << 20}},
		{"host.threads > 64", Alert{Series: mem.SeriesThreads, Above: true, Limit: 64}},
		{"host.cpu > 2m", Alert{Series: mem.SeriesCPU, Above: true, Limit: 120e9}},
		{"device.utilisation < 50%", Alert{Series: mem.SeriesDeviceUtilisation, Limit: 500}},
		{"device.power > 300W", Alert{Series: mem.SeriesDevicePower, Above: true, Limit: 300e3}},
		{"toy.cache > 10", Alert{Series: "toy.cache", Above: true, Limit: 10}},
	} {
		got, err := ParseAlert(test.text)
		test.want.Text = test.text
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v; want %+v", test.text, got, err, test.want)
		}
	}
	for _, bad := range []string{"", "rss", "rss > lots", "rss > 8 parsecs", "rss > 5%/step", "nonsense > 1GiB",
		"rss = 1GiB", "rss > 10", "growth > 1GiB",
		"heap.lives > 1GiB", "host.threads > 5GiB", "host.threads > 5%", "host.cpu > 5", "device.used > 5MiB/step",
		"rss > 99999999999999999999GiB", "rss > nan", "rss > -1GiB"} {
		if a, err := ParseAlert(bad); err == nil {
			t.Errorf("%q: taken as %+v", bad, a)
		}
	}
}

func TestAlertSoundsOnceUntilWellBack(t *testing.T) {
	a, one, other := newAlertState(Alert{Above: true, Limit: 100}), seriesKey{process: 1}, seriesKey{process: 2}
	for i, test := range []struct {
		key   seriesKey
		value float64
		want  bool
	}{{one, 99, false}, {one, 101, true}, {one, 200, false}, {one, 95, false}, {other, 5, false}, {one, 101, false},
		{other, 101, true}, {one, 80, false}, {one, 101, true}} {
		if got := a.check(test.key, test.value, 0); got != test.want {
			t.Errorf("%d: value %g sounds: %v, want %v", i, test.value, got, test.want)
		}
	}
	percent := newAlertState(Alert{Above: true, Limit: 50, OfTotal: true})
	if percent.check(one, 1e9, 0) || percent.compared || !percent.check(one, 60, 100) {
		t.Error("a percentage needs a total")
	}
}

// alerting is a recorder with alerts, and what it has recorded.
func alerting(t *testing.T, texts ...string) (*Recorder, *mem.Run) {
	t.Helper()
	o := &Options{ID: "x"}
	for _, text := range texts {
		limit, err := ParseAlert(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Alerts = append(o.Alerts, limit)
	}
	sink := memorySink{t, mem.NewRun()}
	return newRecorder(o, sink), sink.run
}

func TestAlertOnAnAllocatorsCounter(t *testing.T) {
	r, run := alerting(t, "allocated > 1KiB", "allocated > 90%")
	p, c := r.process(procKey{100, 7}), &channel{}
	r.message(p, c, &shm.JSON{Time: 1,
		Data: []byte(`{"type":"framework","name":"toy","version":"1","device_memory":{"toy:0":2100}}`)})
	r.message(p, c, &shm.JSON{Time: 1, Data: []byte(`{"type":"series","id":1,"name":"allocator.allocated","framework":"toy","unit":"bytes","device":"toy:0"}`)})
	for i, value := range []int64{1000, 2000} {
		r.takeRecord(p, c, &shm.Counters{Time: shm.Time(i + 2), Counters: []shm.Counter{{Series: 1, Value: value}}})
	}
	r.alertsNever()
	r.flush(true)
	if len(run.Events) != 2 {
		t.Fatalf("events %+v: want each alert once, of the second reading", run.Events)
	}
	for _, e := range run.Events {
		if e.Kind != "alert" || e.Time != 3 || e.Bytes.Or(0) != 2000 {
			t.Errorf("event %+v", e)
		}
	}
}

func TestAlertInPercentOfADriversDevice(t *testing.T) {
	r, run := alerting(t, "device.used > 90%", "gpu < 5%")
	r.info.Host.GPUs = []mem.GPU{{Vendor: "NVIDIA", Index: 1, Memory: mem.Some(1000)}}
	r.alert(seriesKey{device: "nvidia:1", name: mem.SeriesDeviceUsed}, 5, 950)
	r.alert(seriesKey{device: "nvidia:1", name: mem.SeriesDeviceUsed}, 6, 10)
	r.alertsNever()
	r.flush(true)
	if len(run.Events) != 2 || run.Events[0].Kind != "alert" || run.Events[1].Kind != "alert" {
		t.Errorf("events %+v: want two alerts", run.Events)
	}
}

// TestAlertOfTheMarks: what only the kernel's mark or the heap's own peak saw passes the limit too.
func TestAlertOfTheMarks(t *testing.T) {
	r, run := alerting(t, "rss > 1GiB", "heap > 100MiB", "rss < 1GiB")
	p := r.process(procKey{100, 7})
	p.MaxRSS = mem.Some(2 << 30)
	p.heap = newLiveHeap(p.ID)
	p.heap.alloc(&shm.Alloc{Address: 1, Size: 200 << 20}, 1)
	p.heap.free(&shm.Free{Address: 1})
	r.ended(p, 9)
	r.ended(p, 10)
	r.flush(true)
	if len(run.Events) != 2 || run.Events[0].Bytes.Or(0) != 2<<30 || run.Events[1].Bytes.Or(0) != 200<<20 {
		t.Errorf("events %+v: want one of RSS and one of the heap", run.Events)
	}
}

// TestAlertOnGrowth: each watches what it names.
func TestAlertOnGrowth(t *testing.T) {
	r, run := alerting(t, "rss > 1MiB/step", "heap > 1MiB/step", "growth > 1MiB/step")
	p := r.process(procKey{100, 7})
	p.heap = newLiveHeap(p.ID)
	for i := range uint64(60) { // the heap grows, RSS does not
		p.heap.alloc(&shm.Alloc{Address: i + 1, Size: 2 << 20}, 1)
		r.takeRecord(p, &channel{}, &shm.Step{Time: shm.Time(i), Step: i + 1, RSS: mem.Some(1 << 30)})
		r.alertGrowth(p, int64(i))
	}
	r.alertsNever()
	var said []string
	for _, e := range run.Events {
		said = append(said, e.Text)
	}
	if want := []string{"alert heap > 1MiB/step: it is 2.00 MiB per step",
		"alert growth > 1MiB/step: it is 2.00 MiB per step"}; !slices.Equal(said, want) {
		t.Errorf("said %q; want %q", said, want)
	}
}

// TestAlertsThatAreNeverCompared say so, and why.
func TestAlertsThatAreNeverCompared(t *testing.T) {
	for text, why := range map[string]string{
		"heap > 1GiB": "no process's heap was sampled", "allocated > 1GiB": "no framework", "gpu > 90%": "no GPU",
		"growth > 1MiB/step": "no step",
		"pss > 1GiB":         "tree.pss", "toy.cache > 1": "toy.cache", "rss > 5%": "how much memory there is",
	} {
		r, run := alerting(t, text)
		r.alertsNever()
		if len(run.Events) != 1 || run.Events[0].Kind != "unobserved" || !strings.Contains(run.Events[0].Text, why) ||
			!strings.Contains(run.Events[0].Text, text) {
			t.Errorf("%s: %+v; want %q", text, run.Events, why)
		}
	}
	r, run := alerting(t, "reserved > 90%")
	p, c := r.process(procKey{100, 7}), &channel{}
	r.message(p, c, &shm.JSON{Time: 1, Data: []byte(`{"type":"series","id":1,"name":"allocator.reserved","framework":"toy","unit":"bytes","device":"toy:0"}`)})
	r.takeRecord(p, c, &shm.Counters{Time: 2, Counters: []shm.Counter{{Series: 1, Value: 5}}})
	r.alertsNever()
	if len(run.Events) != 1 || !strings.Contains(run.Events[0].Text, "how much memory toy:0 has is not known") {
		t.Errorf("%+v", run.Events)
	}
}

func TestGrowthTellsALeakFromNoise(t *testing.T) {
	feed := func(bytes func(step int) int64, steps int) *growth {
		var g growth
		for i := 1; i <= steps; i++ {
			g.add(mem.Step{Number: uint64(i), RSS: mem.Some(bytes(i))})
		}
		return &g
	}
	leak := feed(func(i int) int64 { return 1<<30 + int64(i)*256<<10 + int64(i%7)<<20 }, 300)
	if slope, ok := leak.perStep(); !ok || slope < 200<<10 || slope > 300<<10 {
		t.Errorf("leak of 256 KiB a step: %g, %v", slope, ok)
	}
	if !leak.worthScanning(5e9) || leak.worthScanning(5e9+1) {
		t.Error("a leak is worth a scan, but not twice at once")
	}
	bursts := growth{overTime: true}
	for tick := range int64(22) { // every ten ticks
		bursts.addOver(tick*tickOver, 100<<20+(tick/10)*24<<20)
	}
	saw := growth{overTime: true}
	for tick := range int64(200) {
		saw.addOver(tick*tickOver, 100<<20+(tick%50)<<20)
	}
	if !bursts.worthScanning(5e9) || saw.worthScanning(5e9) {
		t.Error("over time, bursts that stay are worth a scan once the second of them has come, and a saw-tooth is not")
	}
	for name, bytes := range map[string]func(int) int64{
		"steady":  func(i int) int64 { return 1<<30 + int64(i%5)<<20 },
		"warm-up": func(i int) int64 { return 1<<30 - 1<<29/int64(i) },
		"saw":     func(i int) int64 { return 1<<30 + int64(i%50)<<20 },
		"shrinks": func(i int) int64 { return 1<<30 - int64(i)<<10 },
		"too few": func(i int) int64 { return int64(i) << 20 },
	} {
		steps := 300
		if name == "too few" {
			steps = 6
		}
		if g := feed(bytes, steps); g.worthScanning(5e9) {
			slope, _ := g.perStep()
			t.Errorf("%s: scanned for at %g bytes a step", name, slope)
		}
	}
}
