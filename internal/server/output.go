package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
)

// Output is a part of what the program of a run wrote to its terminal, with its colours.
type Output struct {
	At   int64  `json:"at" doc:"Where the text begins, in bytes from the start."`
	Next int64  `json:"next" doc:"Where it ends. Bytes that are not UTF-8 are replaced in the text, so its own length does not tell."`
	Text string `json:"text" doc:"What the program printed."`
	Size int64  `json:"size" doc:"Bytes that are there by now."`
}

type outputInput struct {
	RunInput
	From   int64  `query:"from" doc:"In bytes from the start; below 0: from the end."`
	Limit  int    `query:"limit" default:"1048576" minimum:"1" maximum:"16777216" doc:"Bytes, at most."`
	Accept string `header:"Accept" hidden:"true"`
}

func (s *Server) output(api huma.API) {
	kinds := rawJSON[Output](api)
	kinds["text/plain"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	served(api, "/runs/{id}/output", "What the program wrote to its terminal", kinds,
		func(ctx context.Context, in *outputInput) (serving, error) {
			row, err := s.findRun(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			kind := accepted(in.Accept, jsonKind, "text/plain")
			if kind == "" {
				return nil, notAcceptable("text/plain")
			}
			part, err := outputPart(ctx, s.engine, row.ID, in.From, in.Limit)
			return func(_ context.Context, w http.ResponseWriter) {
				if kind == "text/plain" {
					w.Header().Set("Content-Type", "text/plain; charset=utf-8")
					_, _ = io.WriteString(w, part.Text)
					return
				}
				writeJSON(w, part)
			}, err
		})
}

// outputPart reads a part of a run's output, which begins and ends between two characters.
func outputPart(ctx context.Context, e *engine.Engine, id string, from int64, limit int) (*Output, error) {
	all, size, err := seekable(ctx, e, id)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if from < 0 {
		from = max(size+from, 0)
	}
	from = min(from, size)
	text := make([]byte, min(int64(limit), size-from))
	if _, err := all.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	n, err := io.ReadFull(all, text)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text = whole(text[:n])
	return &Output{from, from + int64(len(text)), string(text), size}, nil
}

// seekable opens a run's output, and says how much there is.
func seekable(ctx context.Context, e *engine.Engine, id string) (io.ReadSeekCloser, int64, error) {
	file, err := e.Output(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	all, ok := file.(io.ReadSeekCloser)
	if !ok { // of a store that is in memory
		text, err := io.ReadAll(file)
		file.Close()
		if err != nil {
			return nil, 0, err
		}
		all = inMemory{bytes.NewReader(text)}
	}
	size, err := all.Seek(0, io.SeekEnd)
	if err != nil {
		all.Close()
		return nil, 0, err
	}
	return all, size, nil
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// whole cuts a character off that is not all there yet.
func whole(text []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if last := text[len(text)-back:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-back]
			}
			break
		}
	}
	return text
}

const (
	outputEvery = 100 * time.Millisecond
	outputPiece = 64 << 10 // of one event; what a program writes faster than that is fetched by who wants it
	outputWait  = 3 * time.Second
)

// printed is a piece of output for viewers.
type printed struct {
	At   int64  `json:"at"`
	Next int64  `json:"next"`
	Text string `json:"text"`
}

// followOutput tells viewers what the program prints from now on, where that is kept, until the run has ended.
func (h *hub) followOutput(ctx context.Context, e *engine.Engine) {
	file := waitForOutput(ctx, e, h.id)
	if file == nil {
		return
	}
	defer file.Close()
	at, err := file.Seek(0, io.SeekEnd)
	tick := time.NewTicker(outputEvery)
	defer tick.Stop()
	for err == nil {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		at, err = h.tellOutput(file, at)
		if ended {
			return
		}
	}
}

// tellOutput sends what came since a place, and gives the place behind it.
func (h *hub) tellOutput(file io.ReadSeeker, at int64) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size <= at {
		return at, err
	}
	at = max(at, size-outputPiece)
	text := make([]byte, size-at)
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return at, err
	}
	n, err := io.ReadFull(file, text)
	if text = whole(text[:n]); len(text) > 0 {
		h.mu.Lock()
		h.push(message{h.at, h.at, eventText("output", printed{at, at + int64(len(text)), string(text)}, -1)})
		h.mu.Unlock()
	}
	return at + int64(len(text)), err
}

// waitForOutput opens what is kept of a run's output; nil: nothing is. The file may come a moment after the recording.
func waitForOutput(ctx context.Context, e *engine.Engine, id string) interface {
	io.ReadSeeker
	io.Closer
} {
	for end := time.Now().Add(outputWait); ; {
		file, err := e.Output(ctx, id)
		if all, ok := file.(interface {
			io.ReadSeeker
			io.Closer
		}); err == nil && ok {
			return all
		}
		if err == nil {
			file.Close()
		}
		if ctx.Err() != nil || !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(outputWait / 10):
		}
	}
}
