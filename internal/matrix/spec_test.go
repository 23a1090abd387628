package matrix

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/gpus"
)

func read(t *testing.T, text string) (*Spec, error) {
	t.Helper()
	return ReadSpec("m.yaml", []byte(text), gpus.Builtin())
}

func mustRead(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWrongSpecs: each mistake is told with its place and what may have been meant.
func TestWrongSpecs(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":         {"", "m.yaml:1:1: the file is empty"},
		"comment alone": {"# nothing\n", "m.yaml:1:1: the file is empty"},
		"a list":        {"- a\n", `m.yaml:1:1: the file must be "key: value" pairs`},
		"bracket":       {"axes:\n  a: [1,2\n  b: 3\n", "m.yaml:2:6: no YAML: did not find expected ',' or ']'"},
		"tab":           {"axes:\n\ta: 1\n", "m.yaml:2:1: no YAML: found character that cannot start any token"},
		"indent":        {"axes:\n  a: 1\n b: 2\n", "m.yaml:3:2: no YAML: did not find expected key"},
		"colon": {"axes: {\n  a: 1}\nname: b: c\n",
			"m.yaml:3:8: no YAML: mapping values are not allowed in this context"},
		"anchor": {"axes: *x\n", "m.yaml:1:7: no YAML: unknown anchor 'x' referenced"},
		"two documents": {"axes: {model: lenet}\n---\naxes: {model: lenet}\n",
			"m.yaml:2:1: a second document; a matrix is one"},
		"no axes": {"name: a\n",
			"m.yaml:1:1: there are no axes; write them as axes: {model: [lenet, resnet18], batch: [16, 32]}"},
		"key": {"axis: {model: lenet}\n", `m.yaml:1:1: unknown key "axis"; did you mean "axes"?`},
		"key far off": {"axes: {model: lenet}\nzzzzzzz: 1\n",
			`m.yaml:2:1: unknown key "zzzzzzz"; known: name, axes, labels, include, exclude, repeats, steps, warmup, timeout, memory, seed, stacks, environments, command`},
		"key twice": {"axes: {model: lenet}\nsteps: 1\nsteps: 2\n",
			"m.yaml:3:1: steps is there twice, first in line 2"},
		"axis": {"axes: {model: lenet, framwork: pytorch}\n",
			`m.yaml:1:22: unknown axis "framwork"; did you mean "framework"?`},
		"axis's name": {"axes: {model: lenet, A-1: x}\n",
			`m.yaml:1:22: "A-1" is not a name for an axis: small letters, digits and underscores`},
		"no model": {"axes: {batch: 16}\n", "m.yaml:1:7: there is no axis model; one of " +
			strings.Join(Models, ", ") + ", or module:function"},
		"model": {"axes: {model: [lenet, resnet]}\n",
			`m.yaml:1:23: unknown model "resnet"; did you mean "resnet18"?`},
		"framework": {"axes: {model: lenet, framework: torch}\n",
			`m.yaml:1:33: unknown framework "torch"; did you mean "pytorch"?`},
		"runtime": {"axes: {runtime: onnx, model: net}\n",
			`m.yaml:1:17: unknown runtime "onnx"; did you mean "onnxruntime"?`},
		"runtime and framework": {"axes: {runtime: litert, model: net, framework: jax}\n",
			"m.yaml:1:37: an axis framework and an axis runtime: a file has no framework"},
		"runtime trains": {"axes: {runtime: litert, model: net, mode: [train, inference]}\n",
			"m.yaml:1:37: a runtime trains no model; leave mode out"},
		"runtime's device": {"axes: {runtime: litert, model: net, device: cuda}\n",
			"m.yaml:1:37: a runtime runs on the cpu here; leave device out"},
		"runtime's types": {"axes: {runtime: litert, model: net, dtype: [fp32, int8]}\n",
			"m.yaml:1:37: no model has {dtype} in its name, so all types would be the same file"},
		"int8 of a framework": {"axes: {model: lenet, dtype: int8}\n",
			`m.yaml:1:29: unknown dtype "int8"; known: fp32, bf16, fp16`},
		"device": {"axes: {model: lenet, device: cuba}\n",
			`m.yaml:1:30: unknown device "cuba"; did you mean "cuda"?`},
		"imagined device": {"axes: {model: lenet, device: imagined:a11}\n",
			`m.yaml:1:30: no GPU "a11" in the catalogue; did you mean a10 or a16?`},
		"bare GPU": {"axes: {model: lenet, device: t4}\n",
			`m.yaml:1:30: unknown device "t4"; did you mean "imagined:t4"?`},
		"batch": {"axes: {model: lenet, batch: [16, many]}\n",
			"m.yaml:1:34: batch many is not a whole number above 0"},
		"value twice": {"axes: {model: [lenet, lenet]}\n", "m.yaml:1:23: model lenet is there twice"},
		"one GPU twice": {"axes: {model: lenet, device: [\"imagined:t4\", \"imagined:Tesla T4\"]}\n",
			"m.yaml:1:46: device imagined:t4 is there twice"},
		"no values":       {"axes: {model: []}\n", "m.yaml:1:15: the values of model: there are none"},
		"empty value":     {"axes: {model: }\n", "m.yaml:1:15: model is empty"},
		"value is a list": {"axes: {model: [[lenet]]}\n", "m.yaml:1:16: model must be one word or number"},
		"time without unit": {"axes: {model: lenet}\ntimeout: 120\n",
			"m.yaml:2:10: timeout 120 has no unit; write it as 120s or 120m"},
		"no time": {"axes: {model: lenet}\ntimeout: soon\n",
			"m.yaml:2:10: timeout soon is not a time of a second or more; write it as 90s, 2m or 1h"},
		"size without unit": {"axes: {model: lenet}\nmemory: 8\n",
			`m.yaml:2:9: memory: "8" has no unit; write it as 8MiB or 8GiB`},
		"part without unit": {"axes: {model: lenet}\nrepeats: {most: 5, within: 3}\n",
			"m.yaml:2:28: within 3 has no unit; write it as 3%"},
		"part without limit": {"axes: {model: lenet}\nrepeats: {within: 3%}\n",
			"m.yaml:2:19: within needs a limit to the repeats; say most: 10"},
		"figure": {"axes: {model: lenet}\nrepeats: {figure: pps}\n",
			`m.yaml:2:19: unknown figure "pps"; did you mean "pss"?`},
		"most below least": {"axes: {model: lenet}\nrepeats: {least: 5, most: 3}\n",
			"m.yaml:2:27: most 3 is less than least 5"},
		"repeats": {"axes: {model: lenet}\nrepeats: 0\n",
			"m.yaml:2:10: repeats 0 is not a whole number from 1 to 1000"},
		"excluded value": {"axes: {model: lenet, batch: [16, 32]}\nexclude: [{batch: 33}]\n",
			`m.yaml:2:19: unknown batch "33"; did you mean "32"?`},
		"excluded axis": {"axes: {model: lenet, batch: [16, 32]}\nexclude: [{bach: 16}]\n",
			`m.yaml:2:12: unknown axis "bach"; did you mean "batch"?`},
		"exclude of nothing": {"axes: {model: lenet, batch: [16, 32]}\nexclude: [{batch: 16}, {batch: 16}]\n",
			"m.yaml:2:24: this excludes no cell"},
		"all excluded": {"axes: {model: lenet}\nexclude: [{model: lenet}]\n", "m.yaml:2:10: every cell is excluded"},
		"cells alike": {"axes: {model: lenet, batch: [16, 32]}\ninclude: [{batch: 16}]\n",
			"m.yaml:2:11: the cell model=lenet batch=16 is there already"},
		"included value": {"axes: {model: lenet}\ninclude: [{model: lent}]\n",
			`m.yaml:2:19: unknown model "lent"; did you mean "lenet"?`},
		"label": {"axes: {model: lenet}\nlabels: {model: {lennet: LeNet}}\n",
			`m.yaml:2:18: unknown model "lennet"; did you mean "lenet"?`},
		"environment's axis": {"axes: {model: lenet}\nenvironments: [{when: {modle: lenet}}]\n",
			`m.yaml:2:24: unknown axis "modle"; did you mean "model"?`},
		"environment's key": {"axes: {model: lenet}\nenvironments: [{pyhton: /usr/bin/python3}]\n",
			`m.yaml:2:17: unknown key "pyhton"; did you mean "python"?`},
		"placeholder": {"axes: {batch: [1, 2]}\ncommand: run {batch} {bach}\n",
			`m.yaml:2:22: unknown placeholder {bach}; did you mean "batch"?; {{ and }} stand for braces`},
		"placeholder in list": {"axes: {batch: [1, 2]}\ncommand: [run, \"{batch}\", \"-n{stps}\"]\n",
			`m.yaml:2:30: unknown placeholder {stps}; did you mean "steps"?; {{ and }} stand for braces`},
		"unused axis": {"axes: {batch: [1, 2], size: [1, 2]}\ncommand: run {batch}\n",
			"m.yaml:1:23: the command does not use size; put {size} into it"},
		"shell": {"axes: {batch: [1, 2]}\ncommand: run {batch} | tee log\n",
			`m.yaml:2:10: command: "|" is a shell's; write [sh, -c, "..."], or put it in quotes`},
		"quote": {"axes: {batch: [1, 2]}\ncommand: run {batch} 'x\n",
			"m.yaml:2:10: command: a ' is not closed"},
		"name": {"name: ../x\naxes: {model: lenet}\n",
			`m.yaml:1:7: "../x" is not a name for a matrix: letters, digits, dots, dashes and underscores`},
		"too many": {"axes: {model: lenet, batch: [" + strings.Join(numbers(200), ", ") + "], seq_len: [" +
			strings.Join(numbers(200), ", ") + "]}\n",
			"m.yaml:1:7: that makes 40000 cells; 20000 is the most"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, test.text)
			var typed *fail.Error
			if err == nil || err.Error() != test.want || !errors.As(err, &typed) || typed.Code != fail.ExitBadInput {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i+1))
	}
	return list
}

