package record

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
)

// target is what the command's program turns out to be, as far as it decides what can be preloaded
// into it.
type target struct {
	program string // the file the kernel will run: of a script, its interpreter
	refuse  string // why no library is preloaded; empty where it may be
}

// examine looks at the program's file, through #! lines and /usr/bin/env. A program it cannot read
// gets the benefit of the doubt: the loader skips what does not fit it.
func examine(program, path string) target {
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
	return target{program, refusal(program)}
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
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return "it is not an x86-64 program"
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err == nil && strings.Contains(string(name), "musl") {
				return "it is linked with musl, the library with glibc"
			}
			return ""
		}
	}
	return "it is linked statically"
}
