package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/frameworks"

	"go.yaml.in/yaml/v3"
)

// The placeholders of a command beside its axes.
var otherPlaces = []string{"python", "steps", "warmup", "repeat", "seed"}

// placeholder finds {name}; {{ and }} stand for braces.
var placeholder = regexp.MustCompile(`\{\{|\}\}|\{([^{}]*)\}`)

func usage(format string, args ...any) error {
	return fail.Usage("as in --only framework=pytorch --only batch=16,32", format, args...)
}

func orKnown(word string, known []string) string {
	if said := near(word, known); said != "" {
		return said
	}
	return "; known: " + strings.Join(known, ", ")
}

// command is a list of words, or one line that is split as a shell does, without a shell's other powers.
func (r *reader) command(n *node) []string {
	if n == nil {
		return nil
	}
	var list []string
	if n.isScalar() {
		if text := r.scalar(n, "command"); text != "" {
			var problem string
			if list, problem = splitCommand(text); problem != "" {
				r.fail(n, "command: %s", problem)
			}
		}
	} else {
		for _, word := range r.list(n, "command") {
			if !word.isScalar() {
				r.fail(word, "a word of the command must be one")
				continue
			}
			list = append(list, word.Value)
		}
	}
	if len(list) == 0 && len(r.problems) == 0 {
		r.fail(n, "the command is empty")
	}
	return list
}

// splitCommand takes a line apart at spaces, with quotes and backslashes as a shell has them.
func splitCommand(line string) (list []string, problem string) {
	var word strings.Builder
	quote, inside := rune(0), false
	escaped := false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, inside = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inside = c, true
		case c == ' ' || c == '\t':
			if inside {
				list = append(list, word.String())
				word.Reset()
			}
			inside = false
		case strings.ContainsRune("|&;<>()$`", c):
			return nil, fmt.Sprintf("%q is a shell's; write [sh, -c, \"...\"], or put it in quotes", string(c))
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Sprintf("a %c is not closed", quote)
	case escaped:
		return nil, "nothing follows the last \\"
	}
	if inside {
		list = append(list, word.String())
	}
	return list, ""
}

// placeholders refuses those that nothing stands for, at their own place where the line is written plainly.
func (s *Spec) placeholders(r *reader, n *node) {
	if n == nil || len(s.Command) == 0 {
		return
	}
	known := append(s.axisNames(), otherPlaces...)
	for _, part := range n.items() {
		for _, match := range placeholder.FindAllStringSubmatchIndex(part.Value, -1) {
			if match[2] < 0 {
				continue
			}
			name := part.Value[match[2]:match[3]]
			if slices.Contains(known, name) {
				continue
			}
			column := part.Column
			if part.Style == 0 || part.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 &&
				!strings.ContainsAny(part.Value, "\\'\"") {
				column += len([]rune(part.Value[:match[0]]))
				if part.Style != 0 {
					column++
				}
			}
			r.at(part.Line, column, "unknown placeholder {%s}%s", name, orKnown(name, known)+"; {{ and }} stand for braces")
		}
	}
}

// Words is the command of a cell's trial, with a value for each placeholder.
func (s *Spec) Words(cell *Cell, python string, repeat int, seed uint64) []string {
	values := map[string]string{"python": python, "steps": strconv.Itoa(s.Steps), "warmup": strconv.Itoa(s.Warmup),
		"repeat": strconv.Itoa(repeat), "seed": strconv.FormatUint(seed, 10)}
	for i, axis := range s.Axes {
		values[axis.Name] = cell.Values[i]
	}
	if strings.HasPrefix(values[AxisDevice], DeviceImagined) {
		values[AxisDevice] = DeviceCUDA // as the program calls it
	}
	list := make([]string, len(s.Command))
	for i, word := range s.Command {
		list[i] = placeholder.ReplaceAllStringFunc(word, func(found string) string {
			switch found {
			case "{{":
				return "{"
			case "}}":
				return "}"
			}
			return values[found[1:len(found)-1]]
		})
	}
	return list
}

// Arguments are what the built-in models are told of a cell.
func (s *Spec) Arguments(cell *Cell, seed uint64) []string {
	args := []string{"--steps", strconv.Itoa(s.Steps), "--warmup", strconv.Itoa(s.Warmup), "--seed",
		strconv.FormatUint(seed, 10)}
	if s.axis(AxisFramework) < 0 && !s.files {
		args = append(args, "--framework", Frameworks[0])
	}
	for i, axis := range s.Axes {
		value := cell.Values[i]
		if axis.Name == AxisDevice && strings.HasPrefix(value, DeviceImagined) {
			value = DeviceCUDA
		}
		if slices.Contains(modelAxes, axis.Name) {
			args = append(args, "--"+strings.ReplaceAll(axis.Name, "_", "-"), value)
		}
	}
	return args
}

// What the built-in workloads know. They are a Python program of the agent's; a test holds these lists equal to its
// own.
var (
	Frameworks = frameworks.Benched()
	Models     = []string{"lenet", "resnet18", "transformer6", "transformer6-base"}
	Modes      = []string{"train", "inference"}
	DTypes     = []string{"fp32", "bf16", "fp16"}
	Runtimes   = frameworks.Runtimes()
	FileDTypes = append(slices.Clone(DTypes), "int8", "int4")
)

// WorkloadScript is that program, below the folder that the agent is unpacked in.
const WorkloadScript = "hightide/_workload/main.py"

// CannotRunHere is the exit code by which it says that a framework, a device or a type is not there. The last line of
// its own on standard error says which.
const CannotRunHere = 3
