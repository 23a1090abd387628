// Package diagnose says what this machine has, what hightide can observe on it, and makes the bundle for a bug
// report. It stands above package engine, of whose use cases it is made.
package diagnose

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Diagnosis says what a bundle for a bug report holds.
type Diagnosis struct {
	Version  int               `json:"version"`
	Hightide string            `json:"hightide"`
	Created  string            `json:"created"`
	Run      string            `json:"run,omitempty"` // whose recording is in it; "": there is none
	Why      string            `json:"why_no_run,omitempty"`
	Findings []string          `json:"findings"` // of that run
	Files    map[string]string `json:"files"`    // what each is
	LeftOut  []string          `json:"left_out"`
}

// leftOut is what no bundle holds.
var leftOut = []string{"names of the host, of users, of runs and their tags", "folders of paths",
	"arguments of commands, and environment variables",
	"identities of GPUs", "texts that the program attached to its allocator's snapshots"}

const recentRuns = 20

// bundle gathers the files of a Diagnosis.
type bundle struct {
	Diagnosis
	content map[string][]byte
}

func (b *bundle) add(name, what string, text []byte) {
	b.Files[name], b.content[name] = what, text
}

func (b *bundle) addJSON(name, what string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		b.add(name, what, text)
	}
	return err
}

// Write writes one compressed archive that is fit for a bug report. It has the machine, versions, limits and the
// latest runs, and of the run that a reference means a redacted recording with its report, events and last allocator
// snapshot. No run is not an error.
func Write(ctx context.Context, e *engine.Engine, ref string, w io.Writer) (*Diagnosis, error) {
	b := &bundle{Diagnosis{Version: 1, Hightide: engine.Version, Created: e.Runtime.Time().UTC().Format(time.RFC3339),
		Findings: []string{},
		Files:    map[string]string{}, LeftOut: leftOut}, map[string][]byte{}}
	info := Look(ctx, e, "")
	redactInfo(info)
	if err := b.addJSON("environment.json", "the machine, its Pythons and frameworks, and what can be observed here",
		info); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"limits.txt": "/proc/self/limits", "meminfo.txt": "/proc/meminfo"} {
		if text, err := os.ReadFile(path); err == nil {
			b.add(name, path, text)
		}
	}
	if err := b.addRuns(ctx, e); err != nil {
		return nil, err
	}
	if err := b.addRun(ctx, e, ref); err != nil {
		return nil, err
	}
	return &b.Diagnosis, b.write(w)
}

// redactInfo takes out what is private.
func redactInfo(info *Info) {
	info.Host.Name = ""
	for i := range info.Host.GPUs {
		info.Host.GPUs[i].UUID = ""
	}
	home, _ := os.UserHomeDir()
	hide := func(text string) string {
		if home != "" && home != "/" {
			text = strings.ReplaceAll(text, home, "~")
		}
		return text
	}
	info.Data.Path, info.Channels.Path = filepath.Base(info.Data.Path), filepath.Base(info.Channels.Path)
	for i := range info.Pythons {
		info.Pythons[i].Path = filepath.Base(info.Pythons[i].Path)
		info.Pythons[i].Problem = hide(info.Pythons[i].Problem)
	}
	for i := range info.Abilities {
		if info.Abilities[i].Name == "recordings" {
			info.Abilities[i].Text, info.Abilities[i].Hint = filepath.Base(info.Abilities[i].Text), ""
		}
		info.Abilities[i].Text, info.Abilities[i].Hint = hide(info.Abilities[i].Text), hide(info.Abilities[i].Hint)
	}
}

func (b *bundle) addRuns(ctx context.Context, e *engine.Engine) error {
	rows, err := e.Runs(ctx, store.Filter{Limit: recentRuns})
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		r.Name, r.Tags, r.Command, r.Host, r.Dir, r.File = "", nil, nil, "", "", ""
	}
	return b.addJSON("runs.json", "the latest runs, without names and commands", rows)
}

// addRun adds what a run recorded, redacted.
func (b *bundle) addRun(ctx context.Context, e *engine.Engine, ref string) error {
	row, run, err := e.Load(ctx, ref)
	if err != nil {
		if ref != "last" || fail.Code(err) != fail.ExitBadInput {
			return err
		}
		b.Why = "nothing was recorded here"
		return nil
	}
	b.Run = row.ID
	from := format.Source{Run: run}.Redact()
	told := engine.Analyze(from.Run)
	for _, f := range told.Findings {
		b.Findings = append(b.Findings, f.Title)
	}
	b.add("report.txt", "the report of the run", []byte(told.Text(report.TextOptions{})))
	for _, one := range []struct{ name, what, format, table string }{
		{"run.hightide", "its recording: hightide show run.hightide", "recording", ""},
		{"events.csv", "what happened once in it, and what its helpers logged", "csv", "events"},
	} {
		if err := b.addExport(one.name, one.what, format.Find(one.format), from, one.table); err != nil {
			return err
		}
	}
	if s, err := engine.LastSnapshot(run, format.Find("torch-pickle")); err == nil {
		return b.addExport("snapshot.pickle", "its last allocator snapshot: hightide explain snapshot.pickle",
			format.Find("torch-pickle"), s.Redact(), "")
	}
	return nil
}

func (b *bundle) addExport(name, what string, to *format.Format, from format.Source, table string) error {
	var text bytes.Buffer
	if err := to.Write(&text, from, format.FindTable(from.Kind(), table)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.add(name, what, text.Bytes())
	return nil
}

// write writes the archive; the list of what is in it comes first.
func (b *bundle) write(w io.Writer) error {
	if err := b.addJSON("manifest.json", "this list", b.Diagnosis); err != nil {
		return err
	}
	zipped := gzip.NewWriter(w)
	out := tar.NewWriter(zipped)
	names := slices.Sorted(maps.Keys(b.content))
	names = append([]string{"manifest.json"}, slices.DeleteFunc(names,
		func(name string) bool { return name == "manifest.json" })...)
	for _, name := range names {
		if err := out.WriteHeader(&tar.Header{Name: "hightide-diagnose/" + name, Mode: 0o644,
			Size: int64(len(b.content[name]))}); err != nil {
			return err
		}
		if _, err := out.Write(b.content[name]); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
