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
			all = append(all, mem.Place{File: l.File, Line: l.Line, Function: l.Function, Bytes: mem.Some(l.Bytes)})
		}
	}
	if r.Imagined != nil && !r.Imagined.CategoriesShort { // else they are what was lacking
		for _, l := range r.Imagined.Lines {
			all = append(all, mem.Place{File: l.File, Line: l.Line, Function: l.Function, Bytes: mem.Some(int64(l.Bytes))})
		}
	}
	return all
}
