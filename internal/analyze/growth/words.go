package growth

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// unit is what the rates of a growth are by.
func (g *growing) unit() string {
	if g.minutes {
		return "minute"
	}
	return "step"
}

// rate is "1.19 MiB per step".
func (g *growing) rate() string {
	return bytesPer(g.slope).String() + " per " + g.unit()
}

// atLine is " (train.py:11: `kept.append(x)`)", the statement that makes a container grow; empty where it is not known.
func (in *Found) atLine(g *growing, at mem.Location) string {
	switch {
	case at.File == "" || g.holder.Where.Line <= 0:
		return ""
	case len(g.holder.Others) > 0:
		return fmt.Sprintf(" (at %s: %s)", lineNames(g.holder), severalLines(g.holder))
	}
	return fmt.Sprintf(" (%s%s)", mem.LineName(at), in.quoted(at))
}

// quoted is ": `kept.append(x)`", the text of a line; empty where it is not known.
func (in *Found) quoted(at mem.Location) string {
	if text := in.Source(at); text != "" {
		return ": `" + text + "`"
	}
	return ""
}

// severalLines says what is known of the statements that may make a container grow.
func severalLines(h *mem.Holder) string {
	if h.Ran {
		return "each of these was seen to add to it"
	}
	return "which of these adds what is kept was not seen"
}

// lineNames is "train.py:10", or "train.py:10 or 12".
func lineNames(h *mem.Holder) string {
	names := mem.LineName(h.Where)
	for _, other := range h.Others {
		if other.File == h.Where.File {
			names += fmt.Sprintf(" or %d", other.Line)
		} else {
			names += " or " + mem.LineName(other)
		}
	}
	return names
}

func (in *Found) siteWords(g *growing) string {
	names := g.sites()
	switch {
	case g.objects():
		return fmt.Sprintf(" They are small objects, for which Python asked for memory %s.", in.askedAt(g))
	case len(names) == 1:
		return fmt.Sprintf(" The bytes are allocated at %s.", g.lines[0].Site.Name)
	}
	return fmt.Sprintf(" The bytes are allocated at %d lines, most of them at %s.", len(names), g.lines[0].Site.Name)
}

// askedAt is "at train.py:12", where Python asked for the memory of small objects.
func (in *Found) askedAt(g *growing) string {
	first := g.lines[0].Site
	if names := g.sites(); len(names) > 1 {
		return fmt.Sprintf("at %d lines, most often at %s", len(names), first.Name)
	}
	return "at " + first.Name + in.quoted(first.Location)
}

// sites are the names of the lines of a cause.
func (g *growing) sites() map[string]bool {
	names := map[string]bool{}
	for _, l := range g.lines {
		names[l.Site.Name] = true
	}
	return names
}

func during(p mem.Phase) string {
	if p == mem.PhaseNone || p == mem.PhaseStep {
		return ""
	}
	return " during " + string(p)
}

// items is "1 item per step".
func (g *growing) items() string {
	per := g.unit()
	n := math.Round(g.holder.PerStep*100) / 100
	if n >= 100 {
		return report.Counted(int64(math.Round(n)), "item") + " per " + per
	}
	if n == 1 {
		return "1 item per " + per
	}
	return fmt.Sprintf("%g items per %s", n, per)
}

func contents(h *mem.Holder) string {
	if h.Contains == "" {
		return ""
	}
	return " (" + h.Contains + ")"
}

// helps is what to do about a kind of holder, with %s for its name; "" where that depends on what it keeps.
func helps(kind string) string {
	if cache := frameworks.CacheOf(kind); cache != nil {
		return cache.Advice
	}
	return howTo[kind]
}

