package sampler

import (
	"bytes"
	"path/filepath"
	"strconv"

	"hightide/internal/system"
)

// Tree is the set of descendants of one process. Once in it a process stays until it ends, also
// when its parent ended before.
type Tree struct {
	root    string
	leader  int
	live    []*Process
	known   map[int]member // every pid of the machine that was looked at
	listed  int64          // processes in /proc when it was last listed
	lastPid int64          // the newest pid when /proc was last listed; -1: list again
	round   uint32
	scanned bool

	procDir  int
	loadavg  int
	entries  [32 << 10]byte
	scratch  [4096]byte
	fresh    []int
	again    []int // to look at once more
	bornList []*Process
	ended    []*Process // gone from /proc since the last look
}

// member is what is known of a pid: its process where it belongs to the tree, nil where it does not.
type member struct {
	process *Process
	round   uint32 // scan in which it was last listed
	looks   uint8  // times an outsider was looked at
	left    bool   // it is none of ours, whatever else says so
}

// enoughLooks settles that a process is not a descendant. One look is not enough: its parent may have
// been ending, and an orphan gets its new parent a moment later.
const enoughLooks = 2

// NewTree watches the descendants of a leader, and the leader itself on request.
func NewTree(o Options) *Tree {
	t := &Tree{root: o.Root, leader: o.Leader, known: map[int]member{}, lastPid: -1}
	t.procDir, _ = openFile(filepath.Join(o.Root, "proc"), system.Folder)
	t.loadavg, _ = openFile(filepath.Join(o.Root, "proc/loadavg"), 0)
	if o.WatchLeader {
		t.add(o.Leader)
	}
	return t
}

// Find returns the live process with that pid, or nil.
func (t *Tree) Find(pid int) *Process { return t.known[pid].process }

// Scan looks for new descendants and returns them. It looks only where a pid was given out since
// the last time, and opens only pids it has not seen.
func (t *Tree) Scan(helper func(pid int) bool) []*Process {
	if t.scanned { // the leader was added before the first scan
		t.bornList = t.bornList[:0]
	}
	t.scanned = true
	last, ok := t.newestPid()
	if ok && last == t.lastPid || !t.collect(last, ok) {
		return t.bornList
	}
	t.lastPid = last
	// A child can have a smaller pid than its parent once pids wrap, so go round until nothing is new.
	for again := true; again; {
		again = false
		for i, pid := range t.fresh {
			if pid == 0 || helper(pid) {
				continue
			}
			ours, gone := t.inspect(pid)
			if ours || gone {
				t.fresh[i] = 0
			}
			again = again || ours
		}
	}
	t.settle()
	return t.bornList
}

// settle remembers the pids that turned out to be none of ours.
func (t *Tree) settle() {
	for _, pid := range t.fresh {
		if pid == 0 {
			continue
		}
		looks := t.known[pid].looks + 1
		t.known[pid] = member{round: t.round, looks: looks}
		if looks < enoughLooks {
			t.again = append(t.again, pid)
		}
	}
	if len(t.again) > 0 {
		t.lastPid-- // look once more although no pid was given out
	}
}

// collect fills fresh with the pids to look at: those given out since the last time where they are
// few. Else it is what a list of /proc has that is not settled. Listing costs about a microsecond for
// every process of the machine, a pid that is tried about five.
func (t *Tree) collect(last int64, known bool) bool {
	t.fresh = append(t.fresh[:0], t.again...)
	t.again = t.again[:0]
	given := last - t.lastPid
	if !known || t.lastPid < 0 || given <= 0 || given*5 > t.listed || int64(len(t.known)) > 2*t.listed+256 {
		return t.list()
	}
	for pid := t.lastPid + 1; pid <= last; pid++ {
		if _, seen := t.known[int(pid)]; !seen {
			t.fresh = append(t.fresh, int(pid))
		}
	}
	return true
}

// newestPid reads the last field of /proc/loadavg: the pid given out last in our namespace.
func (t *Tree) newestPid() (int64, bool) {
	if t.loadavg < 0 {
		return 0, false
	}
	n, err := pread(t.loadavg, t.scratch[:])
	text := bytes.TrimSpace(t.scratch[:max(n, 0)])
	i := bytes.LastIndexByte(text, ' ')
	if err != nil || i < 0 {
		return 0, false
	}
	return number(text[i+1:]), true
}

