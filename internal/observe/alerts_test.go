package observe

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

func TestParseAlert(t *testing.T) {
	for _, test := range []struct {
		text string
		want Alert
	}{
		{"host.rss > 8GiB", Alert{Series: mem.SeriesTreeRSS, Above: true, Bytes: 8 << 30}},
		{"rss>50MiB/step", Alert{Series: mem.SeriesTreeRSS, Above: true, Bytes: 50 << 20, PerStep: true}},
		{"device.used > 90%", Alert{Series: mem.SeriesDeviceUsed, Above: true, Percent: 90}},
		{"system.available < 1.5 GB", Alert{Series: mem.SeriesSystemAvailable, Bytes: 1.5e9}},
		{"allocator.allocated >= 1024", Alert{Series: mem.SeriesAllocated, Above: true, Bytes: 1024}},
	} {
		got, err := ParseAlert(test.text)
		test.want.Text = test.text
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v; want %+v", test.text, got, err, test.want)
		}
	}
	for _, bad := range []string{"", "rss", "rss > lots", "rss > 8 parsecs", "rss > 5%/step", "nonsense > 1GiB", "rss = 1GiB"} {
		if a, err := ParseAlert(bad); err == nil {
			t.Errorf("%q: taken as %+v", bad, a)
		}
	}
}

func TestAlertSoundsOnceUntilWellBack(t *testing.T) {
	a := alertState{Alert: Alert{Above: true, Bytes: 100}}
	for i, test := range []struct {
		value float64
		want  bool
	}{{99, false}, {101, true}, {200, false}, {95, false}, {101, false}, {80, false}, {101, true}} {
		if got := a.check(test.value, 0); got != test.want {
			t.Errorf("%d: value %g sounds: %v, want %v", i, test.value, got, test.want)
		}
	}
	percent := alertState{Alert: Alert{Above: true, Percent: 50}}
	if percent.check(1e9, 0) || !percent.check(60, 100) {
		t.Error("a percentage needs a total")
	}
}

func TestAlertOnAnAllocatorsCounter(t *testing.T) {
	limit, err := ParseAlert("allocated > 1KiB")
	if err != nil {
		t.Fatal(err)
	}
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x", Alerts: []Alert{limit}}, sink)
	p, c := r.process(procKey{100, 7}), &channel{}
	r.message(p, c, &shm.JSON{Time: 1, Data: []byte(`{"type":"series","id":1,"name":"allocator.allocated","framework":"toy","unit":"bytes","device":"toy:0"}`)})
	for i, value := range []int64{1000, 2000} {
		r.take(p, c, &shm.Counters{Time: shm.Time(i + 2), Counters: []shm.Counter{{Series: 1, Value: value}}})
	}
	r.flush(true)
	if len(sink.run.Events) != 1 || sink.run.Events[0].Kind != "alert" || sink.run.Events[0].Time != 3 || sink.run.Events[0].Bytes.Or(0) != 2000 {
		t.Errorf("events %+v: want one alert, of the second reading", sink.run.Events)
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
