package launch

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"hightide/internal/system"
)

// witness is a process in the command's group that blocks every signal (src/witness.c). A signal that came to
// it as well was sent to the whole group, so that the command has its own. Nothing else tells that from one that was
// sent to us alone.
type witness struct {
	pid         int
	ask, answer *os.File

	mutex sync.Mutex
	last  map[syscall.Signal]time.Time // that came to the group
}

const (
	witnessPatience = time.Second // for an answer: it may be stopped, as may we
	// a sender that signals us and then the group, as timeout does, means one thing
	oneSending = 250 * time.Millisecond
)

// startWitness returns nil where there can be none: a build without it, a system that lets no program run from memory.
func startWitness() *witness {
	image, err := built.ReadFile(folder + "hightide-witness")
	if err != nil {
		return nil
	}
	program, err := system.MemoryFile("hightide-witness", image)
	if err != nil {
		return nil
	}
	defer program.Close()
	stdin, ask, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer stdin.Close()
	answer, stdout, err := os.Pipe()
	if err != nil {
		ask.Close()
		return nil
	}
	defer stdout.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		defer null.Close()
		w := &witness{ask: ask, answer: answer, last: map[syscall.Signal]time.Time{}}
		// Fd makes them wait when they are read, as the program expects
		files := []uintptr{stdin.Fd(), stdout.Fd(), null.Fd()}
		path := fmt.Sprintf("/proc/self/fd/%d", program.Fd())
		if w.pid, err = start(path, []string{"hightide-witness"}, &syscall.ProcAttr{Dir: "/", Files: files}); err == nil {
			return w
		}
	}
	ask.Close()
	answer.Close()
	return nil
}

// saw says whether a signal that came to us came to the whole group; known is false where the witness cannot tell.
func (w *witness) saw(s syscall.Signal) (group, known bool) {
	if w == nil {
		return false, false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pid == 0 {
		return false, false
	}
	var said [1]byte
	_ = w.ask.SetWriteDeadline(time.Now().Add(witnessPatience))
	_ = w.answer.SetReadDeadline(time.Now().Add(witnessPatience))
	_, err := w.ask.Write([]byte{byte(s)})
	if err == nil {
		_, err = w.answer.Read(said[:])
	}
	if err != nil { // it was killed, or hit before it had blocked its signals
		status := w.wait()
		group = status.Signaled() && status.Signal() == s
		return group, group
	}
	if said[0] == 'y' {
		w.last[s] = time.Now()
	}
	return time.Since(w.last[s]) < oneSending, true
}

// forget has the next of a signal be another sending.
func (w *witness) forget(s syscall.Signal) {
	if w != nil {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.last, s)
	}
}

// end lets go of the witness.
func (w *witness) end() {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pid != 0 {
		w.wait()
	}
}

// wait ends the witness if it still runs, and takes its status; the mutex is held.
func (w *witness) wait() (status syscall.WaitStatus) {
	w.ask.Close()
	w.answer.Close()
	ended := false
	if status, ended = endedAlready(w.pid); !ended { // it may be stopped, where closing its input does nothing
		_ = system.Kill(w.pid, syscall.SIGKILL)
		status = waitForEnd(w.pid)
	}
	w.pid = 0
	return status
}
