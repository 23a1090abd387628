package psutil

import (
	"encoding/binary"
	"os"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/processes"
)

// TestLibproc reads answers of macOS' libproc, written after the structs of its headers: nobody recorded one.
func TestLibproc(t *testing.T) {
	task := make([]byte, taskInfoBytes)
	binary.LittleEndian.PutUint64(task[8:], 5<<20)
	binary.LittleEndian.PutUint32(task[atFaults:], 1000)
	binary.LittleEndian.PutUint32(task[atPageins:], 10)
	usage := make([]byte, rusageBytes)
	for word := 2; word < rusageBytes/8; word++ { // behind the 16 bytes of the identifier each says where it stands
		binary.LittleEndian.PutUint64(usage[8*word:], uint64(word))
	}
	binary.LittleEndian.PutUint64(usage[atFootprint:], 7<<20)
	var f processes.Figures
	addTaskInfo(&f, task)
	addRusage(&f, usage)
	want := processes.Figures{MinorFaults: mem.Some(990), MajorFaults: mem.Some(10), Private: mem.Some(7 << 20)}
	if f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	binary.LittleEndian.PutUint32(task[atFaults:], 1<<31) // it wrapped
	for _, answers := range [][2][]byte{{nil, nil}, {task, usage[:80]}, {task[:60], make([]byte, rusageBytes)}} {
		f = processes.Figures{}
		addTaskInfo(&f, answers[0])
		addRusage(&f, answers[1])
		if f != (processes.Figures{}) {
			t.Errorf("of %d and %d bytes %+v is known", len(answers[0]), len(answers[1]), f)
		}
	}
}

// TestTable: this very process is in the table, and one that there is not is absent, not 0.
func TestTable(t *testing.T) {
	table := &Table{}
	self, ok := processes.Find(table, os.Getpid())
	if !ok || self.Parent != os.Getppid() || self.Start == 0 {
		t.Fatalf("%+v, %v", self, ok)
	}
	if f, ok := table.Figures(self.PID); !ok || f.RSS <= 0 || f.Threads.Or(0) <= 0 || !f.CPU.Known() {
		t.Errorf("%+v, %v", f, ok)
	}
	if f, ok := table.Figures(1 << 30); ok {
		t.Errorf("of no process: %+v", f)
	}
	if m := table.Memory(); m.Total.Or(0) <= m.Available.Or(0) || m.Available.Or(0) <= 0 {
		t.Errorf("memory %+v", m)
	}
}
