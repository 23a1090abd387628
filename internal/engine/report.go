package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/analyze"
	"hightide/internal/files"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Analyze explains a recording: every analysis, with the lines of the program quoted where its
// files are still here, and allocator snapshots decoded.
func Analyze(run *mem.Run) *report.Report {
	options := analyze.Options{Source: sourcesOf(run).line, Snapshots: map[string]*mem.AllocatorSnapshot{}}
	var notes []string
	for _, file := range run.Snapshots {
		snapshot, err := torch.Read(bytes.NewReader(file.Data))
		if err != nil {
			notes = append(notes, fmt.Sprintf("allocator snapshot %s cannot be read: %v", file.Name, err))
			continue
		}
		if run.Info.Label == mem.Imagined {
			snapshot.Label = mem.Imagined
		}
		options.Snapshots[file.Name] = snapshot
	}
	r := analyze.Analyze(run, options)
	r.Notes = append(r.Notes, notes...)
	return r
}

// Report explains the run that a reference means (see Resolve), from its recording alone.
func (e *Engine) Report(ctx context.Context, ref string) (*report.Report, Run, error) {
	row, run, err := e.Load(ctx, ref)
	if err != nil {
		return nil, row, err
	}
	return Analyze(run), row, nil
}

// WriteHTML writes a report as one HTML file that needs nothing else. It appears whole or not at all.
func WriteHTML(path string, r *report.Report) error {
	return files.Write(path, "HTML report", r.HTML)
}

// sources quotes lines of Python files, each read once. A file that changed after the run began
// shows other lines than those that ran, so it is not quoted; nor is what is no source at all: the
// paths come from a recording, which may be a stranger's.
type sources struct {
	files map[string][][]byte
	began time.Time
}

func sourcesOf(run *mem.Run) *sources {
	return &sources{map[string][][]byte{}, time.Unix(0, run.Info.StartWall)}
}

const maxSource = 4 << 20 // bytes; larger files are not sources

func (s *sources) line(file string, line int) string {
	lines, seen := s.files[file]
	if !seen {
		if s.quotable(file) {
			data, _ := os.ReadFile(file)
			lines = bytes.Split(data, []byte("\n"))
		}
		s.files[file] = lines
	}
	if line < 1 || line > len(lines) {
		return ""
	}
	return mem.MaskText(string(bytes.TrimSpace(lines[line-1])))
}

func (s *sources) quotable(file string) bool {
	if !strings.HasSuffix(file, ".py") || !filepath.IsAbs(file) {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() <= maxSource && !info.ModTime().After(s.began)
}
