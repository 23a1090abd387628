package imagine

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/levers"
)

// mostFiles are copied or linked of a program's folder at most; a folder with more is not a program's.
const mostFiles = 20_000

// ofData are as many entries as a folder of data has that has no source file.
const ofData = 500

// AskCode has the agent say of every run from now on how levers are written as code.
func (s *Session) AskCode() { s.tell(levers.Patch, "1") }

// Resize has the program's trainer, of every run from now on, make batches of another size.
func (s *Session) Resize(batch int) { s.tell(levers.Batch, strconv.Itoa(batch)) }

// tell gives the agent of every run from now on a variable.
func (s *Session) tell(name, value string) {
	s.first.told = mergeEnv(s.first.told, map[string]string{name: value})
}

// TryPatched runs a copy of the folder root with other text in some of its files, by their paths, quietly. It says
// whether the copy was what ran. folder is where the command is started.
func (s *Session) TryPatched(ctx context.Context, plan *levers.Plan, folder, root string, changed map[string]string) (
	result *Result, ran bool, err error) {
	copied, err := os.MkdirTemp("", "hightide-patched-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(copied)
	if copied, err = filepath.EvalSymlinks(copied); err != nil {
		return nil, false, err
	}
	if err := copyProgram(root, copied, changed); err != nil {
		return nil, false, err
	}
	t := s.planned(s.first, plan)
	t.command = inCopy(t.command, folder, root, copied)
	if result, err = s.attempt(ctx, t); err != nil {
		return nil, false, err
	}
	var files []string
	_ = json.Unmarshal([]byte(result.Fact(levers.FactFiles)), &files) // nothing: a copy that did not get so far
	return result, followed(files, root, copied, changed), nil
}

// followed says whether a copy ran: a source file of it, and each changed file of settings.
func followed(files []string, root, copied string, changed map[string]string) bool {
	for path := range changed {
		rest, err := filepath.Rel(root, path)
		if err != nil || filepath.Ext(path) != ".py" && !slices.Contains(files, filepath.Join(copied, rest)) {
			return false
		}
	}
	return slices.ContainsFunc(files, func(path string) bool { return strings.HasPrefix(path, copied+"/") })
}

// inCopy is the command as it is in a copy of the folder root: arguments that name files beneath root name those of the
// copy, and it starts in the copy where it started beneath root.
func inCopy(command []string, folder, root, copied string) []string {
	moved := func(path string) string {
		if rest, err := filepath.Rel(root, path); err == nil && rest != ".." && !strings.HasPrefix(rest, "../") {
			return filepath.Join(copied, rest)
		}
		return path
	}
	args := slices.Clone(command)
	for i, arg := range args[1:] {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, arg)
		}
		_, err := os.Stat(path)
		switch {
		case err != nil:
		case filepath.IsAbs(arg), strings.HasPrefix(arg, "../"):
			args[i+1] = moved(path)
		}
	}
	return append([]string{"/bin/sh", "-c", `cd "$1" && shift && exec "$@"`, "sh", moved(folder)}, args...)
}

// copyProgram makes a copy of a program's folder: source files are copied, as the interpreter follows links to where
// they stand. Everything else is linked, and so are folders of data and environments as a whole.
func copyProgram(root, to string, changed map[string]string) error {
	left := mostFiles
	var folder func(path, to string) error
	folder = func(path, to string) error {
		entries, err := os.ReadDir(path)
		if left -= len(entries); err == nil && left < 0 {
			err = fmt.Errorf("%s has more than %d files", root, mostFiles)
		}
		for _, entry := range entries {
			if err != nil {
				return err
			}
			from, target := filepath.Join(path, entry.Name()), filepath.Join(to, entry.Name())
			text, is := changed[from]
			switch {
			case is:
				err = os.WriteFile(target, []byte(text), 0o600)
			case entry.IsDir() && (holds(from, changed) || !aside(from)):
				if err = os.Mkdir(target, 0o700); err == nil {
					err = folder(from, target)
				}
			case entry.Type().IsRegular() && strings.HasSuffix(from, ".py"):
				var source []byte
				if source, err = os.ReadFile(from); err == nil {
					err = os.WriteFile(target, source, 0o600)
				}
			default:
				err = os.Symlink(from, target)
			}
		}
		return err
	}
	return folder(root, to)
}

// holds says whether a changed file stands in a folder.
func holds(folder string, changed map[string]string) bool {
	for path := range changed {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// aside says of a folder that it has no source of the program: hidden ones, environments, and those of data.
func aside(folder string) bool {
	name := filepath.Base(folder)
	if strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__" {
		return true
	}
	if _, err := os.Stat(filepath.Join(folder, "pyvenv.cfg")); err == nil {
		return true
	}
	entries, err := os.ReadDir(folder)
	return err != nil || len(entries) > ofData && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".py")
	})
}
