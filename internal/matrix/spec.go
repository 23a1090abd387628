package matrix

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/words"
)

// Spec is what a matrix is asked for: a YAML file, read and checked.
type Spec struct {
	File    string // as the user named it
	Text    string
	Name    string
	Axes    []Axis
	Cells   []Cell
	Command []string // with {placeholders}; empty: the built-in models
	Goal    Goal
	Steps   int
	Warmup  int
	Timeout time.Duration
	Memory  mem.Bytes // that cells beside each other may take; 0: what is free
	Seed    mem.Optional
	Stacks  bool // sample the host heap with Python stacks

	Environments []Environment
	catalogue    *gpus.Catalogue
	commanded    bool // there is a command, if a wrong one
	files        bool // models are files that runtimes run
}

// Environment is what cells run in, beside what all do.
type Environment struct {
	When   map[string][]string // of each axis one of these values; empty: every cell
	Python string              // an interpreter; "": none is named
	Env    map[string]string
}

// The axes that built-in models know.
const (
	AxisFramework = "framework"
	AxisModel     = "model"
	AxisBatch     = "batch"
	AxisMode      = "mode"
	AxisDevice    = "device"
	AxisDType     = "dtype"
	AxisSeqLen    = "seq_len"
	AxisRuntime   = "runtime" // what runs files, which the axis model then names
)

var modelAxes = []string{AxisFramework, AxisModel, AxisBatch, AxisMode, AxisDevice, AxisDType, AxisSeqLen,
	AxisRuntime}

// The devices. An imagined one is DeviceImagined and the name of a GPU.
const (
	DeviceCPU      = "cpu"
	DeviceCUDA     = "cuda"
	DeviceImagined = "imagined:"
)

// Limits of a file.
const (
	mostCells   = 20_000
	mostRepeats = 1000
	mostSteps   = 1_000_000
)

// Defaults of a spec.
const (
	defaultSteps   = 10
	defaultWarmup  = 2
	defaultTimeout = 10 * time.Minute
)

var (
	specKeys = []string{"name", "axes", "labels", "include", "exclude", "repeats", "steps", "warmup", "timeout",
		"memory", "seed", "stacks", "environments", "command"}
	repeatKeys      = []string{"least", "most", "figure", "within"}
	environmentKeys = []string{"when", "python", "env"}

	axisName   = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	matrixName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	modelPlace = regexp.MustCompile(`^[A-Za-z_][\w./-]*:[A-Za-z_][\w.]*$`) // module:function
)

// ReadSpec reads a spec. An error names every place that is wrong, as file:line:column, and what may have been meant.
func ReadSpec(file string, text []byte, catalogue *gpus.Catalogue) (*Spec, error) {
	r := &reader{file: file}
	s := &Spec{File: file, Text: string(text), Goal: Goal{Figure: RSS, Least: 3, Most: 3}, Steps: defaultSteps,
		Warmup: defaultWarmup, Stacks: true,
		Timeout: defaultTimeout, catalogue: catalogue, Name: nameOf(file)}
	root := r.document(text)
	if root != nil {
		s.readFile(r, root)
	}
	if len(r.problems) > 0 {
		return nil, fail.Input("hightide bench --help shows such a file; nothing was started", "%w", r.error())
	}
	return s, nil
}

