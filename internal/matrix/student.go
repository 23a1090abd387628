package matrix

import "math"

// What is known of the distributions that intervals rest on. Student's t and F come from the incomplete beta
// function. Sources: Abramowitz and Stegun 26.5.8 (continued fraction), 26.7.1 and 26.6.2.

// tail is the probability that Student's t with df degrees of freedom lies beyond ±t.
func tail(t, df float64) float64 {
	if math.IsInf(df, 1) {
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return incompleteBeta(df/2, 0.5, df/(df+t*t))
}

// Student is the t beyond which, on both sides together, 1-level of the distribution with df degrees of freedom lies.
func Student(df, level float64) float64 {
	return bisect(func(t float64) bool { return tail(t, df) > 1-level })
}

// beyondF is the probability that F with these degrees of freedom is larger than f.
func beyondF(f, df1, df2 float64) float64 {
	if f <= 0 {
		return 1
	}
	if math.IsInf(f, 1) {
		return 0
	}
	return incompleteBeta(df2/2, df1/2, df2/(df2+df1*f))
}

// bisect is where a condition that holds at zero stops to hold.
func bisect(holds func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for holds(high) && high < 1e12 {
		low, high = high, high*2
	}
	for range 60 {
		middle := (low + high) / 2
		if holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// quantiles remembers those of Student's t: degrees of freedom are rounded down, which widens intervals.
type quantiles struct {
	level float64
	known map[int]float64
}

func newQuantiles(level float64) *quantiles { return &quantiles{level, map[int]float64{}} }

func (q *quantiles) of(df float64) float64 {
	const grid = 16 // from 16 degrees of freedom on, whole ones; from 256 on, sixteens
	step := 1.0
	switch {
	case df < grid:
		step = 1.0 / grid
	case df > grid*grid:
		step = grid
	}
	df = min(max(math.Floor(df/step)*step, 1.0/grid), 1e6)
	key := int(df * grid)
	if _, ok := q.known[key]; !ok {
		q.known[key] = Student(df, q.level)
	}
	return q.known[key]
}

// incompleteBeta is the regularised incomplete beta function.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(b, a, 1-x)
	}
	front := math.Exp(a*math.Log(x) + b*math.Log1p(-x) - logBeta(a, b))
	return front * betaFraction(a, b, x) / a
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// betaFraction is the continued fraction of the incomplete beta function, by Lentz's method.
func betaFraction(a, b, x float64) float64 {
	const tiny = 1e-300
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < 400; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/away(1+even*d), away(1+even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/away(1+odd*d), away(1+odd/c)
		h *= d * c
		if math.Abs(d*c-1) < 1e-14 {
			break
		}
	}
	return h
}

// digamma and trigamma are the first and second derivative of log Γ, by recurrence and the asymptotic series.
func digamma(x float64) float64 {
	sum := 0.0
	for ; x < 8; x++ {
		sum -= 1 / x
	}
	y := 1 / (x * x)
	return sum + math.Log(x) - 0.5/x - y*(1.0/12-y*(1.0/120-y*(1.0/252-y/240)))
}

func trigamma(x float64) float64 {
	sum := 0.0
	for ; x < 8; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	return sum + 1/x + y/2 + y/x*(1.0/6-y*(1.0/30-y*(1.0/42-y/30)))
}

// inverseTrigamma is where trigamma, which falls, has this value.
func inverseTrigamma(y float64) float64 {
	return bisect(func(x float64) bool { return x <= 0 || trigamma(x) > y })
}
