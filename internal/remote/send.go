package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/redact"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// Sent is what became of a run that was to be sent.
type Sent struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Project string   `json:"project"`
	Run     string   `json:"run,omitempty"` // how the server calls it; absent: it was only looked at
	There   bool     `json:"there_already"`
	Files   []string `json:"files"`              // that go, or would
	Bytes   int64    `json:"size_bytes"`         // of them
	Redact  string   `json:"redacted,omitempty"` // what was taken out, in words
	Left    []string `json:"left_out"`           // of what nothing could be taken out
}

// Send sends runs.
type Send struct {
	Client  *Client
	Project string
	Rules   redact.Rules // beside those of the project
	Preview bool         // only say what would go
	Folder  string       // for a copy while it is sent
}

// Run sends one of a store. It goes on where it was cut off.
func (s *Send) Run(ctx context.Context, from store.Store, run store.Run) (sent Sent, err error) {
	if run.State == store.Running {
		return sent, fail.Input("it is sent once it has ended", "run %s is still being recorded", run.ID)
	}
	project, err := s.Client.project(ctx, s.Project)
	if err != nil {
		return sent, err
	}
	dir, err := os.MkdirTemp(s.Folder, ".push-*")
	if err != nil {
		return sent, fail.Environment("is the data directory full? see df", "prepare what is sent: %w", err)
	}
	defer os.RemoveAll(dir)
	sent, err = s.prepare(from, run, project.Redact.With(s.Rules), dir)
	if err != nil || s.Preview {
		return sent, err
	}
	err = s.files(ctx, dir, &sent)
	return sent, err
}

// prepare copies a run into a folder as it goes: without what is taken out, and with its project.
func (s *Send) prepare(from store.Store, run store.Run, rules redact.Rules, dir string) (sent Sent, err error) {
	home, _ := os.UserHomeDir()
	r, err := redact.New(rules, home)
	if err != nil {
		return sent, fail.Input("it is Go's syntax of regular expressions", "%w", err)
	}
	sent = Sent{ID: run.ID, Name: r.Text(run.Name), Project: s.Project, Left: []string{}, Files: []string{store.Recording}}
	if err := s.rewrite(from, run.ID, r, filepath.Join(dir, store.Recording)); err != nil {
		return sent, err
	}
	attached, err := from.Attached(run.ID)
	if err != nil {
		return sent, err
	}
	for _, a := range attached {
		if _, is := store.CommentOf(a.Name); is { // its author is who the server knows, and not what a file says
			continue
		}
		if !rules.None() { // of another program's format: nothing can be taken out of it
			r.Left = append(r.Left, a.Name)
			continue
		}
		if err := copyFile(from, run.ID, a.Name, filepath.Join(dir, a.Name)); err != nil {
			return sent, err
		}
		sent.Files = append(sent.Files, a.Name)
	}
	for _, name := range sent.Files {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return sent, err
		}
		sent.Bytes += info.Size()
	}
	sent.Files = slices.DeleteFunc(sent.Files, func(name string) bool { return isEmpty(filepath.Join(dir, name)) })
	sent.Left, sent.Redact = append(sent.Left, r.Left...), r.String()
	return sent, nil
}

func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

func copyFile(from store.Store, id, name, to string) error {
	src, err := from.Open(id, name)
	if err != nil {
		return err
	}
	defer src.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, src)
	return errors.Join(err, file.Close())
}

// rewrite writes a recording as it goes. One that cannot be read whole would go without a word of what it lacks.
func (s *Send) rewrite(from store.Store, id string, r *redact.Redaction, to string) error {
	src, err := from.Open(id, store.Recording)
	if err != nil {
		return err
	}
	defer src.Close()
	frames, err := wire.NewReader(src)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	out, err := wire.NewWriter(file)
	for err == nil {
		var f mem.Frame
		if f, err = frames.Next(); err != nil {
			break
		}
		if info, is := f.(mem.RunInfo); is {
			f = s.inProject(info)
		}
		if f, keep := r.Frame(f); keep {
			err = out.Write(f)
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if len(frames.Damage()) > 0 || frames.Unknown() > 0 {
		return fail.Input("hightide show "+id+" says what; a newer hightide may read it",
			"the recording of run %s is damaged or of a newer hightide, and is not sent", id)
	}
	return errors.Join(out.Close(), file.Close())
}

// inProject says in the recording which project it is of.
func (s *Send) inProject(info mem.RunInfo) mem.RunInfo {
	tags := map[string]string{}
	for key, value := range info.Tags {
		tags[key] = value
	}
	tags[store.ProjectTag] = s.Project
	info.Tags = tags
	return info
}

// begun is the server's answer to a file that begins.
type begun struct {
	There bool   `json:"there_already"`
	Run   string `json:"run"`
	Part  int64  `json:"part_bytes"`
	Parts []store.Part
}

// files sends those of a folder, and has the server show the run.
func (s *Send) files(ctx context.Context, dir string, sent *Sent) error {
	of := "/projects/" + url.PathEscape(s.Project) + "/pushes/" + url.PathEscape(sent.ID)
	for i, name := range sent.Files {
		if i == 1 {
			s = &Send{Client: s.Client.patiently(), Project: s.Project}
		}
		there, err := s.file(ctx, of+"/files/"+url.PathEscape(name), filepath.Join(dir, name), sent)
		if sent.There = there; err != nil || there {
			return err
		}
	}
	var run store.Run
	return s.Client.patiently().ask(ctx, http.MethodPost, of, map[string]any{"files": sent.Files}, &run)
}

// file sends the parts of a file that the server has not.
func (s *Send) file(ctx context.Context, at, path string, sent *Sent) (there bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	var told begun
	if err := s.Client.ask(ctx, http.MethodPut, at, map[string]any{"size_bytes": info.Size()}, &told); err != nil {
		return false, err
	}
	if sent.Run = told.Run; told.There || told.Part <= 0 || told.Part > store.PartBytes {
		return told.There, nil
	}
	data := make([]byte, min(told.Part, info.Size()))
	for from := int64(0); from < info.Size(); from += told.Part {
		data = data[:min(told.Part, info.Size()-from)]
		if _, err := io.ReadFull(file, data); err != nil {
			return false, err
		}
		sum := sha256.Sum256(data)
		p := store.Part{At: from, Hash: hex.EncodeToString(sum[:])}
		if slices.Contains(told.Parts, p) {
			continue
		}
		if err := s.Client.patiently().send(ctx, http.MethodPut, at+"/parts/"+strconv.FormatInt(from, 10)+"?sha256="+p.Hash,
			"application/octet-stream", data, nil); err != nil {
			return false, err
		}
	}
	return false, nil
}
