package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/matrix"
	"hightide/internal/store"
)

// resumable says each time that it runs. Where a file "hold" is there it waits in a child of its own, which no signal
// to it reaches.
const resumable = `
axes: {n: [1, 2, 3], what: [ok, fails]}
exclude: [{n: 3, what: fails}]
repeats: 2
seed: 7
command:
  - sh
  - -c
  - 'echo {n} {what} {repeat} >> ran; if [ -e hold ]; then sleep 1000 & echo $! > held; wait; fi; [ {what} = ok ]'
`

// benchTable is what a matrix's result says of each trial, without what differs from run to run.
func benchTable(t *testing.T, text []byte) (table []string, runs []string) {
	t.Helper()
	r, err := matrix.ReadJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, trial := range r.Trials {
		table = append(table, fmt.Sprintf("%s #%d: %s %s", trial.Cell, trial.Repeat, trial.State, trial.Reason))
		runs = append(runs, trial.Run)
	}
	return table, runs
}

// TestBenchGoesOnAfterKills is of a matrix that is killed while trials run and between two, and interrupted, and
// whose journal ends in half a line. It ends with the same table as one that was left alone: no trial twice, none
// lost, no recording of half a trial, and nothing that runs on.
func TestBenchGoesOnAfterKills(t *testing.T) {
	left := newSession(t)
	write(t, left.dir, "m.yaml", resumable)
	out, err := left.command("bench", "m.yaml", "--json", "--quiet").Output()
	if status, ok := err.(*exec.ExitError); !ok || status.ExitCode() != exitCellFailed {
		t.Fatalf("%v, want exit code 1: cells fail", err)
	}
	want, _ := benchTable(t, out)

	s := newSession(t)
	write(t, s.dir, "m.yaml", resumable)
	ran := func() int {
		text, _ := os.ReadFile(filepath.Join(s.dir, "ran"))
		return bytes.Count(text, []byte("\n"))
	}
	journal := filepath.Join(s.dir, "data", "matrices", "m", "journal.jsonl")
	kept := func() int {
		text, _ := os.ReadFile(journal)
		return bytes.Count(text, []byte(`"trial":`))
	}
	held := 0
	for name, moment := range []func() bool{
		func() bool { return ran() >= 1 },
		func() bool { return kept() >= 2 },
		func() bool { // while a trial waits in a child
			write(t, s.dir, "hold", "")
			text, _ := os.ReadFile(filepath.Join(s.dir, "held"))
			held, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			return held > 0
		},
		func() bool { return kept() >= 5 },
		func() bool { return kept() >= 6 },
	} {
		c := s.command("bench", "m.yaml")
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, moment)
		switch name {
		case 3: // Ctrl-C
			_ = c.Process.Signal(os.Interrupt)
			if _ = c.Wait(); !strings.Contains(said.String(), "measured; to go on: hightide bench m.yaml") {
				t.Errorf("interrupted it says %q", said.String())
			}
			continue
		case 2:
			_ = os.Remove(filepath.Join(s.dir, "hold"))
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, `{"trial":{"cell":"n=1 wh`)
	file.Close()

	out, _ = s.command("bench", "m.yaml", "--json", "--quiet", "--resume").Output()
	got, runs := benchTable(t, out)
	if !slices.Equal(got, want) {
		t.Errorf("after kills\n%s\nand left alone\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	out, err = s.command("ls", "--json", "--tag", "matrix=m").Output()
	var list struct{ Runs []store.Run }
	if err != nil || json.Unmarshal(out, &list) != nil || len(list.Runs) != len(runs) {
		t.Errorf("%d runs for %d trials, %v", len(list.Runs), len(runs), err)
	}
	for _, run := range list.Runs {
		if !slices.Contains(runs, run.ID) {
			t.Errorf("run %s is of no trial: %v", run.ID, run.Tags)
		}
	}
	waitFor(t, func() bool { return gone(held) })
}

// gone says whether a process has ended, whoever is to ask for its end.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(text, []byte(") Z "))
}
