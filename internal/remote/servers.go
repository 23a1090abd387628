package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hightide/internal/fail"
)

// Servers are the keys of a person, and the project files that the person has confirmed. The zero value has none.
type Servers struct {
	Keys    map[string]string `json:"keys"`    // by the address of the server
	Allowed map[string]string `json:"allowed"` // path of a project file → what it said then
}

// LoadServers reads them from a file of this user's alone.
func LoadServers(path string) (*Servers, error) {
	s := &Servers{}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Unread("make it readable, or delete it", err)
	}
	if err == nil {
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fail.Input("delete it, and hightide login again", "%s: %w", path, err)
		}
	}
	if s.Keys == nil {
		s.Keys = map[string]string{}
	}
	if s.Allowed == nil {
		s.Allowed = map[string]string{}
	}
	return s, nil
}

// Save writes them, for this user alone.
func (s *Servers) Save(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail.Environment("", "keep the key: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".servers-*") // which nobody else may read
	if err != nil {
		return fail.Environment("", "keep the key: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fail.Environment("is the disk full? see df", "keep the key: %w", err)
	}
	return nil
}

// Allow notes that a project file may have runs sent where it says now.
func (s *Servers) Allow(path string, to Target) { s.Allowed[path] = said(to) }

// Allows says whether it may: a file that has changed where runs go has to be confirmed again.
func (s *Servers) Allows(path string, to Target) bool { return s.Allowed[path] == said(to) }

func said(to Target) string {
	sum := sha256.Sum256([]byte(to.Server + "\n" + to.Project))
	return hex.EncodeToString(sum[:])
}
