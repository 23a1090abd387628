package mem

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestCommandLine: a shell reads the words again as they were.
func TestCommandLine(t *testing.T) {
	for _, words := range [][]string{
		{"python", "train.py", "--lr=0.1", "/tmp/a-b_c.py"}, {"a b", "", "it's", `"`, "$HOME", "*", "a\nb", "x;y", "ü", "!",
			"{a,b}", "#"},
	} {
		out, err := exec.Command("sh", "-c", "printf '%s\\0' "+CommandLine(words)).Output()
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, words) {
			t.Errorf("%q came back as %q, %v", words, got, err)
		}
	}
	if got := CommandLine([]string{"python", "-c", "print(1)"}); got != "python -c 'print(1)'" {
		t.Error(got)
	}
	if got := CommandLine([]string{"run", "--token", Masked}); got != "run --token ***" {
		t.Error(got)
	}
}

// TestProgram: a command begins with its script, whatever runs it.
func TestProgram(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/python3 -u -X dev /home/mia/train.py --lr 3": "train.py --lr 3",
		"python3.12 -m torch.distributed.run train.py":         "torch.distributed.run train.py",
		"/usr/bin/python -c pass":                              "python -c pass",
		"/opt/bin/torchrun --nproc-per-node 2 /src/train.py":   "torchrun --nproc-per-node 2 /src/train.py",
		"python": "python",
	} {
		if got := strings.Join(Program(strings.Fields(line)), " "); got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
	if got := Program(nil); len(got) != 0 {
		t.Error(got)
	}
}
