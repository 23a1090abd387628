package growth

import (
	"fmt"
	"slices"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// What comes in few large steps, or in a program that had the processor now and then, has no rate. A container that
// gained items to the end is told all the same: with what it holds, and what is not known.

const (
	// items that a container did not gain, after which it is at rest
	missedItems = 1.5
	doubtful    = 0.5 // how sure a growth is that has no rate
)

// restsSince is when a container of a program without steps came to rest, as far as its last look shows, which came at
// the end: longer ago than one item takes, and than it ever rested between two rises.
func (in *Found) restsSince(process uint32, h *mem.Holder) (since int64, ok bool) {
	c := in.ClockOf(process)
	from, to := c.Window(in.Run.Process(process), in.End)
	if !c.Minutes || h.PerMin <= 0 || to-h.Time > int64(lookApart*float64(to-from)) {
		return 0, false
	}
	since = h.Time
	var items, first, longest int64 // of the count before, when it was seen first, and the time to the next
	for _, other := range in.Run.Holders {
		if other.Process != process || other.Kind != h.Kind || other.Name != h.Name || other.Time > h.Time {
			continue
		}
		if other.Items == h.Items {
			since = min(since, other.Time)
		}
		if other.Items != items {
			if items > 0 {
				longest = max(longest, other.Time-first)
			}
			items, first = other.Items, other.Time
		}
	}
	rest := h.Time - since
	missed := h.PerMin * float64(rest) / float64(time.Minute)
	return since, missed >= missedItems && rest >= longest && float64(rest) >= lookApart*float64(to-from)
}

// resting takes the causes whose containers are at rest at the end out of those that grow: they stopped.
func (in *Found) resting() {
	in.growing = slices.DeleteFunc(in.growing, func(g growing) bool {
		if g.holder == nil || g.holder.Bound.Known() || len(g.shares) != 1 {
			return false
		}
		since, ok := in.restsSince(g.process, g.holder)
		if ok {
			g.stopped = since
			in.stopped = append(in.stopped, g)
		}
		return ok
	})
}

// uneven finds the container that gained items to the end, where memory rose and no growth was found. It is a finding
// where its items hold a good part of what memory rose by; else what is not known of it is said.
func (in *Found) uneven() {
	p, rss := in.Run.Process(in.Leader), in.Find(in.Leader, mem.SeriesRSS)
	if len(in.Said.Findings) > 0 || rss == nil {
		return
	}
	from, _ := in.ClockOf(p.ID).Window(p, in.End)
	for _, h := range in.HoldersOf(p.ID) {
		rose := facts.ValueAt(rss, h.Time) - facts.ValueAt(rss, from+(h.Time-from)/2)
		if h.Bound.Known() || h.Falls > 0 || rose < int64(facts.LeastTotal) || !in.growsToTheEnd(p, h) {
			continue
		}
		if bytes := h.Tensors.Or(0); float64(bytes) < max(facts.LeastTotal, explainsAll*float64(rose)) {
			in.NotLooked = fmt.Sprintf("Whether the %s `%s` (%s) keeps what memory rose by is not known: it gained "+
				"items to the end, %s%s in all, but memory was not seen to rise at a steady rate.", h.Kind, h.Name,
				mem.LineName(h.Where), report.Counted(h.Items, "item"), contents(&h))
			return
		}
		in.Said.Findings = append(in.Said.Findings, in.unevenFinding(p, &h))
		in.unevenly = &h
		return
	}
}

// unevenFinding puts a container that gained items to the end into words.
func (in *Found) unevenFinding(p *mem.Process, h *mem.Holder) report.Finding {
	g := &growing{process: p.ID, holder: h}
	bytes := mem.Bytes(h.Tensors.Or(0))
	keeps := fmt.Sprintf("gained items to the end, %s%s in all", report.Counted(h.Items, "item"), contents(h))
	if oneBlock(*h) {
		keeps = "got larger to the end"
	}
	return report.Finding{
		Kind: report.KindGrowth, Severity: report.Warning, Process: p.ID, File: h.Where.File, Line: h.Where.Line,
		Holder: h.Name, Bytes: mem.Some(int64(bytes)), Label: mem.Estimated, Confidence: doubtful,
		Title: fmt.Sprintf("`%s` (%s) holds %v, and grew to the end", h.Name, lineNames(h), bytes),
		Text: fmt.Sprintf("The %s `%s`%s %s. It holds %v by the sizes of its newest items (%s), and memory rose meanwhile, "+
			"at no steady rate that was seen. A program that only loads what it needs looks the same.", h.Kind, h.Name,
			in.atLine(g, h.Where), keeps, bytes, mem.Estimated),
		Advice: fmt.Sprintf("If it is not all needed to the end, drop from `%s` what is no longer needed, or store less in "+
			"it.", h.Name),
	}
}
