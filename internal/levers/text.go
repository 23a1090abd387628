package levers

import (
	"fmt"
	"strconv"
	"strings"
)

// Text is the plan as a file that a person reads.
func (p *Plan) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A plan of hightide tune: %s.", p.Changes())
	line("# hightide run --plan FILE -- COMMAND applies this file to the unmodified program.")
	line("# L%s.", p.Numbers()[1:])
	if p.Framework() == JAX {
		line("# Its levers are for programs of JAX.")
	}
	line("\nversion = %d", p.Version)
	for _, text := range []struct{ key, value, why string }{{"command", p.Command, ""}, {"gpu", p.GPU, ""},
		{"model", p.Model, "  # the class; a program that trains another one is refused"}} {
		if text.value != "" {
			line("%s = %s%s", text.key, quoted(text.value), text.why)
		}
	}
	if p.Parameters > 0 {
		line("parameters = %d", p.Parameters)
	}
	for _, lever := range All {
		settings, on := p.Levers[lever.Name]
		if !on {
			continue
		}
		line("\n# %s Costs: %s.", lever.Does, lever.Costs)
		line("[levers.%s]", lever.Name)
		if settings.Value != "" {
			line("settings = %s", quoted(settings.Value))
		}
		if settings.Budget > 0 {
			line("budget = %g", settings.Budget)
		}
		if settings.Workers > 0 {
			line("workers = %d", settings.Workers)
		}
		if settings.Parts > 0 {
			line("parts = %d", settings.Parts)
		}
		if settings.Ranks > 0 {
			line("ranks = %d", settings.Ranks)
		}
		if settings.Command != "" {
			line("command = %s", quoted(settings.Command))
		}
		for key, list := range map[string][]string{"blocks": settings.Blocks, "arguments": settings.Arguments} {
			if len(list) > 0 {
				line("%s = [", key)
				for _, name := range list {
					line("  %s,", quoted(name))
				}
				line("]")
			}
		}
	}
	p.figures(line)
	return b.String()
}

// figures are what the imagined run with it took.
func (p *Plan) figures(line func(string, ...any)) {
	f := &p.Planned
	if *f == (Figures{}) {
		return
	}
	line("\n# What the imagined run with this plan took, in bytes.")
	line("[planned]")
	line("peak_allocated_bytes = %d  # %v", int64(f.Allocated), f.Allocated)
	line("peak_reserved_bytes = %d  # %v", int64(f.Reserved), f.Reserved)
	line("device_used_bytes = %d  # %v", int64(f.Used), f.Used)
	if f.Recomputed > 0 {
		line("recomputed_share = %.4f  # of the forward pass's FLOPs", f.Recomputed)
	}
	if f.Host > 0 {
		line("host_bytes = %d  # %v PSS of all processes", int64(f.Host), f.Host)
	}
	if f.Moved > 0 {
		line("offloaded_bytes = %d  # %v a step, over PCIe twice", int64(f.Moved), f.Moved)
	}
}

// quoted is a basic string of TOML: what JSON escapes it escapes the same way.
func quoted(text string) string {
	return strings.NewReplacer(`\x`, `\u00`, `\a`, `\u0007`, `\v`, `\u000b`).Replace(strconv.Quote(text))
}
