package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/diagnose"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/pythons"
	"hightide/internal/report"
)

// infoOptions of info.
type infoOptions struct {
	python, json string
	calibrate    bool
}

func infoCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "info",
		Short: "What this machine has and what hightide can observe on it",
		Long: `What this machine has (host, limits, GPUs, Pythons and their frameworks) and what hightide can
observe on it, with the reason where it cannot. Nothing is recorded.

No framework is imported: versions come from the packages' metadata.

With --calibrate: measure the NVIDIA cards of this machine, as rows for your own catalogue of GPUs
(hightide gpus). It takes a PyTorch with CUDA and some seconds; nothing else should use the cards.
This measurement has not been tested on hardware yet.

Exit codes: 0, also where something cannot be observed; 2 wrong usage; with --calibrate 4 where there
is no card.`,
		Example: `  hightide info
  hightide info --json | jq .host
  hightide info --python ~/venvs/train/bin/python
  hightide info --calibrate >> ~/.config/hightide/gpus.toml`,
		Args: cobra.NoArgs,
	}, &infoOptions{})
}

func (o *infoOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.python, "python", "", "`interpreter` to prefer over those found")
	flags.BoolVar(&o.calibrate, "calibrate", false, "measure the cards of this machine")
	olderFlags(flags, "all that is known of all GPUs is shown", "device=", "detailed")
	jsonFlag(flags, &o.json)
}

func (o *infoOptions) run(a *app, c *cobra.Command, _ []string) error {
	if !o.calibrate {
		info := diagnose.Look(c.Context(), a.engine(), o.python)
		return a.show(o.json, info, func() error { return printInfo(a.stdout, info) })
	}
	found, err := gpus.Calibrate(c.Context(), o.python)
	if err != nil {
		return err
	}
	return a.show(o.json, found, func() error {
		_, err := fmt.Fprint(a.stdout, found.TOML())
		return err
	})
}

// page writes aligned lines, in colour on a terminal.
type page struct {
	out    io.Writer
	colour bool
	width  int // columns; 0: lines are not broken
	err    error
}

const (
	infoLabel   = 18 // columns of the names on the left
	narrowest   = 60
	widestLines = 110
)

func newPage(out io.Writer) *page {
	o := textOptions(out)
	if o.Width < narrowest {
		return &page{out: out}
	}
	return &page{out: out, colour: o.Color, width: min(o.Width, widestLines)}
}

func (p *page) paint(code, text string) string {
	return report.TextOptions{Color: p.colour}.Paint(code, text)
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// entry writes a mark, a name and a text that continues under itself.
func (p *page) entry(mark, name, text, code string) {
	indent := strings.Repeat(" ", infoLabel+2)
	lines := report.Wrap(text, p.width-infoLabel-2)
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, line := range lines {
		if i == 0 {
			pad := strings.Repeat(" ", max(1, infoLabel-utf8.RuneCountInString(name)))
			p.printf("%s %s%s%s\n", mark, p.paint("1", name), pad, p.paint(code, line))
			continue
		}
		p.printf("%s%s\n", indent, p.paint(code, line))
	}
}

func printInfo(out io.Writer, info *diagnose.Info) error {
	p := newPage(out)
	p.printf("%s %s\n\n", p.paint("1", "hightide"), info.Hightide)
	h := info.Host
	p.entry(" ", "host", strings.Join(nonempty(h.Name, h.OS, prefixed("kernel ", h.Kernel)), " · "), "")
	p.entry(" ", "processor", strings.Join(nonempty(h.CPU, fmt.Sprintf("%d usable", h.CPUs)), " · "), "")
	p.entry(" ", "memory", memoryLine(info), "")
	if len(h.GPUs) == 0 {
		p.entry(" ", "GPUs", "none", "2")
	}
	for i, gpu := range h.GPUs {
		p.entry(" ", []string{"GPUs", ""}[min(i, 1)], gpuLine(gpu), "")
	}
	printPythons(p, info.Pythons)
	p.printf("\n%s\n", p.paint("1", "What hightide observes here"))
	for _, a := range info.Abilities {
		mark := map[diagnose.Can]string{diagnose.Yes: p.paint("32", "✓"), diagnose.Partly: p.paint("33", "◐"),
			diagnose.No: p.paint("31", "✗")}[a.Can]
		p.entry(mark, a.Name, a.Text, map[bool]string{true: "2"}[a.Can == diagnose.No])
		if a.Hint != "" {
			p.entry(" ", "", "→ "+a.Hint, "36")
		}
	}
	return p.err
}

func memoryLine(info *diagnose.Info) string {
	var parts []string
	if bytes, ok := info.Host.Memory.Get(); ok {
		parts = append(parts, mem.Bytes(bytes).String())
	}
	if bytes, ok := info.Host.Limit.Get(); ok {
		parts = append(parts, "control group allows "+mem.Bytes(bytes).String())
	}
	if free, ok := info.Data.Free.Get(); ok {
		parts = append(parts, mem.Bytes(free).String()+" of disk for recordings")
	}
	return strings.Join(parts, " · ")
}

func gpuLine(gpu mem.GPU) string {
	size := ""
	if bytes, ok := gpu.Memory.Get(); ok {
		size = mem.Bytes(bytes).String()
	}
	return strings.Join(nonempty(gpu.Name, size, prefixed("driver ", gpu.Driver)), " · ")
}

func printPythons(p *page, list []pythons.Interpreter) {
	if len(list) == 0 {
		p.entry(" ", "Python", "none found", "2")
	}
	for i, python := range list {
		text := strings.Join(nonempty(python.Version, frameworkList(python), python.Path, python.Problem), " · ")
		name, code := []string{"Python", ""}[min(i, 1)], "2"
		if python.Chosen {
			code = ""
			if len(list) > 1 {
				text += " (the one used where no command names one)"
			}
		}
		p.entry(" ", name, text, code)
	}
}

// frameworkList names the frameworks, in the order in which people see them everywhere.
func frameworkList(python pythons.Interpreter) string {
	var names []string
	for name := range python.Frameworks {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(frameworks.Rank(a), frameworks.Rank(b)), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = name + " " + python.Frameworks[name]
		if name == frameworks.Torch && python.CUDA != "" {
			names[i] += " (CUDA " + python.CUDA + ")"
		}
	}
	return strings.Join(names, ", ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func nonempty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