// TestAllMistakesAtOnce: in the order of the file.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := read(t, "axes: {modl: lenet, batch: x}\nstps: 3\ntimeout: 5\n")
	want := "m.yaml:1:8: unknown axis \"modl\"; did you mean \"model\"?\nm.yaml:1:28: batch x is not a whole number " +
		"above 0\n" +
		"m.yaml:2:1: unknown key \"stps\"; did you mean \"steps\"?\nm.yaml:3:10: timeout 5 has no unit; write it as 5s or 5m"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func keys(cells []Cell) (list []string) {
	for _, c := range cells {
		list = append(list, c.Key)
	}
	return list
}

func TestCells(t *testing.T) {
	s := mustRead(t, `
axes: {framework: [pytorch, tensorflow], model: [lenet, resnet18], batch: &b [16, 32], device: cpu}
labels: {framework: {pytorch: PyTorch}, device: {"imagined:Tesla T4": T4}}
exclude:
  - {framework: tensorflow, model: resnet18}
  - {batch: 32, model: [lenet]}
include:
  - {framework: pytorch, model: lenet, device: "imagined:T4", batch: *b}
`)
	want := []string{
		"framework=pytorch model=lenet batch=16 device=cpu", "framework=pytorch model=resnet18 batch=16 device=cpu",
		"framework=pytorch model=resnet18 batch=32 device=cpu", "framework=tensorflow model=lenet batch=16 device=cpu",
		"framework=pytorch model=lenet batch=16 device=imagined:t4",
		"framework=pytorch model=lenet batch=32 device=imagined:t4",
	}
	if got := keys(s.Cells); !slices.Equal(got, want) {
		t.Errorf("cells\n%s", strings.Join(got, "\n"))
	}
	if a := s.Axes[3]; !slices.Equal(a.Values, []string{"cpu", "imagined:t4"}) ||
		!slices.Equal(a.Labels, []string{"cpu", "T4"}) {
		t.Errorf("%+v", a)
	}
	if l := s.Axes[0].Labels; !slices.Equal(l, []string{"PyTorch", "tensorflow"}) {
		t.Errorf("%q", l)
	}
	if got := s.Arguments(&s.Cells[5], 7); !slices.Equal(got,
		strings.Fields("--steps 10 --warmup 2 --seed 7 --framework pytorch --model lenet --batch 32 --device cuda")) {
		t.Errorf("%q", got)
	}
}

