package format

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// Redact returns a copy of a run without what is private. That is folders of paths, the host, arguments,
// environment, working copy, the run's name and tags, ids of GPUs, and allocator snapshots (they are full of
// paths). File names, functions, lines, names of modules and of the program's own spans stay: a report of the copy
// finds the same as one of the original.
func Redact(run *mem.Run) *mem.Run {
	r, out := redactor{host: run.Info.Host.Name, spans: map[string]string{}}, mem.NewRun()
	for f := range wire.Frames(run) {
		if f = r.frame(f); f != nil {
			_ = out.Add(f) // every frame comes from a Run that took it
		}
	}
	out.Damage = run.Damage
	if len(run.Snapshots) > 0 {
		_ = out.Add(mem.Event{Time: run.Start(), Kind: "unobserved", Text: "allocator snapshots were left out of this copy"})
	}
	return out
}

// Redact returns a copy of a Source without what is private; see the function of the same name. Of
// snapshots and profiles: folders of paths, and texts that the program attached.
func (s Source) Redact() Source {
	r := redactor{}
	switch {
	case s.Run != nil:
		return Source{Run: Redact(s.Run)}
	case s.Profile != nil:
		p := *s.Profile
		p.Stacks.Locations = r.locations(p.Stacks.Locations)
		return Source{Profile: &p}
	}
	copied := *s.Snapshot
	copied.Stacks.Locations = r.locations(copied.Stacks.Locations)
	copied.Texts = make([]string, len(s.Snapshot.Texts))
	for i, text := range s.Snapshot.Texts {
		copied.Texts[i] = r.text(text)
	}
	copied.FX = nil // source lines of the program
	copied.Annotations = slices.Clone(copied.Annotations)
	for i := range copied.Annotations {
		copied.Annotations[i].Name = r.text(copied.Annotations[i].Name)
	}
	return Source{Snapshot: &copied}
}

type redactor struct {
	host  string
	spans map[string]string // what each span that the program named is called in the copy
}

// span is the name of a span without folders. Two that differ in these alone stay two.
func (r redactor) span(phase mem.Phase, name string) string {
	if phase != mem.PhaseUser || name == "" {
		return name
	}
	known, ok := r.spans[name]
	for n := 1; !ok; n++ {
		known = r.text(name)
		if n > 1 {
			known = fmt.Sprintf("%s (%d)", known, n)
		}
		ok = true
		for _, other := range r.spans {
			ok = ok && other != known
		}
	}
	r.spans[name] = known
	return known
}

// frame is a fact without what is private in it; nil: all of it is.
func (r redactor) frame(f mem.Frame) mem.Frame {
	switch f := f.(type) {
	case mem.RunInfo:
		f.Command, f.Cwd, f.Env, f.Git = program(f.Command), "", nil, nil
		f.Name, f.Tags = "", nil
		f.Host.Name = ""
		f.Host.GPUs = slices.Clone(f.Host.GPUs)
		for n := range f.Host.GPUs {
			f.Host.GPUs[n].UUID = ""
		}
		f.Options = r.facts(f.Options)
		return f
	case mem.Process:
		f.Command, f.Facts = program(f.Command), r.facts(f.Facts)
		return f
	case mem.StackDef:
		f.Locations = r.locations(f.Locations)
		return f
	case mem.Spans:
		f = slices.Clone(f)
		for i := range f {
			f[i].Name = r.span(f[i].Phase, f[i].Name)
		}
		return f
	case mem.PhaseStats:
		f.Name = r.span(f.Phase, f.Name)
		return f
	case mem.Holder:
		f.Where, f.Others = r.location(f.Where), r.locations(f.Others)
		return f
	case mem.Event:
		return r.event(f)
	case mem.Snapshot:
		return nil
	case mem.ReadBack:
		f.Location = r.location(f.Location)
		return f
	case mem.DataSize:
		f.Location = r.location(f.Location)
		return f
	case mem.Unreached:
		f.Text, f.Location = r.text(f.Text), r.location(f.Location)
		return f
	case mem.FakeWeights:
		f.Name = r.text(f.Name)
		return f
	case mem.Redirected:
		f.Path = r.text(f.Path)
		return f
	case mem.Switch:
		f.Text = r.text(f.Text)
		return f
	case mem.Condition:
		f.Value = r.text(f.Value)
		return f
	case mem.Trial:
		f.Command, f.Note = "", r.text(f.Note)
		return f
	}
	return f
}

// program keeps the name of what was run, and leaves out how.
func program(command []string) []string {
	if len(command) == 0 {
		return nil
	}
	return []string{path.Base(command[0])}
}

func (r redactor) facts(old map[string]string) map[string]string {
	out := maps.Clone(old)
	for key, value := range out {
		out[key] = r.text(value)
	}
	return out
}

func (r redactor) event(e mem.Event) mem.Event {
	if e.Kind == "start" || e.Kind == "process-start" {
		e.Text = "" // the command line
	}
	e.Text = r.text(e.Text)
	e.Facts = r.facts(e.Facts)
	if e.Where != nil {
		where := r.location(*e.Where)
		e.Where = &where
	}
	return e
}

// paths are runs of name/name or /name in a text.
var paths = regexp.MustCompile(`(?:~|[A-Za-z]:)?[\w.@+%=~-]*(?:[/\\][\w.@+%=~-]+)+[/\\]?`)

func (r redactor) text(s string) string {
	if r.host != "" {
		s = strings.ReplaceAll(s, r.host, "(host)")
	}
	return paths.ReplaceAllStringFunc(s, shorten)
}

func (r redactor) locations(stack []mem.Location) []mem.Location {
	out := make([]mem.Location, len(stack))
	for i, l := range stack {
		out[i] = r.location(l)
	}
	return out
}

func (r redactor) location(l mem.Location) mem.Location {
	if strings.ContainsAny(l.File, `/\`) {
		l.File = shorten(l.File)
	}
	return l
}

// shorten keeps of a path what is public: from the folder of installed packages on, else the name.
func shorten(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, packages := range []string{"/site-packages/", "/dist-packages/"} {
		if _, inside, ok := strings.Cut(file, packages); ok {
			return inside
		}
	}
	return path.Base(file)
}
