package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatCannotBePreloaded: programs of another C library, or of none, are told by their file.
func TestWhatCannotBePreloaded(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "p.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		flags      []string
	}{
		{"glibc", "", nil},
		{"static", "statically", []string{"-static"}},
		{"musl", "", []string{"-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := filepath.Join(dir, test.name)
			if out, err := exec.Command("gcc", append(test.flags, "-o", program, source)...).CombinedOutput(); err != nil {
				t.Skipf("gcc cannot make such a program here: %s", out)
			}
			script := filepath.Join(dir, test.name+".sh")
			if err := os.WriteFile(script, []byte("#!"+program+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{program, script} {
				found, err := Find(path, []string{"PATH=/bin"})
				got := found.Refuse
				if err != nil || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
					t.Errorf("%s: %q, %v; want %q in it", path, got, err, test.want)
				}
			}
		})
	}
}

// TestScriptThatIsNoProgram: who writes a script as it lies there is told how it is run.
func TestScriptThatIsNoProgram(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"train.py": "python " + filepath.Join(dir, "train.py"), "tool": "chmod +x"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("print(1)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Find(path, nil)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != 126 || !strings.Contains(refused.Hint, want) {
			t.Errorf("%s: %v, %+v; want a hint with %q", name, err, refused, want)
		}
	}
}
