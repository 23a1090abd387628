package tui

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"hightide/internal/launch"
	"hightide/internal/system"

	tea "charm.land/bubbletea/v2"
)

// What job control does to views. Before the process is stopped the terminal is given back as it was. When the
// process goes on in the foreground it is taken again. In the background there are no views.
//
//	hightide top         SIGTSTP ───────────▶ askStopSelf ─┐
// ├─▶ terminal as it was ──▶ stopped … goes on ──▶ foreground ──▶ views
//	hightide run --live  the program stops ──▶ Stopping ───┘

// jobSignals is where the terminal and the signals of this process stand.
type jobSignals struct {
	caught chan os.Signal
	away   atomic.Bool   // the terminal is given back
	ended  chan struct{} // closed where everything ended meanwhile
}

// away is a time without views, for bubbletea the run of another program.
type away func()

func (a away) Run() error        { a(); return nil }
func (away) SetStdin(io.Reader)  {}
func (away) SetStdout(io.Writer) {}
func (away) SetStderr(io.Writer) {}

const (
	backEvery = 100 * time.Millisecond // looks whether the job is in the foreground again: a shell does not tell
	settles   = 20 * time.Millisecond  // what a signal to ourselves may take
)

// away gives the terminal back while something is waited for, and takes it again in the foreground. Where everything
// ends meanwhile it never does: the terminal is another's by then, and Run returns without it.
func (d *doer) away(wait func()) tea.Cmd {
	return tea.Exec(away(func() {
		d.jobs.away.Store(true)
		defer d.jobs.away.Store(false)
		wait()
		time.Sleep(settles)
		for d.ctx.Err() == nil && !foreground(d.options.Out) {
			select {
			case <-d.ctx.Done():
			case <-time.After(backEvery):
			}
		}
		if d.ctx.Err() != nil {
			close(d.jobs.ended)
			select {}
		}
	}), nil)
}

// foreground says whether the terminal talks to our process group.
func foreground(screen *os.File) bool {
	return system.InForeground(screen)
}

// stop does what job control asks for.
func (d *doer) stop(a ask) tea.Cmd {
	switch a := a.(type) {
	case askStopJob:
		return func() tea.Msg { _ = system.Kill(0, system.SIGTSTP); return nil }
	case askStopSelf:
		return d.away(launch.StopByTerminal)
	case askTerminal:
		return d.away(func() {})
	case askAway:
		return d.away(func() {
			close(a.of.Gone)
			select {
			case <-a.of.Back:
			case <-d.ctx.Done():
			}
		})
	}
	return nil
}

// catch begins to catch what is sent to this process: of run --live only SIGCONT, for the others are the program's. What
// was ignored when this process began stays ignored.
func (d *doer) catch() {
	wanted := []os.Signal{system.SIGCONT}
	if d.options.Launch == nil {
		wanted = append(wanted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, system.SIGTSTP)
	}
	for _, s := range wanted {
		if !signal.Ignored(s) {
			signal.Notify(d.jobs.caught, s)
		}
	}
}

// signals does what was sent to this process asks for, until the views are left.
func (d *doer) signals() {
	defer signal.Stop(d.jobs.caught)
	for {
		select {
		case <-d.ctx.Done():
			return
		case s := <-d.jobs.caught:
			switch s {
			case system.SIGTSTP:
				d.send(stopWanted{})
			case system.SIGCONT:
				if !d.jobs.away.Load() {
					d.send(continued{})
				}
			default:
				d.send(tea.Quit())
			}
		}
	}
}
