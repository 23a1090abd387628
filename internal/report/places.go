package report

import "hightide/internal/mem"

// Places are what a run is searched for by: its findings, with the line to change and the line that allocates, and the
// lines that held most at the peak, as the tables show them. Never nil: an empty list says that there are none.
func (r *Report) Places() []mem.Place {
	all := []mem.Place{}
	for i := range r.Findings {
		f := &r.Findings[i]
		at := mem.Place{Kind: f.Kind, Severity: f.Severity, File: f.File, Line: f.Line, Bytes: f.Bytes}
		site := at
		site.File, site.Line, site.Function = f.SiteFile, f.SiteLine, f.SiteFunction
		switch {
		case site.File == "" || site.File == at.File && site.Line == at.Line:
			at.Function = site.Function
			all = append(all, at)
		case at.File == "":
			all = append(all, site)
		default:
			all = append(all, at, site)
		}
	}
	if r.Lines != nil {
		for _, l := range r.Lines.Lines {
			all = append(all, mem.Place{File: l.File, Line: l.Line, Function: l.Function, Bytes: mem.Some(l.Bytes),
				Error: l.Half})
		}
	}
	if r.Imagined != nil && !r.Imagined.CategoriesShort { // else they are what was lacking
		for _, l := range r.Imagined.Lines {
			all = append(all, mem.Place{File: l.File, Line: l.Line, Function: l.Function, Bytes: mem.Some(int64(l.Bytes))})
		}
	}
	return all
}

// Figures are what trends are made of beside the peak.
func (r *Report) Figures() map[string]mem.Figure {
	all, h := map[string]mem.Figure{}, &r.Headline
	if growth, ok := h.Growth.Get(); ok {
		f := mem.Figure{Bytes: growth, Error: h.GrowthError.Or(0), What: "growth of host memory a step",
			Source: mem.SeriesRSS, Label: mem.Estimated} // from RSS or, where that has more, from the sampled heap
		if h.MainSource.OfDevice() {
			f.What, f.Source = "growth of allocated memory a step", mem.SeriesAllocated
		}
		if h.GrowthLabel == mem.Imagined {
			f.Label = mem.Imagined
		}
		all[mem.FigureGrowth] = f
	}
	unlisted := mem.Figure{What: "the most that lines of a function held that are not listed"}
	switch {
	case r.Imagined != nil && !r.Imagined.CategoriesShort && len(r.Imagined.Lines) > 0:
		unlisted.Bytes, unlisted.Source, unlisted.Label = int64(r.Imagined.LinesHeld), mem.SeriesAllocated, mem.Imagined
		for _, l := range r.Imagined.Lines {
			unlisted.Bytes -= int64(l.Bytes)
		}
		all[mem.FigureUnlisted] = unlisted
	case r.Lines != nil:
		unlisted.Bytes, unlisted.Source, unlisted.Label = r.Lines.Unlisted, mem.SeriesHeapLive, mem.Sampled
		if len(r.Lines.Lines) > 0 {
			unlisted.Label = r.Lines.Lines[0].Label
		}
		all[mem.FigureUnlisted] = unlisted
	}
	if h.Fragmentation.Known() {
		all[mem.FigureFragmentation] = h.Fragmentation
	}
	return all
}

// Found is what of it a recording keeps, so that lists, searches and trends need not make it again.
func (r *Report) Found() mem.Found {
	return mem.Found{Findings: len(r.Findings), Places: r.Places(), Figures: r.Figures()}
}
