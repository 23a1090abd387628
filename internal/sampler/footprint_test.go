package sampler

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"hightide/internal/mem"
)

const mib = int64(1) << 20

// member is a process of a made-up tree.
func memberOf(pid int, anon, file, faults int64) *Process {
	p := &Process{PID: pid, status: -1, partsKnown: true, parts: parts{anon: anon * mib, file: file * mib}}
	p.Usage.MinorFaults = faults
	p.Usage.RSS = p.parts.sum()
	return p
}

// TestFootprint: what a tree takes is between the bounds through forks, writes to shared pages and ends.
func TestFootprint(t *testing.T) {
	var f footprint
	within := func(what string, live []*Process, truth, slack int64) {
		t.Helper()
		b, ok := f.of(live)
		if !ok || b.least > truth*mib || b.most < truth*mib || b.width() > slack*mib {
			t.Errorf("%s: %d to %d MiB, want %d within %d", what, b.least/mib, b.most/mib, truth, slack)
		}
	}
	parent := memberOf(1, 1000, 0, 300_000)
	within("one process", []*Process{parent}, 1000, 0)

	a, b := memberOf(2, 1010, 0, 10*256), memberOf(3, 1000, 0, 5*256)
	a.forked(parent)
	b.forked(parent)
	all := []*Process{parent, a, b}
	within("two children, one with 10 MiB of its own", all, 1010, 20)

	a.Usage.MinorFaults += 50 * 256 // it writes to 50 MiB of what it inherited
	within("a child writes to shared pages", all, 1060, 80)

	parent.parts.anon = 400 * mib // gives back 600 MiB that its children still have
	within("the parent gives memory back", all, 1060, 1100)
	parent.parts.anon = 1000 * mib

	f.ended(parent, all)
	all = all[1:]
	within("the parent ends", all, 1060, 80)
	f.ended(a, all)
	within("one is left", all[1:], 1000, 0)
}

// TestFootprintAfterReadings: readings are carried by what changed since, and what an ended process shared stays with
// the others.
func TestFootprintAfterReadings(t *testing.T) {
	var f footprint
	a, b := memberOf(1, 600, 40, 1000), memberOf(2, 600, 40, 1000)
	all := []*Process{a, b}
	for _, p := range all { // 500 MiB and all files in common
		p.sharing = sharing{read: true, at: p.parts, pss: parts{anon: 350 * mib, file: 20 * mib}, faults: p.faults()}
	}
	check := func(what string, live []*Process, truth, slack int64) {
		t.Helper()
		sum, _ := f.of(live)
		if sum.least > truth*mib || sum.most < truth*mib || sum.width() > slack*mib {
			t.Errorf("%s: %d to %d MiB, want %d within %d", what, sum.least/mib, sum.most/mib, truth, slack)
		}
	}
	check("as read", all, 740, 0)
	a.parts.anon += 100 * mib
	check("more of its own", all, 840, 0)
	a.Usage.MinorFaults += 30 * 256
	check("and 30 MiB written that both had", all, 870, 30)
	f.ended(a, all)
	check("one ends", all[1:], 640, 110)
}

// TestFootprintOfForks holds the bounds against the kernel's own sum in a tree that forks, loads and dies.
func TestFootprintOfForks(t *testing.T) {
	c, _ := start(t, "python3", "-c", `
import os, sys
held = bytearray(b"x" * (64 << 20))
for i in range(6):
    if not os.fork():
        mine = b"y" * ((8 + 8 * i) << 20)
        if i % 2:
            held[: 16 << 20 : 4096] = bytes((16 << 20) // 4096)
        os.write(1, b"r" if i < 5 else b"eady\n")
        sys.stdin.read()
        os._exit(0)
    while i < 5 and False: pass
sys.stdin.read()`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}, sink)
	defer s.Close()
	kernel := func() (sum int64) {
		for _, p := range s.Processes() {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
			pss, _ := field(text, "Pss")
			sum += pss
		}
		return sum
	}
	until(t, "the tree as it is", func() bool {
		s.Tick(monotonic())
		truth := kernel()
		middle, half := sink.last["0  "+string(mem.SeriesTreePSS)], sink.last["0  "+string(mem.SeriesTreePSSError)]
		return len(s.Processes()) == 7 && truth > 230*mib && 20*half < middle &&
			middle-half <= truth+truth/50 && middle+half >= truth-truth/50
	})
	if missing := sink.unobserved["PSS and USS of some processes"]; strings.Contains(missing, "denied") {
		t.Skip(missing)
	}
}
