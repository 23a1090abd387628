package fit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// families are kinds of programs by how their memory goes with the batch, each with parameters drawn at
// random. Those beyond a straight line are what real programs do: another algorithm from some batch on,
// attention whose cost grows faster, cached memory that cannot be given back.
var families = []struct {
	name       string
	mean, most float64 // trials; most in 95 of 100
	draw       func(*rand.Rand) curve
}{
	{"a line", 4.5, 5, func(r *rand.Rand) curve {
		return curve{allocated: line(r.Int64N(8*gib), 20<<20+r.Int64N(200<<20)), waste: nothing}
	}},
	{"a line that nearly fills", 5.5, 8, func(r *rand.Rand) curve {
		return curve{allocated: line(r.Int64N(4*gib), 20<<20+r.Int64N(200<<20)), waste: func(int) int64 { return 200 << 20 }}
	}},
	{"holes that grow", 8, 10, func(r *rand.Rand) curve {
		each, hole := 20<<20+r.Int64N(200<<20), 1+r.Int64N(10)
		return curve{allocated: line(r.Int64N(4*gib), each), waste: func(b int) int64 { return int64(b) * each * hole / 100 }}
	}},
	{"steeper from some batch on", 9, 11, func(r *rand.Rand) curve {
		each, bend, more := 20<<20+r.Int64N(100<<20), int64(20+r.IntN(150)), 1+r.Int64N(2)
		return curve{waste: nothing, allocated: func(b int) int64 {
			return gib + int64(b)*each +
				max(0, int64(b)-bend)*each*more
		}}
	}},
	{"flatter from some batch on", 5.5, 7, func(r *rand.Rand) curve {
		each, bend := 80<<20+r.Int64N(100<<20), int64(20+r.IntN(50))
		return curve{waste: nothing, allocated: func(b int) int64 {
			return gib + min(int64(b), bend)*each +
				max(0, int64(b)-bend)*each/2
		}}
	}},
	{"another algorithm", 7.5, 10, func(r *rand.Rand) curve {
		each, at, jump := 20<<20+r.Int64N(100<<20), 20+r.IntN(150), r.Int64N(4*gib)
		return curve{waste: nothing, allocated: func(b int) int64 {
			n := gib + int64(b)*each
			if b >= at {
				n += jump
			}
			return n
		}}
	}},
	{"grows with the square", 8.1, 9, func(r *rand.Rand) curve {
		each, square := 1<<20+r.Int64N(20<<20), 10<<10+r.Int64N(1<<20)
		return curve{waste: nothing, allocated: func(b int) int64 { return gib + int64(b)*each + int64(b)*int64(b)*square }}
	}},
	// as of CNNs: the allocator gives its cache back where it must
	{"holes that go when full", 8.1, 12, func(r *rand.Rand) curve {
		fixed, each, hole := r.Int64N(gib), 20<<20+r.Int64N(100<<20), 50+r.Int64N(400) // MiB
		need := line(fixed, each)
		return curve{allocated: need, waste: func(b int) int64 { return min(need(b), max(hole<<20, 22*gib-need(b))) }}
	}},
	{"scratch that goes when full", 10.5, 14, func(r *rand.Rand) curve { // as of CNNs: a slower algorithm takes less
		each, scratch, more := 10<<20+r.Int64N(40<<20), int64(5+r.IntN(30)), r.IntN(30)
		full := int(22 * gib / (each + each*scratch/100))
		return curve{waste: func(b int) int64 {
			if b > full+more {
				return 22 * gib // what is left lies in pieces
			}
			return 0
		}, allocated: func(b int) int64 {
			if b <= full {
				return int64(b) * (each + each*scratch/100)
			}
			return int64(b) * each
		}}
	}},
	{"rounded to 20 MiB", 5.5, 9, func(r *rand.Rand) curve {
		each := 10<<20 + r.Int64N(100<<20)
		return curve{waste: nothing, allocated: func(b int) int64 { return (gib + int64(b)*each) &^ (20<<20 - 1) }}
	}},
}

func TestFewTrialsOnManyFamilies(t *testing.T) {
	for _, family := range families {
		t.Run(family.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			var counts []int
			for range 500 {
				c := family.draw(random)
				c.capacity, c.plan = 22*gib, Plan{First: 16}
				result, err := Search(c.plan, c.try)
				if err != nil {
					t.Fatal(err)
				}
				checkAnswer(t, c, result)
				counts = append(counts, len(result.Trials))
			}
			slices.Sort(counts)
			sum := 0
			for _, n := range counts {
				sum += n
			}
			mean, most := float64(sum)/float64(len(counts)), counts[len(counts)*95/100]
			t.Logf("%-28s %.1f trials on average, at most %d in 95 of 100, %d at worst", family.name, mean, most,
				counts[len(counts)-1])
			if mean > family.mean || float64(most) > family.most {
				t.Errorf("%.1f trials on average and %d in 95 of 100, want at most %.1f and %.0f", mean, most, family.mean,
					family.most)
			}
		})
	}
}
