package launch

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"hightide/internal/system"
)

// Program is a program that can be started.
type Program struct {
	Path   string // of its file
	Image  string // the file the kernel will run: of a script, its interpreter
	Refuse string // why no library can be preloaded; empty where it can
}

// Find looks a command up as a shell does, on the path of its environment. Errors are an *Error.
func Find(command string, env []string) (Program, error) {
	path := Lookup(env, "PATH")
	file, err := findProgram(command, path)
	if err != nil {
		return Program{}, err
	}
	image := imageOf(file, path)
	return Program{file, image, refusal(image)}, nil
}

// interpreted says how a file is run that is not marked as a program.
func interpreted(path string) string {
	if strings.HasSuffix(path, ".py") {
		return "python " + path + " runs it"
	}
	return "chmod +x " + path + ", if it is a program"
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &Error{Code: 127, Err: fmt.Errorf("%s: no such file", path)}
	case err != nil:
		return &Error{Code: 126, Err: fmt.Errorf("%s: cannot be looked at: %w", path, err)}
	case info.IsDir():
		return &Error{Code: 126, Err: fmt.Errorf("%s: is a folder", path)}
	case system.MayRun(path) != nil:
		return &Error{Code: 126, Err: fmt.Errorf("%s: no permission to run it", path), Hint: interpreted(path)}
	}
	return nil
}

// imageOf looks at the program's file, through #! lines and /usr/bin/env. A program it cannot read
// gets the benefit of the doubt: the loader skips what does not fit it.
func imageOf(program, path string) string {
	for range 4 {
		interpreter, argument := shebang(program)
		if interpreter == "" {
			break
		}
		program = interpreter
		if filepath.Base(interpreter) == "env" && argument != "" {
			if found, err := findProgram(argument, path); err == nil {
				program = found
			}
		}
	}
	return program
}

// shebang returns the interpreter of a script and the first argument that is not an option or an
// assignment.
func shebang(program string) (interpreter, argument string) {
	f, err := os.Open(program)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 512).ReadString('\n')
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", ""
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return words[0], word
		}
	}
	return words[0], ""
}

func refusal(program string) string {
	f, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	machine, name := elf.EM_X86_64, "x86-64"
	if runtime.GOARCH == "arm64" {
		machine, name = elf.EM_AARCH64, "arm64"
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != machine {
		return "it is not an " + name + " program"
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return ""
		}
	}
	return "it is linked statically"
}
