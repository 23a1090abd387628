package observe

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// Alert is a limit that somebody set: on the value of a series, or on its growth per step.
type Alert struct {
	Text    string       // as it was written
	Series  mem.Quantity // "" of PerStep: whatever a process holds most of, as the status line shows it
	Above   bool         // else below
	Limit   float64      // in the unit of the series, or percent
	OfTotal bool         // Limit is in percent of what there is: the host's memory, or the device's
	PerStep bool
}

var alertForm = words.Lazy(`^\s*([a-z][a-z0-9._]*)\s*(>=?|<=?)\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*|%)\s*(/\s*step)?\s*$`)

// alertNames are the short names and what they mean. What is said of the host is of the whole process tree, as in
// the report's headline.
var alertNames = map[string]mem.Quantity{
	"host.rss": mem.SeriesTreeRSS, "rss": mem.SeriesTreeRSS, "host.pss": mem.SeriesTreePSS, "pss": mem.SeriesTreePSS,
	"host.uss": mem.SeriesTreeUSS, "growth": "", // per step
	"heap": mem.SeriesHeapLive, "device": mem.SeriesDeviceUsed, "gpu": mem.SeriesDeviceUsed,
	"allocated": mem.SeriesAllocated, "reserved": mem.SeriesReserved, "available": mem.SeriesSystemAvailable,
}

// growing are the series whose growth per step is watched.
var growing = []mem.Quantity{"", mem.SeriesTreeRSS, mem.SeriesHeapLive, mem.SeriesAllocated}

// ParseAlert reads a limit such as "host.rss > 8GiB", "rss > 50MiB/step", "device.used > 90%" or
// "system.available < 1GiB".
func ParseAlert(text string) (Alert, error) {
	a, err := parseAlert(text)
	if err != nil {
		return Alert{}, fmt.Errorf("alert %q: %w", text, err)
	}
	return a, nil
}

func parseAlert(text string) (Alert, error) {
	m := alertForm.FindStringSubmatch(text)
	if m == nil {
		return Alert{}, errors.New("it is not of the form SERIES > SIZE[/step], as in 'host.rss > 8GiB'")
	}
	series, err := alertSeries(m[1])
	if err != nil {
		return Alert{}, err
	}
	a := Alert{Text: strings.TrimSpace(text), Series: series, Above: m[2][0] == '>', PerStep: m[5] != "",
		OfTotal: m[4] == "%" && unitOf(series) == mem.UnitBytes}
	switch {
	case a.PerStep && !slices.Contains(growing, series):
		return Alert{},
			fmt.Errorf("the growth of %s per step is not watched; that of growth, host.rss, heap and allocated is", m[1])
	case a.PerStep && m[4] == "%":
		return Alert{}, errors.New("a growth per step is given in bytes")
	case series == "" && !a.PerStep:
		return Alert{}, errors.New("growth is per step, as in 'growth > 50MiB/step'")
	case a.OfTotal:
		a.Limit, err = strconv.ParseFloat(m[3], 64)
	default:
		a.Limit, err = limitIn(alertUnit(series), m[3], m[4])
	}
	if err == nil && math.IsInf(a.Limit, 0) {
		err = fmt.Errorf("%s is not a number", m[3])
	}
	return a, err
}

// alertSeries is the series that a name means. Names that do not begin as ours do are an adapter's own.
func alertSeries(name string) (mem.Quantity, error) {
	if full, ok := alertNames[name]; ok {
		return full, nil
	}
	family, _, dotted := strings.Cut(name, ".")
	known := slices.Contains(mem.Quantities, mem.Quantity(name))
	ours := slices.ContainsFunc(mem.Quantities,
		func(q mem.Quantity) bool { return strings.HasPrefix(string(q), family+".") })
	if known || dotted && !ours {
		return mem.Quantity(name), nil
	}
	choices := slices.Sorted(maps.Keys(alertNames))
	if dotted {
		choices = nil
		for _, q := range mem.Quantities {
			if strings.HasPrefix(string(q), family+".") {
				choices = append(choices, string(q))
			}
		}
	}
	if near := words.Near(name, choices); near != "" {
		return "", fmt.Errorf("no series is called %s; did you mean %s?", name, near)
	}
	return "", fmt.Errorf("no series is called %s; there are %s", name, strings.Join(choices, ", "))
}

// alertUnit is the unit that limits of a series are given in; "" of an adapter's own, which may be anything.
func alertUnit(series mem.Quantity) mem.Unit {
	if series != "" && !slices.Contains(mem.Quantities, series) {
		return ""
	}
	return unitOf(series)
}

// limitIn reads a number with its unit as a value of a series.
func limitIn(unit mem.Unit, number, written string) (float64, error) {
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number", number)
	}
	plain := written == ""
	switch unit {
	case mem.UnitNanoseconds:
		d, err := time.ParseDuration(number + written)
		if err != nil || plain {
			return 0, fmt.Errorf("%s%s is not a time; write it as 90s", number, written)
		}
		return float64(d), nil
	case mem.UnitMilli:
		if written != "%" {
			return 0, fmt.Errorf("%s%s is not a share; write it as 90%%", number, written)
		}
		return 10 * value, nil
	case mem.UnitMilliwatts:
		if written != "W" {
			return 0, fmt.Errorf("%s%s is not a power; write it as 300W", number, written)
		}
		return 1000 * value, nil
	case mem.UnitBytes:
		if plain {
			return 0, fmt.Errorf("%s has no unit; write it as %sMiB", number, number)
		}
	default:
		if plain {
			return value, nil
		}
		if unit != "" {
			return 0, fmt.Errorf("%s%s: it is counted, without a unit", number, written)
		}
	}
	bytes, err := mem.ParseBytes(number + written)
	return float64(bytes), err
}

// amount writes a value of a series for people.
func amount(unit mem.Unit, value int64) string {
	switch unit {
	case mem.UnitBytes:
		return mem.Bytes(value).String()
	case mem.UnitNanoseconds:
		return time.Duration(value).Round(time.Millisecond).String()
	case mem.UnitMilli:
		return fmt.Sprintf("%d %%", value/10)
	case mem.UnitMilliwatts:
		return fmt.Sprintf("%d W", value/1000)
	case mem.UnitCelsius:
		return fmt.Sprintf("%d °C", value)
	}
	return strconv.FormatInt(value, 10)
}
