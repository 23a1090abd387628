package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// Since hands on the frames that a run's recording holds from a place on, 0 for all, as far as it is written, and says
// from where to go on next time. Unlike Follow it does not wait, and does not have the run write more often. Only an id finds
// the run.
func (e *Engine) Since(ctx context.Context, id string, from int64, take func(mem.Frame)) (next int64, err error) {
	return inStore(ctx, e, func(s store.Store) (int64, error) {
		file, err := s.Open(id, store.Recording)
		if errors.Is(err, fs.ErrNotExist) {
			return from, &store.Error{Kind: store.ErrNotFound, Text: fmt.Sprintf("there is no run %s", id), Hint: "hightide ls lists the runs"}
		}
		if err != nil {
			return from, err
		}
		defer file.Close()
		data, size, err := extent(file)
		if err != nil {
			return from, err
		}
		tail := wire.NewTail(data, from)
		for ctx.Err() == nil {
			batch, err := tail.Next(size)
			if err != nil {
				return from, notEnd(err)
			}
			for _, frame := range batch.Frames {
				take(frame)
			}
			from = batch.Next
		}
		return from, ctx.Err()
	})
}

// extent is the content of a recording, and how much of it there is now.
func extent(file io.Reader) (io.ReaderAt, int64, error) {
	if file, ok := file.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		return file, info.Size(), nil
	}
	data, err := io.ReadAll(file)
	return bytes.NewReader(data), int64(len(data)), err
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Keep is a folder of this user's alone for what a front door keeps beside the recordings; it is made where it is not there.
func (e *Engine) Keep(name string) (string, error) {
	dir := filepath.Join(e.Folder(), name)
	err := os.MkdirAll(e.Folder(), 0o700)
	if err == nil {
		err = launch.MakePrivate(dir)
	}
	if err != nil {
		return "", fail.Environment("use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA", "keep %s: %w", name, err)
	}
	return dir, nil
}
