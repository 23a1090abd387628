package report

import (
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// SayNothing says what is to be said of a run or a file in which nothing was found, and whether that is good news. It
// is where the program ended well and all was looked for: one that goes on may yet grow, and one that failed was not
// seen to its end.
func (r *Report) SayNothing() {
	h := &r.Headline
	h.Nothing, h.Well = "", false
	if len(r.Findings) > 0 {
		return
	}
	var said string
	switch {
	case len(r.Allocators) > 0 && h.NotLooked == "" && h.Ended.Kind == "": // files
		said, h.Well = "No leak, no out-of-memory and no worrying fragmentation was found.", true
	case len(r.Allocators) == 0 && len(r.Series) == 0 && len(r.Steps) == 0 && !h.Figure.Known():
		said = "Nothing was observed that could be judged."
	case h.NotLooked != "" && h.Ended.Kind == mem.EndFailed:
		said = strings.TrimSpace(h.failed() + " " + h.NotLooked)
	case h.NotLooked != "":
		said = h.NotLooked + " Of what was looked for, nothing to change was found."
	case h.Ended.Kind == mem.EndRunning:
		said = "Nothing to change was found so far: the program goes on, and may yet grow."
	case h.Ended.Kind == mem.EndCutOff, h.Ended.Kind == mem.EndUnknown:
		said = "Nothing to change was found up to the end of the recording. How the program went on is not known."
	case h.Ended.Kind == mem.EndFailed, h.Ended.Kind == mem.EndOOM:
		said = "The program failed. Up to then nothing to change in its memory was found."
	case h.Larger != "":
		said = "No leak was found, but what " + h.Larger + " allocates gets larger: see the notes."
	default:
		said, h.Well = "Nothing to change was found.", true
	}
	h.Nothing = strings.TrimSpace(said + " " + h.Looked)
}

// unheard is said of a program that failed without an exception: hightide does not read what it writes.
const unheard = "Why it did may stand in what it wrote to standard error, which `hightide run --capture` keeps."

// failed says how and when a program failed of which not all was looked for; "": it ended in another way.
func (h *Headline) failed() string {
	var how string
	if code, ok := h.ExitCode.Get(); ok {
		how = fmt.Sprintf("The program ended with exit code %d", code)
	} else if number, ok := h.Signal.Get(); ok {
		how = "The program was ended by " + SignalName(number)
	} else {
		return ""
	}
	how += " after " + Duration(h.Duration) + "."
	if h.Exception == nil && h.ExitCode.Known() {
		how += " " + unheard
	}
	return how
}

// Unheard says whether a program failed for a reason that its output alone may tell.
func (r *Report) Unheard() bool { return strings.Contains(r.Headline.Nothing, unheard) }

// Hear says what such a program wrote last.
func (r *Report) Hear(line string) {
	said := "The last line of its output: " + strconv.Quote(line) + "."
	r.Headline.Nothing = strings.Replace(r.Headline.Nothing, unheard, said, 1)
}
