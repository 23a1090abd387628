//go:build !linux

package launch

import (
	"fmt"
	"os"
	"syscall"

	"hightide/internal/processes/here"
	"hightide/internal/system"
)

// identify refuses what is not a process.
func (t *Target) identify() error {
	start, _, ok := Identity(t.PID)
	if !ok {
		return &NoTarget{Text: fmt.Sprintf("there is no process %d", t.PID),
			Hint: "the system's list of processes tells the number of one"}
	}
	table := here.Table()
	_, err := table.List() // figures are those of a list
	if _, known := table.Figures(t.PID); err != nil || !known {
		return &NoTarget{Denied: true, Text: fmt.Sprintf("process %d may not be looked at", t.PID),
			Hint: "as its user, or as an administrator, it can be recorded"}
	}
	t.StartTicks = start
	return nil
}

// look reads what this user may know of it. Nothing can be brought into it: its environment is not read here.
func (t *Target) look() {
	t.Command = here.Table().Command(t.PID)
	if len(t.Command) == 0 {
		t.Command = []string{fmt.Sprintf("process %d", t.PID)}
	}
	t.Cwd, _ = os.Getwd()
	t.Foreign = "on " + system.Name + " the agent is brought into no process that runs"
}

// gone says whether it has ended.
func (t *Target) gone() bool { return !Alive(t.PID, t.StartTicks) }

// exitStatus is not told to one who is not its parent.
func (t *Target) exitStatus() (status syscall.WaitStatus, known bool) { return status, false }

// processState is R of a process that is there, 0 where it is gone.
func processState(pid int) byte {
	if _, _, ok := Identity(pid); !ok {
		return 0
	}
	return 'R'
}
