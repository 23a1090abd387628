package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTerminal drives hightide through a pseudo-terminal with a job-control shell: Ctrl-C, Ctrl-Z,
// fg, the status line. The cases are in testdata/terminal/terminal.py.
func TestTerminal(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("job control is tested with bash, which is not here")
	}
	for _, name := range []string{"interrupt", "interrupt_default", "stop", "ignores_stop", "status_line",
		"status_line_in_background", "terminal_is_the_programs", "plan_runs_what_is_there"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(pythonPath(t), filepath.Join("testdata", "terminal", "terminal.py"), name)
			c.Env = append(os.Environ(), "HIGHTIDE_DATA="+t.TempDir())
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
