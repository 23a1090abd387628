package fit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"hightide/internal/mem"
)

// Ready is the first line of a worker: what it will measure, and with what.
type Ready struct {
	Model       string            `json:"model,omitempty" doc:"The name of the model; absent: it is a command."`
	Description string            `json:"description,omitempty" doc:"What it is, for people."`
	Parameters  mem.Optional      `json:"parameters,omitzero" doc:"How many parameters it has."`
	Versions    map[string]string `json:"versions,omitempty" doc:"Versions by package."`
	Python      string            `json:"python,omitempty" doc:"The interpreter."`
	Device      string            `json:"device,omitempty" doc:"The device as the framework calls it."`
	Built       string            `json:"arch_list,omitempty" doc:"What its build has kernels for, as sm_80 sm_90."`
	CUDA        string            `json:"cuda,omitempty" doc:"The CUDA version that it was built with."`
	Problem     string            `json:"problem,omitempty" doc:"Why nothing can be measured."`
	Hint        string            `json:"hint,omitempty" doc:"What to do about that."`
}

// EventName implements event.Event.
func (Ready) EventName() string { return "ready" }

// Worker is the other end of a line protocol: it writes a Ready line, then answers each Ask with one
// Trial line, until its input ends. All lines are JSON.
type Worker struct {
	Ready Ready

	to   io.Writer
	from *bufio.Scanner
}

// Ask is one request to a worker.
type Ask struct {
	Batch   int  `json:"batch"`
	Forward bool `json:"forward_only,omitempty"` // no backward pass, for a comparison
}

// answer is a Trial, or an error that is none of memory.
type answer struct {
	Trial
	Error string `json:"error"`
}

// ErrWorker is a worker that could not start or that ended in the middle.
var ErrWorker = errors.New("the trials' process ended")

const longestLine = 1 << 20

// NewWorker reads the greeting of a worker.
func NewWorker(to io.Writer, from io.Reader) (*Worker, error) {
	w := &Worker{to: to, from: bufio.NewScanner(from)}
	w.from.Buffer(make([]byte, 0, 4096), longestLine)
	return w, w.readAnswer(&w.Ready)
}

// TrialError is a trial that failed for another reason than memory: the search makes no sense then.
type TrialError struct{ Text string }

func (e *TrialError) Error() string { return e.Text }

// Try has the worker run one trial.
func (w *Worker) Try(ask Ask, label mem.Label) (Trial, error) {
	text, err := json.Marshal(ask)
	if err != nil {
		return Trial{}, err
	}
	if _, err := w.to.Write(append(text, '\n')); err != nil {
		return Trial{}, fmt.Errorf("%w: %w", ErrWorker, err)
	}
	var got answer
	if err := w.readAnswer(&got); err != nil {
		return Trial{}, err
	}
	if got.Error != "" {
		return Trial{}, &TrialError{strings.TrimSpace(got.Error)}
	}
	if got.Batch != ask.Batch {
		return Trial{}, fmt.Errorf("worker answered for batch %d, asked was %d", got.Batch, ask.Batch)
	}
	got.Label = label
	return got.Trial, nil
}

func (w *Worker) readAnswer(into any) error {
	if !w.from.Scan() {
		if err := w.from.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrWorker, err)
		}
		return ErrWorker
	}
	if err := json.Unmarshal(w.from.Bytes(), into); err != nil {
		return fmt.Errorf("a worker's line is not an answer: %w", err)
	}
	return nil
}
