package oomtext

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// What a message lists below its figures: XLA's largest buffers with their lines, and the node's largest processes as
// Ray names them.

var (
	bufferSize   = words.Lazy(`(?m)^\s*(?:\d+\. )?Size: ` + size)
	bufferSource = words.Lazy(`source_file="([^"\n]*)" source_line=(\d+)`)
	bufferName   = words.Lazy(`op_name="([^"\n]*)"`)
	bufferShape  = words.Lazy(`(?:Shape|Subshape): ([a-z]\w*\[[\d,]*\])`)
	bufferKind   = words.Lazy(`Allocation type: ([\w ]+)`)

	// hbmPart are the sums above that list, as XLA writes them for TPUs.
	hbmPart = words.Lazy(`(?m)^\s*(arguments|global|scoped|HLO temp)  +` + size)

	userTable = words.Lazy(`PID\s+MEM(\(GB\))?\s+COMMAND`)
	userLine  = words.Lazy(`(?m)^\s*(\d+)[ \t]+(\d+(?:\.\d+)?)(?:GB|GiB)?[ \t]+(\S[^\n]*)`)
	rayTask   = words.Lazy(`, name=([^,\n]*), pid=(\d+), memory used=` + size)
)

// maxListed bounds how many entries of a list are taken.
const maxListed = 100

// takeLists takes what the text lists.
func takeLists(m *mem.OOMMessage, text string) {
	at := bufferSize.Regexp().FindAllStringSubmatchIndex(text, maxListed)
	for i, found := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		entry, b := text[found[0]:end], mem.OOMBuffer{Size: of(parseSize(text[found[2]:found[3]]))}
		if source := bufferSource.FindStringSubmatch(entry); source != nil {
			b.File = source[1]
			b.Line, _ = strconv.Atoi(source[2])
		}
		b.Operator, b.Shape, b.Kind = group(bufferName, entry), group(bufferShape, entry), group(bufferKind, entry)
		m.Largest = append(m.Largest, b)
	}
	if m.Wording == "xla-tpu" {
		for _, p := range hbmPart.Regexp().FindAllStringSubmatch(text, -1) {
			if size, ok := parseSize(p[2]).Get(); ok && size > 0 {
				m.Parts = append(m.Parts, mem.OOMPart{Name: p[1], Size: mem.Bytes(size)})
			}
		}
	}
	if m.Framework == "ray" {
		takeUsers(m, text)
	}
}

// takeUsers takes the processes that Ray lists, and the one that it killed. What it calls GB are GiB.
func takeUsers(m *mem.OOMMessage, text string) {
	if killed := rayTask.FindStringSubmatch(text); killed != nil {
		m.Name, m.PID, m.Allocated = killed[1], parseNumber(killed[2]), parseSize(killed[3])
	}
	table := userTable.Regexp().FindStringIndex(text)
	if table == nil {
		return
	}
	for _, line := range userLine.Regexp().FindAllStringSubmatch(text[table[1]:], maxListed) {
		if used, ok := parseSize(line[2] + "GiB").Get(); ok {
			pid, _ := strconv.ParseInt(line[1], 10, 64)
			m.Processes = append(m.Processes, mem.OOMProcess{PID: pid, Used: mem.Bytes(used), Name: strings.TrimSpace(line[3])})
		}
	}
	slices.SortStableFunc(m.Processes, func(a, b mem.OOMProcess) int { return cmp.Compare(b.Used, a.Used) })
}

// listed says what the message lists.
func listed(m *mem.OOMMessage) []string {
	var out []string
	for _, p := range m.Parts {
		out = append(out, fmt.Sprintf("XLA counts %v of %s.", p.Size, p.Name))
	}
	if line := largest(m); line != "" {
		out = append(out, line)
	}
	if m.Framework == "ray" && len(m.Processes) > 0 {
		out = append(out, users(m))
	}
	return out
}

// largest tells the largest buffer, and the line of which most is listed where that is another one's.
func largest(m *mem.OOMMessage) string {
	var most mem.OOMBuffer
	var lines mem.Tally[string, lineSum]
	for _, b := range m.Largest {
		if b.Size > most.Size {
			most = b
		}
		if b.File != "" {
			sum := lines.At(place(b))
			*sum = lineSum{place(b), sum.bytes + b.Size, sum.buffers + 1}
		}
	}
	if most.Size == 0 {
		return ""
	}
	what := fmt.Sprintf("The largest buffer that XLA lists has %v", most.Size)
	if most.Shape != "" {
		what += fmt.Sprintf(" (%s)", most.Shape)
	}
	switch {
	case most.File != "":
		what += " and comes from " + place(most)
	case most.Operator != "":
		what += " and comes from " + shortened(most.Operator)
	default:
		what += "; the text does not say which line it comes from"
	}
	var first lineSum
	for _, sum := range lines.All {
		if sum.bytes > first.bytes {
			first = sum
		}
	}
	if first.buffers > 1 {
		what += fmt.Sprintf(". The line of most of the list, %v in %d buffers, is %s; they need not live at once",
			first.bytes, first.buffers, first.place)
	}
	return what + "."
}

// lineSum is what a list has of one line.
type lineSum struct {
	place   string
	bytes   mem.Bytes
	buffers int
}

func place(b mem.OOMBuffer) string { return fmt.Sprintf("%s:%d", path.Base(b.File), b.Line) }

// users tells the largest processes of the node, and where the killed one stands among them.
func users(m *mem.OOMMessage) string {
	var all []string
	for _, p := range m.Processes[:min(3, len(m.Processes))] {
		all = append(all, fmt.Sprintf("%s (process %d) %v", shortened(p.Name), p.PID, p.Used))
	}
	line := "Ray lists who held most on the node: " + strings.Join(all, ", ") + "."
	if held, ok := m.Allocated.Get(); ok && m.PID.Known() && m.Name != "" {
		line += fmt.Sprintf(" The killed one, %s (process %d), held %v", m.Name, m.PID.Or(0), mem.Bytes(held))
		if m.Processes[0].PID != m.PID.Or(0) && m.Processes[0].Used > mem.Bytes(held) {
			line += ": not the most"
		}
		line += "."
	}
	return line
}
