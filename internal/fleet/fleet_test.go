package fleet

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
)

const gib = int64(1) << 30

// begin is when the tests' machines are first looked at: the last hour of a month.
var begin = time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC).UnixNano()

// at is a look at a machine with two GPUs, after some time.
func at(passed time.Duration, all ...Process) Look {
	return Look{Wall: begin + int64(passed), Mono: 5e9 + int64(passed), Cores: 8, Memory: mem.Some(64 * gib),
		Available: mem.Some(40 * gib), Processes: all, Cards: []Card{
			{Device: "nvidia:0", Name: "NVIDIA H100", Memory: mem.Some(80 * gib), Used: mem.Some(30 * gib), Utilisation: mem.Some(0)},
			{Device: "nvidia:1", Name: "NVIDIA A10", Memory: mem.Some(24 * gib), Used: mem.Some(9 * gib), Utilisation: mem.Some(900)}}}
}

// on is a process that holds memory of a GPU.
func on(pid int64, person, device string, held int64, busy int64) Process {
	return Process{PID: pid, Start: 1, Person: person, Program: "python train.py", RSS: 2 * gib, Busy: mem.Some(busy),
		Device: mem.Some(held), On: []OnCard{{device, held}}}
}

func holder(t *testing.T, s State, pid int64) Holder {
	t.Helper()
	for _, h := range s.Holders {
		if h.PID == pid {
			return h
		}
	}
	t.Fatalf("no process %d among %+v", pid, s.Holders)
	return Holder{}
}

// TestIdle: a process does nothing where neither its processor time nor its GPU says that it does; of a GPU that others
// hold too the utilisation tells nothing; the first look tells nothing either.
func TestIdle(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	for minute := range 31 {
		works := on(2, "bob", "nvidia:1", 9*gib, 0) // its GPU is busy
		computes := on(3, "carol", "nvidia:0", gib, 900)
		w.Take(at(time.Duration(minute)*time.Minute, on(1, "anna", "nvidia:0", 20*gib, 0), works, computes,
			Process{PID: 4, Start: 1, Person: "dora", RSS: 3 * gib, Busy: mem.Some(1)}))
		if minute == 0 && holder(t, w.State(), 1).IdleSince.Known() {
			t.Error("one look says that it does nothing")
		}
	}
	s := w.State()
	if h := holder(t, s, 1); h.IdleSince != mem.Some(begin) || h.IdleBy != idleByProcessor {
		t.Errorf("beside another on its GPU: %+v", h)
	}
	if holder(t, s, 2).IdleSince.Known() || holder(t, s, 3).IdleSince.Known() {
		t.Errorf("they work: %+v", s.Holders)
	}
	v := Of([]Node{{Name: "gpu-1", Heard: s.Time, State: s}}, nil, s.Time, Settings{})
	if len(v.Idle) != 2 || v.Idle[0].PID != 1 || v.Idle[1].PID != 4 || v.Idle[0].Bytes != 20*gib ||
		v.Idle[0].For != mem.Some(int64(30*time.Minute)) || !strings.Contains(v.Idle[0].Text, "processor time alone") {
		t.Errorf("idle %+v", v.Idle)
	}
	if v = Of([]Node{{Name: "gpu-1", Heard: s.Time, State: s}}, nil, s.Time, Settings{Idle: time.Hour}); len(v.Idle) != 0 {
		t.Errorf("after half an hour of one: %+v", v.Idle)
	}
	w.Take(at(31*time.Minute, on(1, "anna", "nvidia:0", 20*gib, 500)))
	if holder(t, w.State(), 1).IdleSince.Known() {
		t.Error("it works again")
	}
	w.Take(at(50*time.Minute, on(1, "anna", "nvidia:0", 20*gib, 0)))
	if holder(t, w.State(), 1).IdleSince.Known() || w.State().Since != begin+int64(50*time.Minute) {
		t.Error("of a stretch in which nobody looked, something is said")
	}
}

