package levers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/words"

	"github.com/pelletier/go-toml/v2"
)

// largest is more than any plan has, of thousands of blocks too.
const largest = mem.MiB

// Setting is the plan of a use case that applies one.
func Setting(to *string) options.Setting {
	return options.Setting{Name: "plan", Help: "`file` of a plan that hightide tune wrote: its changes are made in the program",
		To: to, Check: named, Once: "one plan at a time", Not: options.CommandOnly, Why: "it names a file that is read"}
}

// named refuses a file without a name, as of a variable that is not set: the program would train without its plan.
func named(path string) error {
	if path == "" {
		return fail.Usage("as in --plan "+File, "--plan names no file")
	}
	return nil
}

// Read reads a plan file.
func Read(path string) (*Plan, error) {
	text, err := content(path)
	if err != nil {
		return nil, err
	}
	p := &Plan{file: path}
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fail.Input("hightide about tune describes the file", "%s%w", path, where(err))
	}
	switch {
	case p.Version == 0:
		return nil, fail.Input("hightide tune writes one, which begins with version = 1", "%s says no version of a plan", path)
	case p.Version != Version:
		return nil, fail.Input("this hightide reads version 1", "%s: version %d of a plan is not known", path, p.Version)
	}
	return p, p.check()
}

func content(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Unread("hightide tune writes one", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(largest)+1))
	switch {
	case err != nil:
		return nil, fail.Unread("hightide tune writes one", err)
	case len(text) > int(largest):
		return nil, fail.Input("hightide tune writes one", "%s has more than %v, which is no plan", path, largest)
	}
	return text, nil
}

// where is an error of the reader with its line.
func where(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf(":%d: unknown key %s", row, strings.Join(strict.Errors[0].Key(), "."))
	}
	var fault *toml.DecodeError
	if !errors.As(err, &fault) {
		return fmt.Errorf(": %w", err)
	}
	row, _ := fault.Position()
	text, mistyped := strings.CutPrefix(fault.Error(), "toml: cannot decode TOML ")
	if key := fault.Key(); mistyped && len(key) > 0 {
		kind, _, _ := strings.Cut(text, " into ")
		return fmt.Errorf(":%d: %s has to be %s, and is of the type %s", row, strings.Join(key, "."), kindOf(key), kind)
	}
	return fmt.Errorf(":%d: %w", row, err)
}

// kindOf is what the file has to have at a key.
func kindOf(key []string) string {
	const whole, number = "a whole number", "a number"
	last := key[len(key)-1]
	switch {
	case last == "levers" || last == "planned":
		return "a table"
	case len(key) == 2 && key[0] == "levers":
		return "a table, as [levers." + last + "]"
	case key[0] == "planned":
		return cmp.Or(map[string]string{"recomputed_share": number}[last], whole)
	}
	return cmp.Or(map[string]string{"version": whole, "parameters": whole, "parts": whole, "ranks": whole,
		"workers": whole, "budget": number,
		"blocks": "a list of names in quotes", "arguments": "a list of functions in quotes"}[last], "a text in quotes")
}

// check refuses levers and settings that nobody knows.
func (p *Plan) check() error {
	var names []string
	for _, lever := range All {
		names = append(names, lever.Name)
	}
	for name, settings := range p.Levers {
		said := fmt.Errorf("%s: unknown lever %s", p.file, name)
		if near := words.Near(name, names); near != "" {
			said = fmt.Errorf("%w; did you mean %s?", said, near)
		}
		budgeted := settings.Budget != 0 // not a number is one that is not 0
		switch {
		case Find(name) == nil:
			return fail.Input("one of "+strings.Join(names, ", "), "%w", said)
		case (name == Checkpoint) != (len(settings.Blocks) > 0), slices.Contains(settings.Blocks, ""):
			return fail.Input("as in [levers.checkpoint] with blocks = [\"h.0\"]",
				"%s: blocks belong to the lever checkpoint, which needs them", p.file)
		case (name == Allocator) != (settings.Value != ""):
			return fail.Input("as in [levers.allocator] with settings = \"expandable_segments:True\"",
				"%s: settings belong to the lever allocator, which needs them", p.file)
		case (name == Budget) != budgeted, budgeted && !(0 < settings.Budget && settings.Budget < 1):
			return fail.Input("as in [levers.compile_budget] with budget = 0.5",
				"%s: a budget belongs to the lever compile_budget, which needs one above 0 and below 1", p.file)
		case (name == Workers) != (settings.Workers != 0), settings.Workers < 0:
			return fail.Input("as in [levers.loader_workers] with workers = 2",
				"%s: workers belong to the lever loader_workers, which needs one or more", p.file)
		case (name == Parts || name == Words) != (settings.Parts != 0), settings.Parts < 0, settings.Parts == 1:
			return fail.Input("as in [levers.micro_batch] with parts = 2",
				"%s: parts belong to the levers micro_batch and accumulation, which need two or more", p.file)
		case (name == Spread) != (settings.Ranks != 0), settings.Ranks < 0, settings.Ranks == 1:
			return fail.Input("as in [levers.fsdp] with ranks = 2",
				"%s: ranks belong to the lever fsdp, which needs two or more", p.file)
		case (name == Donate) != (len(settings.Arguments) > 0), slices.ContainsFunc(settings.Arguments, notDonated):
			return fail.Input("as in [levers.donate] with arguments = [\"step(params, state) at train.py:18\"]",
				"%s: arguments belong to the lever donate, which needs them", p.file)
		case name != Words && settings.Command != "":
			return fail.Input("as in [levers.accumulation] with parts = 2", "%s: a command belongs to the lever accumulation", p.file)
		}
	}
	for _, first := range slices.Sorted(maps.Keys(apart)) {
		if i := slices.IndexFunc(apart[first], p.has); i >= 0 && p.has(first) {
			return fail.Input("leave one of them out", "%s: the levers %s and %s do not go together", p.file, first,
				apart[first][i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Levers)) {
		if !Find(name).For(p.Framework()) {
			return fail.Input("leave out those of PyTorch or those of JAX", "%s: its levers are of two frameworks", p.file)
		}
	}
	if _, err := (allocator.Rules{}).Parse(p.Levers[Allocator].Value); err != nil {
		return fail.Input("as in [levers.allocator] with settings = \"expandable_segments:True\"", "%s: %w", p.file, err)
	}
	f := p.Planned
	if p.Parameters < 0 || min(f.Allocated, f.Reserved, f.Used, f.Moved, f.Host) < 0 || !(f.Recomputed >= 0) {
		return fail.Input("hightide tune writes them", "%s: parameters and planned figures cannot be below 0", p.file)
	}
	return nil
}

var donated = regexp.MustCompile(`^[^(]+\([^()]+\) at .+:\d+$`)

func notDonated(text string) bool { return !donated.MatchString(text) }

// Alone refuses a run that is started by a program with a plan: that plan would be applied in part, or not at all.
func Alone(env []string) error {
	for _, variable := range env {
		if text, is := strings.CutPrefix(variable, Variable+"="); is && text != "" {
			return fail.Usage("give --plan to this run alone",
				"this run is within a run with a plan, which would not reach its program")
		}
	}
	return nil
}
