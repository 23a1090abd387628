package pythons

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*t?$`)

// Named says whether a program, by path or name, is called as interpreters are.
func Named(program string) bool { return pythonName.MatchString(filepath.Base(program)) }

// OfCommand is the path of the Python interpreter that a command starts: itself, or the one that a script
// such as torchrun names in its first line. "" where that cannot be told (a shell script, uv run).
func OfCommand(command []string) string {
	if len(command) == 0 {
		return ""
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return ""
	}
	if filepath.Base(command[0]) == "env" { // env A=1 python train.py
		for i, word := range command[1:] {
			if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") {
				return OfCommand(command[1+i:])
			}
		}
		return ""
	}
	if Named(path) {
		return path
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 512).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" && len(words) > 1 {
		words = words[len(words)-1:]
		if found, err := exec.LookPath(words[0]); err == nil {
			words[0] = found
		}
	}
	if !Named(words[0]) {
		return ""
	}
	return words[0]
}
