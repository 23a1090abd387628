package bench

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/pytorch"
)

// cached is an allocator of many free blocks in both pools, and what is live in it.
type cached struct {
	n    *allocator.Native
	live []allocator.Handle
	next func() mem.Bytes // a size like those that are live
}

func newCached() *cached {
	r := rand.New(rand.NewPCG(1, 2))
	c := &cached{n: allocator.NewNative(allocator.Settings{}, allocator.RulesOf(mem.Version{Major: 2, Minor: 9}), 0, &allocator.Device{})}
	c.next = func() mem.Bytes {
		if r.IntN(8) == 0 {
			return mem.Bytes(1<<20 + r.IntN(30<<20))
		}
		return mem.Bytes(1 + r.IntN(1<<20))
	}
	var all []allocator.Handle
	for range 38_000 {
		all = append(all, c.n.Malloc(allocator.Request{Size: c.next()}))
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, h := range all {
		if i%2 == 0 {
			c.n.Free(h)
		} else {
			c.live = append(c.live, h)
		}
	}
	return c
}

func (c *cached) freeBlocks() (count int) {
	for _, s := range c.n.State() {
		for _, b := range s.Blocks {
			if b.State == mem.BlockInactive {
				count++
			}
		}
	}
	return count
}

// churn frees a block and asks for another, pairs times; sizes and blocks are chosen beforehand.
func (c *cached) churn(sizes []mem.Bytes, picks []int, pairs int) {
	n, live := c.n, c.live
	for i := range pairs {
		at := picks[i%len(picks)]
		n.Free(live[at])
		live[at] = n.Malloc(allocator.Request{Size: sizes[i%len(sizes)]})
	}
}

func (c *cached) choices(n int) (sizes []mem.Bytes, picks []int) {
	r := rand.New(rand.NewPCG(3, 4))
	for range n {
		sizes, picks = append(sizes, c.next()), append(picks, r.IntN(len(c.live)))
	}
	return sizes, picks
}

// slice is how many pairs are timed at once: few enough to fall between two interruptions.
const slice = 2_000

// BenchmarkReplayPairs: an allocation and a free, of small and large blocks, with many free ones in the
// pools. It is timed in slices, as on a busy machine many of them are interrupted: the median is told, what
// the fastest tenth reach, and pairs by the processor's time.
func BenchmarkReplayPairs(b *testing.B) {
	c := newCached()
	sizes, picks := c.choices(1 << 14)
	c.churn(sizes, picks, 100_000)
	before := processorTime()
	b.ResetTimer()
	var rates []float64
	for done := 0; done < b.N; done += slice {
		start := time.Now()
		c.churn(sizes, picks, slice)
		rates = append(rates, slice/time.Since(start).Seconds()/1e6)
	}
	b.StopTimer()
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)*9/10], "undisturbed-Mpairs/s")
	b.ReportMetric(rates[len(rates)/2], "median-Mpairs/s")
	b.ReportMetric(float64(len(rates)*slice)/(processorTime()-before).Seconds()/1e6, "Mpairs/cpu-s")
	b.ReportMetric(float64(c.freeBlocks()), "free-blocks")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestReplayMemory: what the model holds follows from what is live, not from how long it ran.
func TestReplayMemory(t *testing.T) {
	c := newCached()
	sizes, picks := c.choices(1 << 14)
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	c.churn(sizes, picks, 200_000)
	before := held()
	c.churn(sizes, picks, 2_000_000)
	if grown := held() - before; grown > 512<<10 {
		t.Errorf("two million pairs later it holds %d bytes more than %d", grown, before)
	}
	runtime.KeepAlive(c)
}

// BenchmarkReplaySearch: settings tried on a trace of 100,000 events, on all processors.
func BenchmarkReplaySearch(b *testing.B) {
	s := trainingTrace(100_000)
	settings, err := allocator.SettingsOf(s)
	if err != nil {
		b.Fatal(err)
	}
	p, err := allocator.Compile(s, &s.Traces[0], settings)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		setup := allocator.Setup{Settings: settings, Rules: allocator.RulesOf(mem.Version{Major: 2, Minor: 15})}
		found := allocator.Search(p, setup, runtime.GOMAXPROCS(0), nil)
		b.ReportMetric(float64(len(found)), "settings")
	}
	b.ReportMetric(float64(s.Traces[0].Len()), "events")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "seconds")
}

// trainingTrace records a trace as a training makes it: activations of changing batches, freed backwards
// while gradients come, beside temporaries.
func trainingTrace(events int) *mem.AllocatorSnapshot {
	t := mem.Trace{}
	n := allocator.NewNative(allocator.Settings{}, allocator.RulesOf(mem.Version{Major: 2, Minor: 15}), 0, &allocator.Device{})
	n.Observe = func(e allocator.Event) {
		t.Action, t.Address, t.Size = append(t.Action, e.Action), append(t.Address, e.Address), append(t.Size, e.Size)
		t.Stream, t.Stack, t.Time = append(t.Stream, e.Stream), append(t.Stack, 0), append(t.Time, int64(len(t.Time))*1000)
	}
	r := rand.New(rand.NewPCG(5, 6))
	ask := func(size mem.Bytes) allocator.Handle { return n.Malloc(allocator.Request{Size: size}) }
	var layers []mem.Bytes
	for range 48 {
		layers = append(layers, mem.Bytes(1<<18+r.IntN(24<<20)))
		ask(layers[len(layers)-1])
	}
	for t.Len() < events {
		length := mem.Bytes(64 + r.IntN(192))
		var activations []allocator.Handle
		for _, size := range layers {
			temporary := ask(size * length / 512)
			activations = append(activations, ask(size*length/128), ask(mem.Bytes(1+r.IntN(4096))))
			n.Free(temporary)
		}
		var gradients []allocator.Handle
		for i := len(layers) - 1; i >= 0; i-- {
			gradients = append(gradients, ask(layers[i]))
			n.Free(activations[2*i+1])
			n.Free(activations[2*i])
		}
		for _, g := range gradients {
			n.Free(g)
		}
	}
	return &mem.AllocatorSnapshot{Versions: pytorch.WithHost, Segments: n.State(), Traces: []mem.Trace{t}}
}