// list fills fresh with pids that are not settled yet and forgets those that are no more. /proc lists
// processes only, while each of their threads has a pid, too.
func (t *Tree) list() bool {
	t.fresh = t.fresh[:0]
	t.round++
	t.listed = 0
	err := eachName(t.procDir, t.entries[:], func(name []byte) {
		if name[0] < '0' || name[0] > '9' {
			return
		}
		pid := int(number(name))
		t.listed++
		if m, ok := t.known[pid]; ok {
			m.round = t.round
			t.known[pid] = m
			if m.process != nil || m.looks >= enoughLooks {
				return
			}
		}
		t.fresh = append(t.fresh, pid)
	})
	if err != nil {
		return false
	}
	for pid, m := range t.known {
		if m.round == t.round {
			continue
		}
		if m.process == nil {
			delete(t.known, pid)
		} else {
			t.ended = append(t.ended, m.process)
		}
	}
	return true
}

// inspect opens a new pid if its parent is in the tree.
func (t *Tree) inspect(pid int) (ours, gone bool) {
	var path [64]byte
	n, err := readFile(string(appendPath(path[:0], t.root, pid)), t.scratch[:])
	if err != nil {
		return false, true
	}
	s, err := parseStat(t.scratch[:n])
	if err != nil {
		return false, true
	}
	parent := int(s.parent)
	if parent != t.leader && t.known[parent].process == nil {
		return false, false
	}
	return !t.thread(pid) && t.add(pid), false
}

// thread says whether a pid is that of a thread other than a process' first.
func (t *Tree) thread(pid int) bool {
	n, err := readFile(filepath.Join(t.root, "proc", strconv.Itoa(pid), "status"), t.scratch[:])
	group, ok := field(t.scratch[:max(n, 0)], "Tgid")
	return err != nil || !ok || int(group) != pid
}

func appendPath(path []byte, root string, pid int) []byte {
	path = append(path, root...)
	path = append(path, "/proc/"...)
	path = strconv.AppendInt(path, int64(pid), 10)
	return append(path, "/stat"...)
}

func (t *Tree) add(pid int) bool {
	if t.known[pid].process != nil {
		return false
	}
	p, err := openProcess(t.root, pid, t.scratch[:])
	if err != nil {
		return false
	}
	if p.aside() {
		p.close()
		t.leave(pid)
		return false
	}
	t.takeProcess(p)
	return true
}

// joinProcess takes in a process that is not found by its parents; nil where it is in the tree, has left it or is gone.
func (t *Tree) joinProcess(pid int, startTicks uint64) *Process {
	if m := t.known[pid]; m.process != nil || m.left {
		return nil
	}
	p, err := openProcess(t.root, pid, t.scratch[:])
	if err != nil {
		return nil
	}
	if p.StartTicks != startTicks { // another, or it has that pid in a namespace of its own
		p.close()
		return nil
	}
	t.takeProcess(p)
	return p
}

func (t *Tree) takeProcess(p *Process) {
	t.known[p.PID] = member{process: p, round: t.round}
	t.live = append(t.live, p)
	t.bornList = append(t.bornList, p)
}

// remove forgets a process that ended.
func (t *Tree) remove(p *Process) {
	p.close()
	// it stays known until it is listed no more: a zombie is not a new process
	t.known[p.PID] = member{round: t.round, looks: enoughLooks}
	for i, other := range t.live {
		if other == p {
			t.live = append(t.live[:i], t.live[i+1:]...)
			break
		}
	}
}

// leave takes a pid for that of no descendant, whatever its parent is.
func (t *Tree) leave(pid int) {
	t.known[pid] = member{round: t.round, looks: enoughLooks, left: true}
}

func (t *Tree) close() {
	for _, p := range t.live {
		p.close()
	}
	for _, fd := range []int{t.procDir, t.loadavg} {
		if fd >= 0 {
			closeFile(fd)
		}
	}
}