// TestReused: another process of the same number is another one.
func TestReused(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	for minute := range 3 {
		w.Take(at(time.Duration(minute)*time.Minute, on(1, "anna", "nvidia:0", 20*gib, 0)))
	}
	other := on(1, "bob", "nvidia:0", gib, 0)
	other.Start = 2
	w.Take(at(3*time.Minute, other))
	if h := holder(t, w.State(), 1); h.PeakDevice != mem.Some(gib) || h.Began != begin+int64(3*time.Minute) ||
		h.IdleSince != mem.Some(begin+int64(2*time.Minute)) && h.IdleSince.Known() {
		t.Errorf("%+v", h)
	}
}

// TestLeaks: what grows all the time is named with the time that is left, by the least room; a saw-tooth is not, nor one
// that stopped.
func TestLeaks(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	limit := Group{ID: "/job_7", Kind: Slurm, Job: "7", Limit: mem.Some(32 * gib), Used: mem.Some(20 * gib), Cache: mem.Some(gib)}
	for minute := range 120 {
		n := int64(minute)
		leaks := Process{PID: 1, Start: 1, Person: "anna", Group: "/job_7", RSS: 4*gib + n*100<<20, Busy: mem.Some(900)}
		saw := Process{PID: 2, Start: 1, Person: "bob", RSS: 4*gib + n%10*500<<20, Busy: mem.Some(900)}
		stops := Process{PID: 3, Start: 1, Person: "bob", RSS: 4*gib + min(n, 30)*100<<20, Busy: mem.Some(900)}
		device := on(4, "carol", "nvidia:0", 20*gib+n*50<<20, 900)
		look := at(time.Duration(minute)*time.Minute, leaks, saw, stops, device)
		look.Groups = []Group{limit}
		w.Take(look)
	}
	s := w.State()
	v := Of([]Node{{Name: "gpu-1", Heard: s.Time, State: s}}, nil, s.Time, Settings{})
	if len(v.Leaks) != 2 || v.Leaks[0].PID != 1 || v.Leaks[1].PID != 4 {
		t.Fatalf("leaks %+v", v.Leaks)
	}
	host, gpu := v.Leaks[0], v.Leaks[1]
	within := func(what string, got, want mem.Optional) {
		if g, w := float64(got.Or(0)), float64(want.Or(0)); g < 0.9*w || g > 1.1*w {
			t.Errorf("%s: %v; want about %v", what, time.Duration(got.Or(0)), time.Duration(want.Or(0)))
		}
	}
	within("13 GiB at 100 MiB a minute", host.For, mem.Some(int64(133*time.Minute)))
	within("50 GiB at 50 MiB a minute", gpu.For, mem.Some(int64(1024*time.Minute)))
	if host.Job != "slurm 7" || !strings.Contains(host.Text, "its group's limit") || !strings.Contains(gpu.Text, "nvidia:0") ||
		host.Least.Or(0) > host.For.Or(0) {
		t.Errorf("%+v\n%+v", host, gpu)
	}
}

