package oomtext

import (
	"slices"
	"strings"

	"hightide/internal/words"
)

// A message is pasted with what a terminal, a logger or a mail put around it. That is colours, a prefix on each line,
// lines of several ranks among each other, and line breaks in the middle of it.

var (
	// bareColours are colours whose first byte was lost on the way, as in texts of issues on the web.
	bareColours = words.Lazy(`\[\d{1,2}(?:;\d{1,3})*m`)
	escapes     = words.Lazy(`\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`)
	// lead is what may stand before a line of a log: marks of quotation, names of containers, times, levels, places.
	lead = words.Lazy(`^(?:(?:> ?)+|[\w.-]+ +\| |\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\]]*\]?:? ?|\d\d-\d\d \d\d:\d\d:\d\d |(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL):? |\[[\w./-]+\.\w+:\d+\] ?|\[resource\.[^\]]*\] ?)`)
	// speaker is a lead that says which of several processes wrote the line.
	speaker = words.Lazy(`^(?:\[(?:rank|default)\d+\]:? ?|\([\w.-]+(?: \w+=\d+)*(?: pid=\d+)[^)]*\) ?|\d{1,5}: )`)
)

// clean is a pasted text without colours and without what stands before its lines. Lines of several processes are put
// together by process; the one whose line is the last comes last.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\r", "")
	if strings.IndexByte(text, '\x1b') >= 0 {
		text = escapes.Regexp().ReplaceAllString(text, "")
	}
	if strings.Contains(text, "[0m") || strings.Contains(text, "[0;0m") {
		text = bareColours.Regexp().ReplaceAllString(text, "")
	}
	said, order, now := map[string][]string{}, []string{}, ""
	leads, speakers := lead.Regexp(), speaker.Regexp()
	for line := range strings.SplitSeq(text, "\n") {
		who, rest := "", line
		for rest != "" && (strings.IndexByte(">[(0123456789DIWECF", rest[0]) >= 0 || strings.Contains(rest, " | ")) {
			if who == "" {
				if found := speakers.FindString(rest); found != "" {
					who, rest = strings.TrimSpace(found), rest[len(found):]
					continue
				}
			}
			found := leads.FindString(rest)
			if found == "" {
				break
			}
			rest = rest[len(found):]
		}
		if who != "" { // a line without one goes on with the line before it
			now = who
		}
		if said[now] == nil || order[len(order)-1] != now {
			order = append(slices.DeleteFunc(order, func(s string) bool { return s == now }), now)
		}
		said[now] = append(said[now], rest)
	}
	var all []string
	for _, who := range order {
		all = append(all, said[who]...)
	}
	return strings.Join(all, "\n")
}

// brokenMessage is how much of the end of a text may be one message whose very words are broken, in bytes.
const brokenMessage = 64 << 10

// together are readings of a text whose lines were broken in its middle: at spaces, and anywhere.
func together(text string) []string {
	return []string{strings.Join(strings.Fields(text), " "), strings.ReplaceAll(text, "\n", "")}
}

// whole is the text in which a message was found. It comes with its wording, and with other readings of that text for
// figures that its line breaks split. Nil: there is no wording that is known.
func whole(text string) (string, *wording, []string) {
	text = clean(text)
	if w := wordingOf(text); w != nil || !strings.Contains(strings.TrimSpace(text), "\n") {
		return text, w, nil
	}
	all := together(text[max(0, len(text)-brokenMessage):])
	for i, joined := range all {
		if w := wordingOf(joined); w != nil {
			if len(w.match.Regexp().FindAllStringIndex(joined, 2)) > 1 { // whose figures are which the other does not tell
				return joined, w, nil
			}
			return joined, w, []string{all[1-i]}
		}
	}
	return text, nil, nil
}

// elsewhere is the beginning of a message on other memory than w's that stands on another line than those from begin to
// end; "": there is none.
func elsewhere(text string, w *wording, begin, end int) string {
	for _, list := range [][]wording{wordings, others} {
		for i := range list {
			o := &list[i]
			if o.onHost() == w.onHost() || !o.match.MatchString(text) {
				continue
			}
			for _, at := range o.match.Regexp().FindAllStringIndex(text, -1) {
				if from, to := lineAt(text, at[0]); to <= begin || from >= end {
					return shortened(strings.TrimSpace(text[from:to]))
				}
			}
		}
	}
	return ""
}

// onHost says whether a message is on host memory.
func (w *wording) onHost() bool {
	return slices.Contains([]string{"host", "cgroup", "container", "shm", "cpu"}, w.backend)
}

// lineAt is where the line of a position begins and ends.
func lineAt(text string, at int) (from, to int) {
	from = strings.LastIndexByte(text[:at], '\n') + 1
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return from, at + n
	}
	return from, len(text)
}

// shortened is the beginning of a line, to be quoted.
func shortened(line string) string {
	const most = 60
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}

// grouped is a number whose commas part thousands.
var grouped = words.Lazy(`^\d{1,3}(?:,\d{3})+(?:\.|$)`)
