// Package tui is hightide top: the machine, its runs and what they hold, on a terminal.
//
// engine.Machine, Runs, Follow ──▶ messages.go ──▶ update (update.go, keys.go) ──▶ State ──▶ Frame (tabs.go, one file
// a tab)
//
//	                                                     │ asks                                 │
//	engine.Report, Explain, Signal … ◀── effects.go ◀────┘             plain.go: --once ◀───────┘
//
// State is one value. update changes it and says what to ask for; views make lines of it for a width and a height.
// Both are free of files, clocks and terminals, so that a test is a state and the frame that it makes. effects.go
// alone asks the engine. To add a view: a file, and a line in tabs.go; its keys are in the list of keys.go. Start
// reading at State.
package tui

import (
	"context"
	"errors"
	"os"
	"time"

	"hightide/internal/engine"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Options of Run and Once.
type Options struct {
	Engine *engine.Engine
	Every  time.Duration // between looks at the machine; 0: a second
	Ref    string        // a file or a run to walk through; "": none
	Filter string

	In, Out *os.File
	Color   bool // the terminal wants colours
	ASCII   bool // it can show nothing else
	Console bool // it is the kernel's own, whose fonts have few signs beside ASCII
	Mouse   bool // clicks and the wheel are ours; text is then selected with Shift

	Launch *Launch // of run --live; nil: hightide top
}

// Launch is a program that hightide runs while it is watched.
type Launch struct {
	Messages  <-chan any // Began, Said, Wrote, Stopping
	Interrupt func()     // what Ctrl-C does
	Resized   func(columns, rows int)
}

// framesPerSecond is how often the screen is drawn at most.
const framesPerSecond = 20

// Run shows the views until they are left.
func Run(ctx context.Context, o Options) error {
	state, err := o.state(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &doer{ctx: ctx, options: &o, jobs: jobSignals{caught: make(chan os.Signal, 8), ended: make(chan struct{})}}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler()}
	if !o.Color {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	program := tea.NewProgram(&model{state, d}, options...)
	d.send = program.Send
	d.catch() // before there is a view to look after
	go d.signals()
	go d.machine()
	go d.runs()
	if o.Launch != nil {
		go d.launch(o.Launch)
	}
	shown := make(chan error, 1)
	go func() {
		_, err := program.Run()
		shown <- err
	}()
	select {
	case err = <-shown:
	case <-d.jobs.ended:
		err = ctx.Err()
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// state is how the views begin. A reference that means nothing is an error before anything is drawn.
func (o *Options) state(ctx context.Context) (*State, error) {
	s := NewState()
	s.Filter, s.DataDir, s.Launching = o.Filter, o.Engine.Dir(), o.Launch != nil
	if s.Launching {
		s.Tab = s.tabCount() - 1
	}
	if o.Ref == "" {
		return s, nil
	}
	s.Tab = numberOf("Heap")
	if info, err := os.Stat(o.Ref); err == nil && !info.IsDir() {
		s.Heap.ref = o.Ref
		return s, nil
	}
	run, err := o.Engine.Resolve(ctx, o.Ref)
	if err != nil {
		return nil, err
	}
	s.Run = run.ID
	return s, nil
}

// model is State as bubbletea wants it.
type model struct {
	state *State
	doer  *doer
}

func (m *model) Init() tea.Cmd {
	return tea.Batch(m.doer.all(m.state.refresh())...)
}

func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	if size, ok := message.(tea.WindowSizeMsg); ok {
		m.doer.resized(size)
	}
	return m, tea.Batch(m.doer.all(update(m.state, message))...)
}

func (m *model) View() tea.View {
	frame := m.state.Frame()
	switch {
	case m.doer.options.ASCII:
		frame = asciiOnly.Replace(frame)
	case m.doer.options.Console:
		frame = consoleOnly.Replace(frame)
	}
	v := tea.NewView(frame)
	v.AltScreen = true
	if m.doer.options.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
