// Package oomtext reads out-of-memory messages as people paste them: the figures that frameworks print (parts.go),
// and what they mean in sentences (words.go).
package oomtext

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// wording is one way in which a framework says that it is out of memory. Parts are looked for one by
// one, since messages are pasted with pieces missing.
type wording struct {
	name, framework, versions string
	match                     *words.Pattern
	parts                     []part
}

// part is a figure of a message: the first group of pattern is a size, or a number where plain.
type part struct {
	pattern *words.Pattern
	to      func(*mem.OOMMessage) *mem.Optional
	plain   bool
}

// size is how every framework prints one; "GB" is PyTorch's older word for GiB.
const size = `(\d+(?:\.\d+)? ?(?:bytes|[KMGTP]?i?B)\b)`

func find(pattern string, to func(*mem.OOMMessage) *mem.Optional) part {
	return part{words.Lazy(strings.ReplaceAll(pattern, "SIZE", size)), to, false}
}

func findNumber(pattern string, to func(*mem.OOMMessage) *mem.Optional) part {
	return part{words.Lazy(pattern), to, true}
}

func requested(m *mem.OOMMessage) *mem.Optional { return &m.Requested }
func device(m *mem.OOMMessage) *mem.Optional    { return &m.Device }
func total(m *mem.OOMMessage) *mem.Optional     { return &m.Total }
func free(m *mem.OOMMessage) *mem.Optional      { return &m.Free }
func allowed(m *mem.OOMMessage) *mem.Optional   { return &m.Allowed }
func inUse(m *mem.OOMMessage) *mem.Optional     { return &m.InUse }
func allocated(m *mem.OOMMessage) *mem.Optional { return &m.Allocated }
func reserved(m *mem.OOMMessage) *mem.Optional  { return &m.Reserved }
func unused(m *mem.OOMMessage) *mem.Optional    { return &m.Unused }
func private(m *mem.OOMMessage) *mem.Optional   { return &m.Private }
func other(m *mem.OOMMessage) *mem.Optional     { return &m.Other }

// wordings lists what can be read, the more particular first. Add yours here.
var wordings = []wording{
	{"mps", "pytorch", "1.12 or later", words.Lazy(`MPS backend out of memory`), []part{
		find(`Tried to allocate SIZE`, requested), find(`MPS allocated: SIZE`, allocated),
		find(`other allocations: SIZE`, other), find(`max allowed: SIZE`, allowed)}},
	{"torch1-cached", "pytorch", "0.4 to 1.3", words.Lazy(`out of memory\.\s+Tried to allocate [^(]*\([^)]* cached`), parenthesis},
	{"torch1-parenthesis", "pytorch", "1.4 to 2.0", words.Lazy(`out of memory\.\s+Tried to allocate [^(.]*[\d.]+ ?\w+ \(GPU`), parenthesis},
	{"torch2-sentence", "pytorch", "2.1 or later", words.Lazy(`(?:CUDA|HIP|XPU|GPU|MTIA|PrivateUse1|\w+)\s+out of memory\.\s+Tried to allocate`), []part{
		find(`Tried to allocate SIZE`, requested), findNumber(`GPU (\d+) has`, device),
		find(`total capaci?ty of SIZE`, total), find(`of which SIZE is free`, free),
		find(`SIZE allowed;`, allowed), find(`[Tt]his process has SIZE`, inUse),
		find(`Of the allocated memory SIZE is allocated`, allocated),
		find(`with SIZE allocated in private pools`, private),
		find(`and SIZE is reserved by PyTorch but`, unused)}},
	{"torch-cpu", "pytorch", "", words.Lazy(`DefaultCPUAllocator: (?:can't|not enough memory)`), []part{
		find(`you tried to allocate SIZE`, requested), find(`tried to allocate SIZE`, requested)}},
	{"torch0-thc", "pytorch", "0.3 or older", words.Lazy(`cuda runtime error \(2\) : out of memory`), nil},
	{"jax-xla", "jax", "", words.Lazy(`(?i)(?:out of memory (?:while )?trying to allocate|Failed to allocate request for|ran out of memory trying to allocate)`), []part{
		find(`trying to allocate SIZE`, requested),
		find(`Failed to allocate request for [\d.]+ ?\w+ \((\d+B)\)`, requested), find(`Failed to allocate request for SIZE`, requested),
		findNumber(`device ordinal (\d+)`, device)}},
	{"tensorflow-bfc", "tensorflow", "", words.Lazy(`OOM when allocating tensor`), []part{
		findNumber(`device:GPU:(\d+)`, device)}},
	{"cuda-driver", "cuda", "", words.Lazy(`(?i)CUDA(?:_ERROR_OUT_OF_MEMORY| error: out of memory|Malloc failed[^\n]*out of memory)|cudaErrorMemoryAllocation`), nil},
}

