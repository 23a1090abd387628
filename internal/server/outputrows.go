package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
	"hightide/internal/system"
	"hightide/internal/terminal"
)

// OutputRows says where the rows of an output are, so that a viewer can ask for those that it shows. Columns have one
// entry a block.
type OutputRows struct {
	Size    int64             `json:"size" doc:"Bytes that are there by now."`
	Seen    int64             `json:"seen" doc:"Bytes whose rows are counted. Where there are more, ask again for the rest."`
	Rows    int64             `json:"rows" doc:"Rows up to there. A progress bar that writes over itself is one."`
	From    int               `json:"from" doc:"The number of the first block told."`
	At      []int64           `json:"at" doc:"Where each block begins, in bytes."`
	Row     []int64           `json:"row" doc:"In which row."`
	Low     []int64           `json:"low" doc:"The first row that it writes to: a program may go back up."`
	High    []int64           `json:"high" doc:"The last row there is at its end."`
	Missing bool              `json:"missing,omitempty" doc:"Nothing is kept of it, so far: hightide run --capture keeps it."`
	Styles  map[string]string `json:"styles" doc:"By the number of a block: the sequences that set the colours it begins with. Without one it has none."`
}

type rowsInput struct {
	RunInput
	From int `query:"from" minimum:"0" doc:"The first block that is wanted. The last may have grown."`
}

func (s *Server) outputRows(api huma.API) {
	get(api, "/runs/{id}/output/rows", "Where the rows of what the program wrote are",
		func(ctx context.Context, in *rowsInput) (*OutputRows, error) {
			row, err := s.findRun(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			rows, err := s.rows.of(ctx, s.engine, row.ID, in.From)
			if errors.Is(err, fs.ErrNotExist) { // an answer as any other: browsers complain of each 404
				return &OutputRows{Missing: true}, nil
			}
			return rows, err
		})
}

const (
	rowsKept = 16       // outputs whose index is kept
	rowsOnce = 64 << 20 // bytes that one request counts at most
)

// outputIndexes are the indexes of outputs that were asked for lately. The zero value is ready.
type outputIndexes struct {
	mu  sync.Mutex
	all []*outputIndex // the one asked for last comes last
}

type outputIndex struct {
	id string
	mu sync.Mutex
	terminal.Index
}

// index finds the one of a run, or begins it.
func (o *outputIndexes) index(id string) *outputIndex {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.IndexFunc(o.all, func(x *outputIndex) bool { return x.id == id })
	found := &outputIndex{id: id}
	if at >= 0 {
		found = o.all[at]
		o.all = slices.Delete(o.all, at, at+1)
	}
	o.all = append(o.all, found)
	o.all = slices.Delete(o.all, 0, max(len(o.all)-rowsKept, 0))
	return found
}

// of counts the rows that came since, and tells of the blocks from a number on.
func (o *outputIndexes) of(ctx context.Context, e *engine.Engine, id string, from int) (*OutputRows, error) {
	file, size, err := seekable(ctx, e, id)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	x := o.index(id)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.Size > size { // another file: what was in the middle may have been left out at its end
		x.Index = terminal.Index{}
	}
	if data, err := system.NextData(file, x.Size); err == nil && data > x.Size { // the middle of a long output is a hole
		x.Skip(data - x.Size)
	}
	if _, err := file.Seek(x.Size, io.SeekStart); err != nil {
		return nil, err
	}
	piece := make([]byte, 256<<10)
	for end := min(size, x.Size+rowsOnce); x.Size < end && ctx.Err() == nil; {
		n, err := file.Read(piece[:min(int64(len(piece)), end-x.Size)])
		_, _ = x.Write(piece[:n])
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	from = min(from, len(x.Blocks))
	told := &OutputRows{Size: size, Seen: x.Size, Rows: x.Rows(), From: from, At: []int64{}, Row: []int64{},
		Low: []int64{}, High: []int64{}, Styles: map[string]string{}}
	for i, b := range x.Blocks[from:] {
		told.At, told.Row, told.Low, told.High = append(told.At, b.At), append(told.Row, b.Row), append(told.Low, b.Low),
			append(told.High, b.High)
		if b.Style != "" {
			told.Styles[strconv.Itoa(from+i)] = b.Style
		}
	}
	return told, ctx.Err()
}