// TestFrameworkIsNotNeeded: the models' program must be told one.
func TestFrameworkIsNotNeeded(t *testing.T) {
	s := mustRead(t, "axes: {model: lenet, seq_len: 64}\nsteps: 3\nwarmup: 1\n")
	if got := s.Arguments(&s.Cells[0], 7); !slices.Equal(got,
		strings.Fields("--steps 3 --warmup 1 --seed 7 --framework pytorch --model lenet --seq-len 64")) {
		t.Errorf("%q", got)
	}
}

func TestOnly(t *testing.T) {
	const text = "axes: {model: [lenet, resnet18], batch: [16, 32, 64]}\n"
	s := mustRead(t, text)
	if err := s.Only([]string{"batch=16,64", "model=lenet"}); err != nil || !slices.Equal(keys(s.Cells), []string{"model=lenet batch=16", "model=lenet batch=64"}) {
		t.Errorf("%v, %q", err, keys(s.Cells))
	}
	for only, want := range map[string]string{
		"batch":    "--only batch is not of the form axis=value",
		"bach=16":  `--only bach=16: unknown axis "bach"; did you mean "batch"?`,
		"batch=65": `--only batch=65: unknown batch "65"; did you mean "64"?`,
	} {
		if err := mustRead(t, text).Only([]string{only}); fail.Code(err) != fail.ExitUsage || err.Error() != want {
			t.Errorf("%s: %v", only, err)
		}
	}
}