var parenthesis = []part{
	find(`Tried to allocate SIZE`, requested), findNumber(`\(GPU (\d+);`, device),
	find(`SIZE total capacity`, total), find(`SIZE already allocated`, allocated),
	find(`SIZE free`, free), find(`SIZE reserved in total`, reserved), find(`SIZE cached`, unused),
	find(`SIZE allowed`, allowed)}

var (
	backend      = words.Lazy(`\b(CUDA|HIP|XPU|MPS|MTIA)\b(?: backend)? out of memory`)
	otherProcess = words.Lazy(`Process (\d+) has ` + size)
	setting      = words.Lazy(`\b(?:PYTORCH_\w+=[\w.:,]+|PYTORCH_\w+_CONF|max_split_size_mb|expandable_segments:True)`)
	shapeOf      = words.Lazy(`shape ?\[([\d,\s]*)\]`)
	typeOf       = words.Lazy(`and type (\w+)`)
	allocatorOf  = words.Lazy(`(?:by allocator |Allocator \()(\w+)`)
	xlaPart      = words.Lazy(`(?m)^\s*((?:parameter|constant|maybe_live_out|preallocated temp|total) (?:allocation|fragmentation)):\s*` + size)
	twoDecimals  = words.Lazy(`\d+\.\d\d ?([KMGTP]i?B)`)
)

// maxMessage bounds a pasted text, in bytes; messages are a few hundred.
const maxMessage = 1 << 20

// ErrNoMessage says that a text holds no message that is known.
var ErrNoMessage = errors.New("holds no out-of-memory message that hightide knows")

// IsMessage finds a wording in the first bytes, which must be text.
func IsMessage(head []byte) bool {
	if strings.IndexByte(string(head), 0) >= 0 {
		return false
	}
	return wordingOf(string(head)) != nil
}

func wordingOf(text string) *wording {
	for i := range wordings {
		if wordings[i].match.MatchString(text) {
			return &wordings[i]
		}
	}
	return nil
}

// Read reads a message from a file, see Parse.
func Read(r io.Reader) (*mem.OOMMessage, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(text) > maxMessage {
		return nil, fmt.Errorf("a message of more than %d bytes", maxMessage)
	}
	return Parse(string(text))
}

// Parse reads an out-of-memory message out of a text, as people paste it: alone, or the last of a
// log. Figures that the message does not state are absent.
func Parse(text string) (*mem.OOMMessage, error) {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\r' }), "")
	w := wordingOf(text)
	if w == nil {
		return nil, ErrNoMessage
	}
	if all := w.match.Regexp().FindAllStringIndex(text, -1); len(all) > 0 { // the last: a log has what came before
		begin := strings.LastIndexByte(text[:all[len(all)-1][0]], '\n') + 1
		text = text[begin:]
	}
	m := &mem.OOMMessage{Framework: w.framework, Wording: w.name, Versions: w.versions, Backend: "cuda",
		Text: strings.TrimSpace(text)}
	if found := backend.FindStringSubmatch(text); found != nil {
		m.Backend = strings.ToLower(found[1])
	}
	line := strings.Join(strings.Fields(text), " ")
	for _, p := range w.parts {
		to := p.to(m)
		if found := p.pattern.FindStringSubmatch(line); found != nil && !to.Known() {
			*to = p.read(found[1])
		}
	}
	finishMessage(m, w, line, text)
	return m, nil
}

func (p part) read(text string) mem.Optional {
	if p.plain {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return mem.Optional{}
		}
		return mem.Some(n)
	}
	return parseSize(text)
}

// units in bytes; in every message known the decimal words mean binary units.
var units = map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40, 'P': 1 << 50}

// parseSize reads "15.61 GiB", "0 bytes", "48.5KiB", "184549376B".
func parseSize(text string) mem.Optional {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		return mem.Optional{}
	}
	value, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return mem.Optional{}
	}
	unit := strings.TrimSpace(text[end:])
	if scale, ok := units[unit[0]]; ok {
		value *= scale
	}
	if value > float64(mem.MaxSize) {
		return mem.Optional{}
	}
	return mem.Some(int64(math.Round(value)))
}
