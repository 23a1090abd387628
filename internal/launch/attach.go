package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Attach takes a process that runs already for a Child. It is never sent a signal, and what this process is sent that
// ends one is for this process alone: it comes on Ending. The kernel tells the process's end; how it ended it tells to
// its own user, before its parent asks, and to all from Linux 6.15 on.
func (t *Target) Attach(r *Runtime) *Child {
	c := &Child{PID: t.PID, Stranger: true, done: make(chan struct{})}
	if r.PassSignals {
		c.Ending, c.Others = make(chan os.Signal, 8), make(chan os.Signal, 1)
		for _, one := range append([]os.Signal{syscall.SIGHUP}, ending...) {
			if !signal.Ignored(one) {
				signal.Notify(c.Ending, one)
			}
		}
	}
	changes := make(chan Change, 1)
	c.Changes = changes
	watch := *t // the descriptor is the watcher's from here on
	t.pidfd = -1
	go watch.await(changes, c.done)
	return c
}

// lookEvery is the time between two looks at a process whose end the kernel does not tell.
const lookEvery = 100 * time.Millisecond

// await closes changes once the process has ended, with how, where that is known. It ends with done too.
func (t *Target) await(changes chan<- Change, done <-chan struct{}) {
	defer t.Close()
	if !t.ends(done) {
		return
	}
	if status, ok := t.exitStatus(); ok {
		changes <- Change{Status: status}
	}
	close(changes)
}

// ends waits for the end of the process; false: for no longer than until done.
func (t *Target) ends(done <-chan struct{}) bool {
	if t.pidfd < 0 {
		return t.looksGone(done)
	}
	woken, wake, err := os.Pipe()
	if err != nil {
		return t.looksGone(done)
	}
	defer woken.Close()
	go func() {
		<-done
		wake.Close()
	}()
	gone, err := awaitEnd(t.pidfd, woken)
	if err != nil {
		return t.looksGone(done)
	}
	return gone
}

func (t *Target) looksGone(done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		case <-time.After(lookEvery):
		}
		if t.gone() {
			return true
		}
	}
}
