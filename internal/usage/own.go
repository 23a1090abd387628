package usage

import (
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// aroundOthers are the agent's files that call the program's or a library's code: what is allocated beneath may be that code's.
var aroundOthers = words.Lazy(`/hightide_agent/(adapters|imagine|pytorch|xla)/|/hightide_agent/(imports|late|sdk|spans|training)\.py$|/hook/sitecustomize\.py$`)

// IsOwn says whether the agent allocated something for itself: of the frames, innermost first, that are neither the interpreter's nor
// of Python's own library, its is the first.
func (t *Names) IsOwn(frames []mem.Location) bool {
	for i := range frames {
		l := &frames[i]
		if l.Native {
			continue
		}
		switch t.Kind(l.File) {
		case OwnFile:
			return !aroundOthers.MatchString(l.File)
		case LibraryFile:
			if l.Function == "<module>" || packageOf(l.File) != "" {
				return false
			}
		case Nowhere:
			if !strings.HasPrefix(l.File, "<frozen ") {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// IsImport says that a frame is of what imports modules, or of what runs one as a program.
func IsImport(l *mem.Location) bool {
	return strings.HasPrefix(l.File, "<frozen importlib.") || l.File == "<frozen runpy>"
}
