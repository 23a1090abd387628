package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/matrix"
)

// MatrixRow is a matrix in a list. Times are ns since 1970.
type MatrixRow struct {
	Name    string               `json:"name" doc:"The name of the matrix."`
	Start   int64                `json:"start_ns" doc:"When it was begun, in ns since 1970."`
	Changed int64                `json:"changed_ns" doc:"When a trial was last kept, in ns since 1970."`
	Axes    []matrix.Axis        `json:"axes" doc:"What its cells differ in."`
	Cells   int                  `json:"cells" doc:"How many combinations there are."`
	Trials  int                  `json:"trials" doc:"How many trials were kept."`
	States  map[matrix.State]int `json:"states" doc:"How many cells there are by what became of them; under the empty name, those that were not tried yet."`
	Running bool                 `json:"running" doc:"Whether it is being measured now."`
	Problem string               `json:"problem,omitempty" doc:"Why its journal cannot be read; absent: it can."`
}

// Matrices are those that were begun, the one that changed last first.
func Matrices(ctx context.Context, e *engine.Engine) ([]MatrixRow, error) {
	if err := e.Unread(); err != nil {
		return nil, err
	}
	folders, err := os.ReadDir(filepath.Join(e.Folder(), "matrices"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Environment("may the data directory be read?", "list the matrices: %w", err)
	}
	rows := []MatrixRow{}
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := folder.Name()
		if !folder.IsDir() || matrix.CheckName(name) != "" {
			continue
		}
		row := MatrixRow{Name: name, Axes: []matrix.Axis{}}
		if kept, err := kept(e, name); err != nil {
			row.Problem = err.Error()
		} else {
			r := kept.Result
			row.Start, row.Changed, row.Running = r.StartWall, kept.Changed, kept.Running
			row.Axes, row.Cells, row.Trials, row.States = r.Axes, len(r.Cells), len(r.Trials), r.States()
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b MatrixRow) int {
		return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Name, b.Name))
	})
	return rows, nil
}

// MatrixPage is a matrix as the matrix page reads it (web/src/matrix), and whether it is being measured.
type MatrixPage struct {
	Name    string          `json:"name" doc:"The name of the matrix."`
	Changed int64           `json:"changed_ns" doc:"When it last changed, in ns since 1970."`
	Running bool            `json:"running" doc:"Whether it is being measured now."`
	Page    json.RawMessage `json:"page" doc:"What its page draws: the axes, cells and figures as far as they were measured."`
}

// Matrix is a matrix as far as it was measured, compared. link gives a run's page an address; nil: it has none.
func Matrix(ctx context.Context, e *engine.Engine, name string, link func(run string) string) (*MatrixPage, error) {
	kept, comparison, err := compared(ctx, e, name)
	if err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, t := range kept.Result.Trials {
		if t.Run != "" && link != nil {
			links[t.Run] = link(t.Run)
		}
	}
	page, err := matrix.PageJSON(kept.Result, comparison, links)
	if err != nil {
		return nil, err
	}
	return &MatrixPage{Name: name, Changed: kept.Changed, Running: kept.Running, Page: page}, nil
}

// MatrixHTML is the same as one page that needs nothing else.
func MatrixHTML(ctx context.Context, e *engine.Engine, name string, w io.Writer) error {
	kept, comparison, err := compared(ctx, e, name)
	if err != nil {
		return err
	}
	return matrix.HTML(w, kept.Result, comparison, nil)
}

// compared is what was kept of a matrix, and its comparison.
func compared(ctx context.Context, e *engine.Engine, name string) (*matrix.Kept, *matrix.Comparison, error) {
	if problem := matrix.CheckName(name); problem != "" {
		return nil, nil, fail.Input("GET /api/v1/matrices lists them", "no matrix %q: %s", name, problem)
	}
	if err := e.Unread(); err != nil {
		return nil, nil, err
	}
	kept, err := kept(e, name)
	if err != nil {
		return nil, nil, err
	}
	comparison, err := Compare(ctx, e, kept.Result, nil)
	return kept, comparison, err
}

// MatrixState is when a trial of a matrix was last kept, ns since 1970, and whether it is being measured.
func MatrixState(e *engine.Engine, name string) (changed int64, running bool, err error) {
	if problem := matrix.CheckName(name); problem != "" {
		return 0, false, fail.Input("GET /api/v1/matrices lists them", "no matrix %q: %s", name, problem)
	}
	return matrix.LastChange(matrixDir(e, name))
}

// kept reads a matrix's folder.
func kept(e *engine.Engine, name string) (*matrix.Kept, error) {
	catalogue, err := gpus.Load()
	if err != nil {
		return nil, err
	}
	return matrix.ReadKept(matrixDir(e, name), catalogue)
}

// Named is the name of the matrix that a spec is of, and its command, which built-in models have not; an error says
// what is wrong with the spec.
func Named(o Options) (name string, command []string, err error) {
	spec, _, err := o.spec()
	if err != nil {
		return "", nil, err
	}
	return spec.Name, spec.Command, nil
}
