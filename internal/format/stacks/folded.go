package stacks

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// folding makes a frame safe for the format, whose separators are semicolons and the last space.
var folding = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// WriteFolded writes "outermost;…;innermost value", one line a stack that has one, for flamegraph.pl and its kin.
func WriteFolded(out io.Writer, p *mem.Profile) error {
	sums := map[string]int64{}
	for _, s := range p.Samples {
		if s.Values[p.Default] == 0 {
			continue
		}
		frames := p.Stacks.Frames(s.Stack)
		names := make([]string, 0, len(frames))
		for _, l := range slices.Backward(frames) {
			names = append(names, folding.Replace(frameName(l)))
		}
		if len(names) == 0 {
			names = []string{"(no stack recorded)"}
		}
		sums[strings.Join(names, ";")] += s.Values[p.Default]
	}
	w := bufio.NewWriter(out)
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		if _, err := fmt.Fprintf(w, "%s %d\n", stack, sums[stack]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// frameName is one line for a location: function, file and line.
func frameName(l mem.Location) string {
	switch {
	case l.File == "" || l.File == "??":
		return cmp.Or(l.Function, "(unknown)")
	case l.Line == 0:
		return cmp.Or(l.Function, "(unknown)") + " (" + l.File + ")"
	}
	return fmt.Sprintf("%s (%s:%d)", cmp.Or(l.Function, "(unknown)"), l.File, l.Line)
}
