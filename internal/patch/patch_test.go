package patch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const program = `import torch
from model import Net

model = Net()
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=1e-3,
)
a = f()
b = g(x)
one
two
three
four
five
six
seven
eight = h(1, k=2)`

func insert(line int, text string) Edit {
	return Edit{File: "train.py", Line: line, EndLine: line, Text: text}
}

var edits = []Edit{
	{File: "train.py", Line: 18, Column: 15, EndLine: 18, EndColumn: 16, Text: "30"},
	{File: "train.py", Line: 7, Column: 11, EndLine: 7, EndColumn: 11, Text: "foreach=False", Keyword: true},
	{File: "train.py", Line: 9, Column: 6, EndLine: 9, EndColumn: 6, Text: "first=1", Keyword: true},
	{File: "train.py", Line: 9, Column: 6, EndLine: 9, EndColumn: 6, Text: "second=2", Keyword: true},
	{File: "train.py", Line: 10, Column: 7, EndLine: 10, EndColumn: 7, Text: "y=ü", Keyword: true},
	insert(1, "import os\n"), insert(1, "import functools\n"), insert(1, "import os\n"),
	insert(5, "for b in model:\n    b.x = 1\n"),
}

const want = `import os
import functools
import torch
from model import Net

model = Net()
for b in model:
    b.x = 1
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=1e-3, foreach=False,
)
a = f(first=1, second=2)
b = g(x, y=ü)
one
two
three
four
five
six
seven
eight = h(1, k=30)`

// TestPatch: edits change what they say, and git and patch make the same of the diff, also of files with the line ends
// of Windows, or one line.
func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		edits         []Edit
	}{
		"whole":   {program, want, edits},
		"newline": {program + "\n", want + "\n", edits},
		"windows": {strings.ReplaceAll(program, "\n", "\r\n"), strings.ReplaceAll(want, "\n", "\r\n"), edits},
		"one":     {"x()", "import os\nx()", []Edit{insert(1, "import os\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New("sub/train.py", test.before, test.edits)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.After(); got != test.after {
				t.Fatalf("got\n%s", got)
			}
			for _, tool := range [][]string{{"git", "apply", "-"}, {"patch", "-p1", "--binary"}} {
				applied(t, tool, test.before, f.Unified(), test.after)
			}
		})
	}
}

func applied(t *testing.T, tool []string, before, diff, after string) {
	t.Helper()
	path, err := exec.LookPath(tool[0])
	if err != nil {
		t.Logf("%s is not installed", tool[0])
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sub", "train.py")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, tool[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", tool, said, diff)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != after {
		t.Errorf("%v made\n%s\n%v", tool, got, err)
	}
}

// TestOverlap: two changes of the same text, or of text that is not there, are an error.
func TestOverlap(t *testing.T) {
	for _, edits := range [][]Edit{
		{{Line: 1, Column: 0, EndLine: 1, EndColumn: 6, Text: "a"}, {Line: 1, Column: 3, EndLine: 1, EndColumn: 8, Text: "b"}},
		{{Line: 19, EndLine: 19}}, {{Line: 1, EndLine: 1, EndColumn: 999}}, {{Line: 0, EndLine: 0}},
	} {
		if f, err := New("train.py", program, edits); err == nil {
			t.Errorf("%+v gives\n%s", edits, f.After())
		}
	}
}