// nameOf is the name of a matrix whose file says none.
func nameOf(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// CheckName says why a word cannot name a matrix, which is a folder too; "": it can.
func CheckName(name string) string {
	switch {
	case !matrixName.MatchString(name) || len(name) > 100:
		return fmt.Sprintf("%q is not a name for a matrix: letters, digits, dots, dashes and underscores", name)
	case name == "last":
		return `"last" means the newest run, whatever it is called`
	}
	return ""
}

// readFile takes in the whole file. What needs the axes comes after them, wherever it stands.
func (s *Spec) readFile(r *reader, root *node) {
	parts := r.mapping(root, "the file", specKeys)
	if parts["axes"] == nil {
		if len(r.problems) == 0 {
			r.fail(root, "there are no axes; write them as axes: {model: [lenet, resnet18], batch: [16, 32]}")
		}
		return
	}
	if n := parts["name"]; n != nil {
		if s.Name = r.scalar(n, "name"); s.Name != "" {
			if problem := CheckName(s.Name); problem != "" {
				r.fail(n, "%s", problem)
			}
		}
	} else if problem := CheckName(s.Name); problem != "" {
		r.fail(root, "the file's own name, by which the matrix goes, cannot name one; say name: seed")
	}
	s.commanded = parts["command"] != nil
	s.Command = r.command(parts["command"])
	s.axes(r, parts["axes"])
	s.numbers(r, parts)
	s.repeats(r, parts["repeats"])
	s.environments(r, parts["environments"])
	s.cells(r, parts["axes"], parts["include"], parts["exclude"])
	s.labels(r, parts["labels"])
	s.placeholders(r, parts["command"])
	s.unused(r, parts["axes"])
}

func (s *Spec) axes(r *reader, n *node) {
	s.files = !s.commanded && n.findKey(AxisRuntime) != nil
	for _, entry := range r.entries(n, "axes") {
		name := entry.key.Value
		switch {
		case !axisName.MatchString(name):
			r.fail(entry.key, "%q is not a name for an axis: small letters, digits and underscores", name)
			continue
		case !s.commanded && !slices.Contains(modelAxes, name) && !s.inEnvironments(n, name):
			r.unknown(entry.key, "axis", name, modelAxes)
			continue
		}
		axis := Axis{Name: name}
		for _, value := range r.scalars(entry.value, "the values of "+name) {
			text := s.value(r, name, value)
			switch {
			case text == "":
			case slices.Contains(axis.Values, text):
				r.fail(value, "%s %s is there twice", name, text)
			default:
				axis.Values = append(axis.Values, text)
			}
		}
		s.Axes = append(s.Axes, axis)
	}
	if !s.commanded && len(r.problems) == 0 && s.axis(AxisModel) < 0 {
		what := "one of " + strings.Join(Models, ", ") + ", or module:function"
		if s.files {
			what = "files, as [nets/small-{dtype}.onnx]"
		}
		r.fail(n, "there is no axis model; %s", what)
	}
	s.asFiles(r, n)
}

// asFiles refuses what makes no sense of files: what they are, they say themselves.
func (s *Spec) asFiles(r *reader, n *node) {
	if !s.files || len(r.problems) > 0 {
		return
	}
	for _, entry := range r.entries(n, "axes") {
		axis := s.Axes[s.axis(entry.key.Value)]
		switch {
		case axis.Name == AxisFramework:
			r.fail(entry.key, "an axis framework and an axis runtime: a file has no framework")
		case axis.Name == AxisMode && slices.Contains(axis.Values, "train"):
			r.fail(entry.key, "a runtime trains no model; leave mode out")
		case axis.Name == AxisDevice && !slices.Equal(axis.Values, []string{DeviceCPU}):
			r.fail(entry.key, "a runtime runs on the cpu here; leave device out")
		case axis.Name == AxisDType && !s.namedBy("{dtype}"):
			r.fail(entry.key, "no model has {dtype} in its name, so all types would be the same file")
		}
	}
}

// namedBy says whether a placeholder is in the name of a model's file.
func (s *Spec) namedBy(place string) bool {
	return slices.ContainsFunc(s.Axes[s.axis(AxisModel)].Values, func(v string) bool { return strings.Contains(v, place) })
}

// inEnvironments says whether an environment chooses by that axis: "torch: [2.6.0, 2.9.1]" is a name for interpreters.
func (s *Spec) inEnvironments(axes *node, name string) bool {
	return slices.ContainsFunc(axes.root.findKey("environments").items(),
		func(env *node) bool { return env.findKey("when").findKey(name) != nil })
}

func (s *Spec) axis(name string) int {
	return slices.IndexFunc(s.Axes, func(a Axis) bool { return a.Name == name })
}

// value checks one value of an axis; "" where it is none.
func (s *Spec) value(r *reader, axis string, n *node) string {
	text := r.scalar(n, axis)
	if text == "" {
		return ""
	}
	if axis == AxisDevice {
		return s.device(r, n, text)
	}
	if s.commanded || s.files && axis == AxisModel {
		return text
	}
	switch axis {
	case AxisRuntime:
		return r.oneOf(n, axis, text, Runtimes)
	case AxisFramework:
		return r.oneOf(n, axis, text, Frameworks)
	case AxisModel:
		if modelPlace.MatchString(text) {
			return text
		}
		return r.oneOf(n, axis, text, Models)
	case AxisMode:
		return r.oneOf(n, axis, text, Modes)
	case AxisDType:
		if s.files {
			return r.oneOf(n, axis, text, FileDTypes)
		}
		return r.oneOf(n, axis, text, DTypes)
	case AxisBatch, AxisSeqLen:
		if number, err := strconv.Atoi(text); err != nil || number < 1 || number > 1<<30 {
			r.fail(n, "%s %s is not a whole number above 0", axis, text)
			return ""
		}
	}
	return text
}

// device checks the name of one, and gives an imagined GPU the name that the catalogue has for it.
func (s *Spec) device(r *reader, n *node, text string) string {
	name, imagined := strings.CutPrefix(text, DeviceImagined)
	switch {
	case text == DeviceCPU || text == DeviceCUDA:
		return text
	case imagined:
		gpu, err := s.catalogue.Imaginable(name)
		if err != nil {
			r.fail(n, "%v", err)
			return ""
		}
		return DeviceImagined + gpu.Slug
	}
	if text == "gpu" {
		r.fail(n, "unknown device %q; did you mean %q, or an imagined one as %q?", text, DeviceCUDA, DeviceImagined+"a10")
		return ""
	}
	if gpu, err := s.catalogue.Imaginable(text); err == nil {
		r.fail(n, "unknown device %q; did you mean %q?", text, DeviceImagined+gpu.Slug)
		return ""
	}
	r.unknown(n, "device", text, []string{DeviceCPU, DeviceCUDA, "imagined:a10"})
	return ""
}

func (s *Spec) numbers(r *reader, parts map[string]*node) {
	s.Steps = r.whole(parts["steps"], "steps", 1, mostSteps, s.Steps)
	s.Warmup = r.whole(parts["warmup"], "warmup", 0, mostSteps, s.Warmup)
	if parts["seed"] != nil {
		s.Seed = mem.Some(int64(r.whole(parts["seed"], "seed", 0, math.MaxInt, 0)))
	}
	if n := parts["stacks"]; n != nil {
		s.Stacks = r.oneOf(n, "stacks", r.scalar(n, "stacks"), []string{"true", "false"}) != "false"
	}
	s.timeout(r, parts["timeout"])
	s.memory(r, parts["memory"])
}

func (s *Spec) timeout(r *reader, n *node) {
	if n != nil {
		text := r.scalar(n, "timeout")
		d, err := time.ParseDuration(text)
		switch _, number := strconv.ParseFloat(text, 64); {
		case text == "":
		case number == nil:
			r.fail(n, "timeout %s has no unit; write it as %ss or %sm", text, text, text)
		case err != nil || d < time.Second:
			r.fail(n, "timeout %s is not a time of a second or more; write it as 90s, 2m or 1h", text)
		default:
			s.Timeout = d
		}
	}
}

// memory that trials beside each other may take.
func (s *Spec) memory(r *reader, n *node) {
	if n != nil {
		if text := r.scalar(n, "memory"); text != "" {
			bytes, err := mem.ParseBytes(text)
			switch {
			case err != nil:
				r.fail(n, "memory: %v", err)
			case bytes < mem.MiB:
				r.fail(n, "memory %s is less than any program takes", text)
			}
			s.Memory = bytes
		}
	}
}

func (s *Spec) repeats(r *reader, n *node) {
	if n == nil {
		return
	}
	if n.isScalar() {
		s.Goal.Least = r.whole(n, "repeats", 1, mostRepeats, 3)
		s.Goal.Most = s.Goal.Least
		return
	}
	parts := r.mapping(n, "repeats", repeatKeys)
	s.Goal.Least = r.whole(parts["least"], "least", 1, mostRepeats, s.Goal.Least)
	s.Goal.Most = r.whole(parts["most"], "most", 1, mostRepeats, max(s.Goal.Least, s.Goal.Most))
	if s.Goal.Most < s.Goal.Least {
		r.fail(parts["most"], "most %d is less than least %d", s.Goal.Most, s.Goal.Least)
	}
	if f := parts["figure"]; f != nil {
		s.Goal.Figure = Figure(r.oneOf(f, "figure", r.scalar(f, "figure"), figureNames()))
	}
	if w := parts["within"]; w != nil {
		text := r.scalar(w, "within")
		number, percent := strings.CutSuffix(text, "%")
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch {
		case text == "":
		case err == nil && !percent:
			r.fail(w, "within %s has no unit; write it as %s%%", text, text)
		case err != nil || !(value > 0 && value <= 100):
			r.fail(w, "within %s is not a share of the mean; write it as 3%%", text)
		case s.Goal.Least == s.Goal.Most && parts["most"] == nil:
			r.fail(w, "within needs a limit to the repeats; say most: 10")
		}
		s.Goal.Within = value / 100
	}
}

func (s *Spec) environments(r *reader, n *node) {
	for _, one := range r.list(n, "environments") {
		parts := r.mapping(one, "an environment", environmentKeys)
		env := Environment{When: map[string][]string{}, Env: map[string]string{}}
		for _, entry := range r.entries(parts["when"], "when") {
			env.When[entry.key.Value] = s.known(r, entry)
		}
		if p := parts["python"]; p != nil {
			env.Python = r.scalar(p, "python")
		}
		for _, entry := range r.entries(parts["env"], "env") {
			env.Env[entry.key.Value] = r.text(entry.value, entry.key.Value)
		}
		s.Environments = append(s.Environments, env)
	}
}

// known are values of an axis as include, exclude and when name them.
func (s *Spec) known(r *reader, entry entry) []string {
	name := entry.key.Value
	at := s.axis(name)
	if at < 0 {
		r.unknown(entry.key, "axis", name, s.axisNames())
		return nil
	}
	var list []string
	for _, n := range r.scalars(entry.value, "the values of "+name) {
		text := s.alias(name, r.scalar(n, name))
		switch {
		case text == "":
		case !slices.Contains(s.Axes[at].Values, text) && !s.included(n.root, name, text):
			r.unknown(n, name, text, s.Axes[at].Values)
		default:
			list = append(list, text)
		}
	}
	return list
}

// included says whether an include adds that value to an axis.
func (s *Spec) included(root *node, axis, text string) bool {
	for _, one := range root.findKey("include").items() {
		if slices.ContainsFunc(one.findKey(axis).items(), func(n *node) bool { return s.alias(axis, n.Value) == text }) {
			return true
		}
	}
	return false
}

// alias is a value by the name that the axis has for it: of an imagined GPU there are several.
func (s *Spec) alias(axis, text string) string {
	if name, imagined := strings.CutPrefix(text, DeviceImagined); imagined && axis == AxisDevice {
		if gpu, err := s.catalogue.Imaginable(name); err == nil {
			return DeviceImagined + gpu.Slug
		}
	}
	return text
}

func (s *Spec) axisNames() (names []string) {
	for _, axis := range s.Axes {
		names = append(names, axis.Name)
	}
	return names
}

func (s *Spec) labels(r *reader, n *node) {
	for _, entry := range r.entries(n, "labels") {
		at := s.axis(entry.key.Value)
		if at < 0 {
			r.unknown(entry.key, "axis", entry.key.Value, s.axisNames())
			continue
		}
		axis := &s.Axes[at]
		axis.Labels = slices.Clone(axis.Values)
		for _, label := range r.entries(entry.value, "the labels of "+axis.Name) {
			i := slices.Index(axis.Values, s.alias(axis.Name, label.key.Value))
			if i < 0 {
				r.unknown(label.key, axis.Name, label.key.Value, axis.Values)
				continue
			}
			axis.Labels[i] = r.scalar(label.value, label.key.Value)
		}
	}
}

// unused refuses an axis that changes nothing: its cells would be the same measurement under different names.
func (s *Spec) unused(r *reader, axes *node) {
	if !s.commanded || len(r.problems) > 0 {
		return
	}
	for _, entry := range r.entries(axes, "axes") {
		name := entry.key.Value
		used := name == AxisDevice || slices.ContainsFunc(s.Command,
			func(word string) bool { return strings.Contains(word, "{"+name+"}") })
		for _, env := range s.Environments {
			_, chooses := env.When[name]
			used = used || chooses
		}
		if !used {
			r.fail(entry.key, "the command does not use %s; put {%s} into it", name, name)
		}
	}
}

// near is what a word may have meant, in words; "" where nothing is near.
func near(word string, known []string) string {
	var longer []string // of which it is the beginning
	for _, one := range known {
		if len(word) > 1 && strings.HasPrefix(one, word) {
			longer = append(longer, one)
		}
	}
	best := words.Nearest(word, known)
	switch d := words.Distance(word, best); {
	case len(longer) == 1:
		best = longer[0]
	case best == "" || d > max(2, len(best)/3) || d >= len(word):
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
