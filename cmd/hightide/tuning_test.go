package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"hightide/internal/launch"
)

// nowSet are the settings of Go's runtime. They are only read: setting a percentage to learn the one before would
// undo what another goroutine sets in between.
func nowSet() settings {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return settings{int(percent[0].Value.Uint64()), runtime.GOMAXPROCS(0)}
}

// settledTuning is one whose first collection is over.
func settledTuning() *tuning {
	tune := newTuning()
	for nowSet().percent != usualPercent {
		runtime.GC() // or the next one, if a stale pointer kept what it waits for
		runtime.Gosched()
	}
	return tune
}

// TestTuningIsTakenBack: after a recording, however short, and whatever came between, all is as it was.
func TestTuningIsTakenBack(t *testing.T) {
	before := nowSet()
	defer func() {
		debug.SetGCPercent(before.percent)
		runtime.GOMAXPROCS(before.threads)
	}()
	tune := settledTuning()
	usual := nowSet()

	tune.start = time.Hour
	short := tune.tune(launch.Recording)
	if got := nowSet(); got.percent != 200 || got.threads != usual.threads {
		t.Errorf("a recording that begins has %+v", got)
	}
	short()
	if got := nowSet(); got != usual {
		t.Errorf("after a short recording %+v, before it %+v", got, usual)
	}

	tune.start = 0
	long := tune.tune(launch.Recording)
	for nowSet().threads != 1 {
		runtime.Gosched()
	}
	trials := tune.tune(launch.Trials)
	if got := nowSet(); got.threads != usual.threads {
		t.Errorf("trials beside a recording have %+v", got)
	}
	long() // ends before what began within it
	trials()
	if got := nowSet(); got != usual {
		t.Errorf("after all %+v, before it %+v", got, usual)
	}
}

// TestLateTimerChangesNothing: a timer that fires as a recording ends finds nothing to change.
func TestLateTimerChangesNothing(t *testing.T) {
	before := nowSet()
	defer func() {
		debug.SetGCPercent(before.percent)
		runtime.GOMAXPROCS(before.threads)
	}()
	tune := settledTuning()
	ended := &settings{200, tune.cores}
	tune.begin(ended)
	tune.end(ended)
	was := nowSet()
	tune.change(ended, settings{60, 1})
	if got := nowSet(); got != was {
		t.Errorf("%+v after a late timer, %+v before it", got, was)
	}
}