// TestCommands: words as a shell takes them, placeholders, environments of cells.
func TestCommands(t *testing.T) {
	s := mustRead(t, `
axes: {batch: [1], torch: ["2.6.0", "2.9.1"], device: "imagined:t4"}
command: python -c "print('{batch} {{x}}')" a\ b '' --device {device} -n{steps} {python} {repeat}
environments:
  - {env: {A: "1", B: ""}}
  - {when: {torch: "2.9.1"}, python: /new/python, env: {A: "2"}}
`)
	got := s.Words(&s.Cells[1], "/new/python", 3, 0)
	if want := []string{"python", "-c", "print('1 {x}')", "a b", "", "--device", "cuda", "-n10", "/new/python", "3"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if e := s.Environment(&s.Cells[1]); e.Python != "/new/python" || e.Env["A"] != "2" {
		t.Errorf("%+v", e)
	}
	if e := s.Environment(&s.Cells[0]); e.Python != "" || e.Env["A"] != "1" {
		t.Errorf("%+v", e)
	}
}

// FuzzReadSpec: a stranger's file gives a spec or errors with places, never both, never a panic.
func FuzzReadSpec(f *testing.F) {
	f.Add("axes: {model: [lenet], batch: [1, 2]}\nrepeats: {least: 1, most: 2, within: 1%}\n")
	f.Add("axes: &a {model: *a}\n")
	f.Add("axes: {a: 1}\ncommand: [x, '{a}', [b]]\nenvironments: [{when: {a: 1}}, 3]\ninclude: [{a: [2, 3]}]\n")
	f.Add("? [a]\n: b\naxes: !!binary x\n")
	catalogue := gpus.Builtin()
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadSpec("m.yaml", []byte(text), catalogue)
		switch {
		case err == nil && (s == nil || len(s.Cells) == 0):
			t.Error("neither")
		case err != nil && s != nil:
			t.Error("both")
		case err != nil && !strings.HasPrefix(err.Error(), "m.yaml:"):
			t.Errorf("no place: %v", err)
		}
	})
}