// TestUsed: the time of a GPU is shared by bytes, and of idle holders it is wasted; a job's limit counts against what it
// is charged with. Each look belongs to the month in which it was.
func TestUsed(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	for minute := range 121 {
		look := at(time.Duration(minute)*time.Minute, on(1, "anna", "nvidia:0", 30*gib, 0), on(2, "bob", "nvidia:0", 10*gib, 900))
		look.Processes[0].Group, look.Processes[0].Project = "/job_7", "ranker"
		look.Groups = []Group{{ID: "/job_7", Kind: Slurm, Job: "7", Limit: mem.Some(32 * gib), Used: mem.Some(8 * gib)}}
		w.Take(look)
	}
	sums := map[string]Used{}
	for _, u := range w.Spend() {
		sums[u.Month+" "+u.Person+" "+u.GPU] = u
	}
	minute := int64(60_000)
	for key, want := range map[string]Used{
		"2026-10 anna NVIDIA H100": {Month: "2026-10", Project: "ranker", Person: "anna", GPU: "NVIDIA H100",
			Held: 59 * minute * 3 / 4, Idle: 59 * minute * 3 / 4},
		"2026-11 bob NVIDIA H100": {Month: "2026-11", Person: "bob", GPU: "NVIDIA H100", Held: 61 * minute / 4},
		"2026-11 anna ": {Month: "2026-11", Project: "ranker", Person: "anna", Reserved: 61 * 60 * 32 * 1024,
			Unused: 61 * 60 * 24 * 1024},
	} {
		if sums[key] != want {
			t.Errorf("%s: %+v; want %+v", key, sums[key], want)
		}
	}
	if again := w.Spend(); len(again) != 0 {
		t.Errorf("spent twice: %+v", again)
	}
	var all []Used
	for _, u := range sums {
		all = append(all, u)
	}
	v := Of(nil, all, begin, Settings{Prices: map[string]float64{"h100": 4, "100": 9}, In: "EUR", Memory: 0.01})
	for _, c := range v.Costs {
		want := map[string]int64{"2026-10 ranker NVIDIA H100": 295, "2026-11 ranker NVIDIA H100": 305,
			"2026-11 ranker ": 24, "2026-10 ranker ": 24}[c.Month+" "+c.Project+" "+c.GPU]
		if got, known := c.Cents.Get(); !known || got != want {
			t.Errorf("%+v; want %d", c, want)
		}
	}
	v = Of(nil, all, begin, Settings{})
	if v.Costs[0].Cents.Known() || !strings.Contains(strings.Join(v.Notes, "\n"), "no price is configured for NVIDIA H100, memory of hosts") {
		t.Errorf("without prices: %+v %q", v.Costs, v.Notes)
	}
}

// TestOverview: people and jobs over machines; of one that is away nothing is in a sum; a peak tells after an hour.
func TestOverview(t *testing.T) {
	state := func(minutes int) State {
		w := &Watcher{Every: time.Minute}
		for minute := range minutes {
			p := on(1, "anna", "nvidia:0", 4*gib, 900)
			p.Group, p.Run, p.Line = "/job_7", "r1", &Line{"train.py:7", gib, 5}
			look := at(time.Duration(minute)*time.Minute, p, Process{PID: 2, Start: 1, Person: "bob", RSS: 1 << 20})
			look.Groups = []Group{{ID: "/job_7", Kind: Slurm, Job: "7", Limit: mem.Some(32 * gib), Used: mem.Some(8 * gib),
				Peak: mem.Some(9 * gib)}}
			w.Take(look)
		}
		return w.State()
	}
	long, short := state(70), state(5)
	now := long.Time
	v := Of([]Node{{Name: "b", Heard: now, State: long}, {Name: "a", Heard: now, State: short},
		{Name: "gone", Heard: now - int64(10*time.Minute), State: long},
		{Name: "later", Heard: now + int64(time.Hour), State: long}}, nil, now, Settings{Expected: []string{"never", "a"}})
	if len(v.People) != 1 || v.People[0].Device != mem.Some(8*gib) || len(v.People[0].Machines) != 2 || v.People[0].Processes != 2 ||
		v.People[0].PSS.Known() {
		t.Errorf("people %+v", v.People)
	}
	if len(v.Jobs) != 1 || v.Jobs[0].Name != "slurm 7" || v.Jobs[0].Line.Place != "train.py:7" || v.Jobs[0].Runs[0] != "r1" {
		t.Errorf("jobs %+v", v.Jobs)
	}
	if len(v.Oversized) != 2 || v.Oversized[0].Machine != "b" || v.Oversized[0].Bytes != 76*gib || v.Oversized[1].Bytes != 23*gib {
		t.Errorf("oversized %+v", v.Oversized)
	}
	notes := strings.Join(v.Notes, "\n")
	if !v.Machines[3].Away || !strings.Contains(notes, "later was last heard of before the database's clock was set back") {
		t.Errorf("heard of in an hour: %q", notes)
	}
	if !v.Machines[2].Away || v.Machines[0].Away || !strings.Contains(notes, "gone was last heard of 10 min ago") ||
		!strings.Contains(notes, "never was never heard of") || strings.Contains(notes, "a was never") {
		t.Errorf("notes %q", notes)
	}
	if v.Machines[0].State.Others != 1 || v.Machines[0].State.OthersRSS != 1<<20 {
		t.Errorf("others %+v", v.Machines[0].State)
	}
	empty, err := json.Marshal(Of(nil, nil, now, Settings{}))
	if err != nil || strings.Contains(string(empty), "null") {
		t.Errorf("%s %v", empty, err)
	}
}

