package mem

import (
	"path"
	"strconv"
	"strings"
)

// What stands for a line where none is known.
const (
	UnknownPlace = "<no stack>" // a file's name
	NoFrames     = "no frames (autograd, or a native thread)"
)

// LineName is "train.py:61" for people; the full path stands in the location's file.
func LineName(l Location) string {
	switch l.File {
	case "":
		return "an unknown line"
	case UnknownPlace:
		return NoFrames
	}
	name := path.Base(l.File)
	if l.Line == 0 {
		return name
	}
	return name + ":" + strconv.Itoa(l.Line)
}

// slashes writes a path of Windows with slashes, so that it is taken apart as any other: C:/env/Lib/site-packages/torch/a.py.
func slashes(file string) string {
	if drive := len(file) > 2 && file[1] == ':' && file[2] == '\\'; drive || strings.HasPrefix(file, `\\`) {
		return strings.ReplaceAll(file, `\`, "/")
	}
	return file
}