// howTo is what helps, by the kind of the holder.
var howTo = map[string]string{
	"array": joinOnce, "DataFrame": joinOnce, "Series": joinOnce, "Table": joinOnce,
	"str":         "Write the parts to a file as they come, in place of adding them to %s, or drop what is no longer needed.",
	"bytes":       "Write the parts to a file as they come, in place of adding them to %s, or drop what is no longer needed.",
	"bytearray":   "Drop what was used of %s, as with `del buffer[:n]`, or write it to a file as it comes.",
	"array.array": "Drop what was used of %s, as with `del values[:n]`, or write it to a file as it comes.",
	"BytesIO":     "Write to a file in place of %s, or empty it when what it has was used: seek(0), then truncate().",
	"StringIO":    "Write to a file in place of %s, or empty it when what it has was used: seek(0), then truncate().",
	"backlog of executor": "Submit no more than the pool can do: wait before submit(), as on a semaphore that each " +
		"task releases, so that what %s has waiting stays bounded.",
	"backlog of pool": "Hand over no more than the pool can do: wait for results, or on a semaphore that each task " +
		"releases, so that what %s has waiting stays bounded.",
	"exit stack": "Leave the `with` of %s sooner, as with one ExitStack for each item: it keeps each callback, and " +
		"what that was given, until then.",
	"index of archive": "Empty %s now and then, as with `archive.members = []`: a TarFile keeps the header of each " +
		"file that it wrote or read.",
	"queue": "Give %s a maxsize, so that put() waits (a SimpleQueue has none: use queue.Queue), or take out as much as is " +
		"put in.",
	"lru_cache": "Give the cache of %s a maxsize that fits, or call its cache_clear(). It keeps the arguments " +
		"of its calls, too.",
	"hooks": "Keep the handle that registering returns and call its remove(), or register once, before the " +
		"loop: %s.",
	"list of open figures": "Close each figure when it is drawn: plt.close(fig). pyplot keeps all others in %s.",
	"table of loggers": "Name loggers by module, and give what differs as an argument of the message: " +
		"logging.getLogger() keeps a logger for each name, and its handlers, for good in %s.",
	"registry of warnings": "Warn with a text that does not change: Python keeps each that it was given, to show it " +
		"once, in %s. What differs belongs into a message of logging.",
	"table of attributes": "Keep what is made under ever new names in a container that can be bounded, or delete " +
		"attributes that are no longer needed: %s keeps each.",
	"table of variables": "Keep what is made under ever new names in a container that can be bounded, or delete " +
		"variables that are no longer needed: the module %s keeps each.",
	"table of source lines": "Call linecache.clearcache() when the files that were read are done with: it keeps the " +
		"lines of each in %s.",
	"chain": "Each object of %s keeps the one before it: store what is needed of that, not the object.",
}

const joinOnce = "Drop of %s what is no longer needed, or write it to a file as it comes. Of parts that are all " +
	"needed a list, joined once at the end, takes no copy at each turn."

// mayFill says what no recording can tell: whether a table that still grows at its end is a cache that has
// a bound it did not reach.
func mayFill(h *mem.Holder) string {
	without := []string{"list", "tuple", "deque", "table of loggers", "table of source lines"}
	if h.Graph || slices.Contains(without, h.Kind) {
		return ""
	}
	return fmt.Sprintf("If `%s` is a cache with a bound, it had not reached it by the end: a longer run would show. "+
		"Otherwise: ", h.Name)
}

// holderNames is "`train`", or "`train` and `test`".
func (g *growing) holderNames() string {
	return listed(g.ofKeepers(func(h *mem.Holder) string { return "`" + h.Name + "`" }))
}

// holderLines are the lines where the containers of a cause grow, each once; the first is that of the cause.
func (g *growing) holderLines(at mem.Location) string {
	var lines []string
	for _, line := range g.ofKeepers(func(h *mem.Holder) string {
		if h == g.holder {
			return mem.LineName(at)
		}
		return lineNames(h)
	}) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return listed(lines)
}

// ofKeepers says something of each container of a cause.
func (g *growing) ofKeepers(say func(*mem.Holder) string) []string {
	said := []string{say(g.holder)}
	for _, k := range g.beside {
		said = append(said, say(k.Holder))
	}
	return said
}

// listed is "a", or "a, b and c".
func listed(all []string) string {
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// besideWords say what the other containers of a cause gain.
func (g *growing) besideWords() (said string) {
	for _, k := range g.beside {
		other := growing{holder: k.Holder, minutes: g.minutes}
		said += fmt.Sprintf(", the %s `%s` (%s) gains %s%s", k.Kind, k.Name, lineNames(k.Holder), other.items(),
			contents(k.Holder))
	}
	return said
}

// keep begins what the containers of a cause keep.
func (g *growing) keep() string {
	if len(g.beside) == 0 {
		return "It keeps"
	}
	return "Together they keep"
}

// parts say how much of a growth each of several containers keeps; "" of one.
func (g *growing) parts() string {
	if len(g.beside) == 0 {
		return ""
	}
	own, parts := 1.0, map[*mem.Holder]float64{}
	for _, k := range g.beside {
		parts[k.Holder] = k.part
		own -= k.part
	}
	parts[g.holder] = own
	return fmt.Sprintf(" By the sizes of their newest items (%s) that is %s.", mem.Estimated,
		listed(g.ofKeepers(func(h *mem.Holder) string { return fmt.Sprintf("%.0f %% in `%s`", 100*parts[h], h.Name) })))
}
