package sampler

import (
	"fmt"
	"os"
	"path/filepath"
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

// holds fails where the bounds of a tree are not around the truth, or farther apart than slack; MiB.
func holds(t *testing.T, f *footprint, what string, live []*Process, truth, slack int64) {
	t.Helper()
	b, ok := f.of(live)
	if !ok || b.least > truth*mib || b.most < truth*mib || b.width() > slack*mib {
		t.Errorf("%s: %d to %d MiB, want %d within %d", what, b.least/mib, b.most/mib, truth, slack)
	}
}

// TestFootprint: what a tree takes is between the bounds through forks, writes to shared pages and ends.
func TestFootprint(t *testing.T) {
	f := &footprint{}
	parent := memberOf(1, 1000, 0, 300_000)
	holds(t, f, "one process", []*Process{parent}, 1000, 0)

	a, b := memberOf(2, 1010, 0, 10*256), memberOf(3, 1000, 0, 5*256)
	f.forked(a, parent)
	f.forked(b, parent)
	all := []*Process{parent, a, b}
	holds(t, f, "two children, one with 10 MiB of its own", all, 1010, 20)

	a.Usage.MinorFaults += 50 * 256 // it writes to 50 MiB of what it inherited
	holds(t, f, "a child writes to shared pages", all, 1060, 80)

	parent.parts.anon = 400 * mib // gives back 600 MiB that its children still have
	holds(t, f, "the parent gives memory back", all, 1060, 80)
	parent.parts.anon = 1000 * mib

	f.ended(parent, all)
	all = all[1:]
	holds(t, f, "the parent ends", all, 1060, 80)
	f.ended(a, all)
	holds(t, f, "one is left", all[1:], 1000, 0)
}

// TestFaultsAsUsual: of a process that was sampled twice, page faults that come as usual copy about as many pages as
// they did. What goes beyond that may have copied any.
func TestFaultsAsUsual(t *testing.T) {
	f := &footprint{}
	parent, child := memberOf(1, 500, 0, 0), memberOf(2, 500, 0, 0)
	f.forked(child, parent)
	all, l := []*Process{parent, child}, parent.lineage
	goOn := func(second, faults int64) {
		child.Usage.Time, parent.Usage.Time = second*1e9, second*1e9
		child.Usage.MinorFaults += faults
	}
	sample := func(second, common int64) {
		l.twice = bounds{common * mib, common * mib}
		parent.wasSampled(second*1e9, common*mib, common*mib)
		child.wasSampled(second*1e9, common*mib, common*mib)
	}
	goOn(1, 50_000)
	holds(t, f, "loading", all, 600, 200)
	sample(1, 400)
	goOn(2, 50_000)
	holds(t, f, "its faults are not known yet", all, 602, 200)
	before, _ := f.of(all)
	known := f.known
	sample(2, 398)
	f.of(all)
	if bound := before.most - (f.known.anon - known.anon); bound < 602*mib || bound > 605*mib {
		t.Errorf("the sample of now leaves %d MiB for a moment before, want 602", bound/mib)
	}
	goOn(3, 50_000)
	holds(t, f, "faults as usual", all, 604, 20)
	goOn(3, 200_000)
	holds(t, f, "more than usual", all, 1000, 398)
	child.parts.anon = 300 * mib
	child.Usage.MinorFaults -= 200_000
	holds(t, f, "some is given back", all, 602, 220)
	f.ended(child, all)
	holds(t, f, "it ends", all[:1], 500, 0)
}

// TestFootprintAfterReadings: readings are carried by what changed since, and what an ended process shared stays with
// the others.
func TestFootprintAfterReadings(t *testing.T) {
	f := &footprint{}
	a, b := memberOf(1, 600, 140, 1000), memberOf(2, 600, 140, 1000)
	all := []*Process{a, b}
	for _, p := range all { // all files in common
		p.sharing = sharing{read: true, at: p.parts, pss: parts{anon: 600 * mib, file: 70 * mib}}
	}
	holds(t, f, "as read", all, 1340, 0)
	a.parts.anon += 100 * mib
	holds(t, f, "more of its own", all, 1440, 0)
	a.parts.file += 30 * mib
	holds(t, f, "and 30 MiB of files", all, 1470, 30)
	f.ended(a, all)
	holds(t, f, "one ends", all[1:], 740, 70)
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

// TestAloneIsReadOnceItRests: a process alone is not read while it loads its libraries, is once that has come to
// rest, and from then on ever more seldom.
func TestAloneIsReadOnceItRests(t *testing.T) {
	s := New(Options{Leader: 1, Root: t.TempDir(), Vendors: []Vendor{}}, newSeen())
	defer s.Close()
	const start = int64(1e9)
	p := memberOf(1, 20, 5, 0)
	p.FirstSeen = start
	s.tree.live = []*Process{p}
	var read []int64
	for now := start; now < start+30e9; now += 100e6 {
		if now > start && now <= start+16e8 {
			p.parts.file += 10 * mib
		}
		p.parts.anon += mib
		p.Usage.RSS = p.parts.sum()
		s.note(now)
		sum, _ := s.shared.of(s.tree.live)
		if s.spares(now, sum) {
			p.wasRead(parts{anon: p.parts.anon, file: p.parts.file / 2})
			p.pssRSS, s.shared.swept = p.Usage.RSS, now
			read = append(read, (now-start)/100e6)
		}
	}
	want := []int64{0, 19, 69, 138, 238}
	for i := range want {
		if len(read) < len(want) || read[i] != want[i] {
			t.Fatalf("read at %v tenths of a second, want %v and few more", read, want)
		}
	}
	if len(read) > len(want)+1 {
		t.Errorf("read at %v tenths of a second", read)
	}
}

// TestEndedIsNotUnobserved: a process that ended before it was asked is gone; a kernel without the file cannot tell.
func TestEndedIsNotUnobserved(t *testing.T) {
	p := &Process{dir: filepath.Join(t.TempDir(), "4711"), page: make([]byte, 4096), parts: parts{anon: 100}}
	s := &Sampler{tree: &Tree{live: []*Process{p}}}
	if _, _, err := p.proportional(); err == nil || !p.gone(err) {
		t.Errorf("without its folder: %v is not taken for its end", err)
	}
	if keeps := s.KeepsTogether(); keeps != 0 {
		t.Errorf("%d bytes of a process that has ended count", keeps)
	}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.proportional(); err == nil || p.gone(err) {
		t.Errorf("with its folder: %v is taken for its end", err)
	}
	if keeps := s.KeepsTogether(); keeps != 100 {
		t.Errorf("%d bytes count of a process whose pages may not be looked at", keeps)
	}
}