// TestCourse: as many points as are kept, evenly, of each stretch the lowest.
func TestCourse(t *testing.T) {
	var c course
	for i := range int64(100_000) {
		value := i
		if i == 50_000 {
			value = 3
		}
		c.add(i*int64(time.Second), value)
	}
	if len(c.times) >= pointsKept || len(c.times) < pointsKept/2 || c.times[0] != 0 || c.lows[0] != 0 ||
		!slices.Contains(c.lows, 3) {
		t.Errorf("%d points from %d: %d", len(c.times), c.times[0], c.lows)
	}
	for i := 2; i < len(c.times)-1; i++ {
		if c.times[i]-c.times[i-1] < c.every/2 || c.times[i]-c.times[i-1] > 2*c.every {
			t.Errorf("points at %d and %d, every %d", c.times[i-1], c.times[i], c.every)
		}
	}
}

// TestReportRoundTrip: what is sent is what is read.
func TestReportRoundTrip(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	w.Take(at(0, on(1, "anna", "nvidia:0", 4*gib, 900)))
	w.Take(at(time.Minute, on(1, "anna", "nvidia:0", 4*gib, 0)))
	sent := Report{Session: "s", Number: 1, State: w.State(), Used: w.Spend()}
	text, err := json.Marshal(sent)
	var read Report
	if err != nil || json.Unmarshal(text, &read) != nil || !reflect.DeepEqual(sent, read) {
		t.Errorf("%v\n%+v\n%+v", err, sent, read)
	}
}

// TestRequested: what a pod's container keeps from others is its request where that is known, and not its limit.
func TestRequested(t *testing.T) {
	w := &Watcher{Every: time.Minute}
	for minute := range 70 {
		p := on(1, "anna", "nvidia:0", 4*gib, 900)
		p.Group = "/pod"
		look := at(time.Duration(minute)*time.Minute, p)
		look.Groups = []Group{{ID: "/pod", Kind: Kubernetes, Job: "7", Limit: mem.Some(100 * gib), Used: mem.Some(2 * gib),
			Peak: mem.Some(3 * gib), Request: mem.Some(16 * gib), RequestMost: mem.Some(17 * gib)}}
		w.Take(look)
	}
	state := w.State()
	v := Of([]Node{{Name: "a", Heard: state.Time, State: state}}, nil, state.Time, Settings{})
	if len(v.Oversized) != 2 || v.Oversized[1].Bytes != 13*gib || v.Oversized[1].Of != mem.Some(16*gib) ||
		!strings.Contains(v.Oversized[1].Text, "between 16.0 GiB and 17.0 GiB requested (estimated)") {
		t.Errorf("%+v", v.Oversized)
	}
	used := w.Spend()
	var reserved, unused int64
	for _, u := range used {
		reserved, unused = reserved+u.Reserved, unused+u.Unused
	}
	if reserved != 69*60*16<<10 || unused != 69*60*14<<10 {
		t.Errorf("reserved %d, unused %d MiB s", reserved, unused)
	}
}
