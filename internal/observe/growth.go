package observe

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// growth is a running look at whether a process grows with its steps. It is just good enough to ask the
// agent to look for the container that grows, and for the status line. The verdict of a report is
// analyze's, from the whole recording.
type growth struct {
	points   []growthPoint // thinned: at most growthPoints
	stride   uint64
	lastScan int64
	overTime bool
	scans    int
	since    int64   // the first scan
	least    float64 // a step, or a tick, that is worth a scan; 0: so many bytes
}

const (
	leastBytes = 16 << 10
	leastFiles = 0.1
)

// pause between two looks. It takes four or more to see a container grow, and what grows after a long import, or
// late, is to be seen as well. So there are about a dozen in every doubling of the time. Over time, where turns are
// less even and a program may be over in two seconds, there are twice as many, and the first come sooner.
func (g *growth) pause(now int64) int64 {
	least, share := int64(1e9), int64(16)
	if g.overTime {
		least, share = least/4, 2*share
	}
	return max(least, (now-g.since)/share)
}

type growthPoint struct {
	step  uint64
	bytes float64
}

const growthPoints = 128

// tickOver is the unit of a growth over time, where there are no steps.
const tickOver = int64(100e6)

// addOver takes in what a process held at a moment.
func (g *growth) addOver(now, bytes int64) { g.point(uint64(now/tickOver), bytes) }

// add takes in the end of a step.
func (g *growth) add(s mem.Step) {
	bytes, ok := s.RSS.Get()
	if device, known := s.Device.Get(); known && device > 0 {
		bytes, ok = device, true
	}
	if heap, known := s.Heap.Get(); known && !s.Device.Known() {
		bytes, ok = heap, true
	}
	if ok {
		g.point(s.Number, bytes)
	}
}

// point takes in what was held at a step, or a tick of the clock.
func (g *growth) point(at uint64, bytes int64) {
	if n := len(g.points); n > 0 && at <= g.points[n-1].step {
		g.points, g.stride = g.points[:0], 1 // counted from the beginning: another program, by exec
	}
	g.stride = max(g.stride, 1)
	if at%g.stride != 0 {
		return
	}
	g.points = append(g.points, growthPoint{at, float64(bytes)})
	if len(g.points) >= growthPoints {
		g.stride *= 2
		g.points = slices.DeleteFunc(g.points, func(p growthPoint) bool { return p.step%g.stride != 0 })
	}
}

// perStep is the slope over the later two thirds of the steps. It is a median of the slopes between
// points half of that apart, so that warm-up and spikes do not count. It is ok where enough steps were seen,
// and the points rise more often than not by a clear margin.
func (g *growth) perStep() (slope float64, ok bool) {
	if !g.enough() {
		return 0, false
	}
	points := g.points[len(g.points)/3:]
	half := len(points) / 2
	var slopes []float64
	rising := 0
	for i := 0; i+half < len(points); i++ {
		a, b := points[i], points[i+half]
		s := (b.bytes - a.bytes) / float64(b.step-a.step)
		if s > 0 {
			rising++
		}
		slopes = append(slopes, s)
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], rising*4 > len(slopes)*3
}

// risen is how fast the least that is held rises, from the earlier half of the points to the later one. Unlike
// perStep it sees bursts with rests between them at the second of them. A warm-up rises, too: then a few scans are in
// vain.
func (g *growth) risen() (slope float64, ok bool) {
	half := len(g.points) / 2
	if half < 3 {
		return 0, false
	}
	less := func(a, b growthPoint) int { return cmp.Compare(a.bytes, b.bytes) }
	earlier, later := slices.MinFunc(g.points[:half], less), slices.MinFunc(g.points[half:], less)
	return (later.bytes - earlier.bytes) / float64(g.points[half].step-g.points[0].step), true
}

// enough says whether there are steps enough to tell a slope.
func (g *growth) enough() bool { return len(g.points)-len(g.points)/3 >= 8 }

// worthScanning says whether the agent should look for growing containers now. It takes several
// looks to see a container grow; they become rare as the run goes on, and are only asked for while
// memory rises by more than noise.
func (g *growth) worthScanning(now int64) bool {
	slope, ok := g.perStep()
	if g.overTime {
		slope, ok = g.risen()
	}
	if !ok || slope < cmp.Or(g.least, leastBytes) {
		return false
	}
	if now-g.lastScan < g.pause(now) {
		return false
	}
	if g.scans == 0 {
		g.since = now
	}
	g.lastScan = now
	g.scans++
	return true
}
