// Package oomtext reads out-of-memory messages as people paste them: the figures that frameworks print (parts.go),
// and what they mean in sentences (words.go).
//
//	a paste ──▶ plain lines (paste.go) ──▶ Parse: PyTorch's and XLA's figures (parts.go),
//	                                       else other programs' (others.go, hosts.go) ──▶ mem.OOMMessage ──▶ Words
package oomtext

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// wording is one way in which something says that it is out of memory. Parts are looked for one by
// one, since messages are pasted with pieces missing.
type wording struct {
	name, framework, versions string
	backend                   string // whose memory; "": of a GPU by CUDA, unless the message says otherwise
	match                     *words.Pattern
	parts                     []part
	says                      []string // what it means (others.go); nil: the figures are explained (words.go)
}

// part is a figure of a message: the first group of its pattern, and where that goes unless it is known.
type part struct {
	pattern *words.Pattern
	set     func(m *mem.OOMMessage, text string)
}

// size is how they print one; "GB" is PyTorch's older word for GiB, "Gi" is Kubernetes', "G" XLA's.
const size = `(\d[\d,]*(?:\.\d+)? ?(?:bytes|[kKMGTP]i?[bB]?|B)\b)`

func find(pattern string, to func(*mem.OOMMessage) *mem.Optional) part {
	return part{words.Lazy(strings.ReplaceAll(pattern, "SIZE", size)), setter(to, parseSize)}
}

func findNumber(pattern string, to func(*mem.OOMMessage) *mem.Optional) part {
	return part{words.Lazy(pattern), setter(to, parseNumber)}
}

// findKilobytes is for a number of KiB without a unit.
func findKilobytes(pattern string, to func(*mem.OOMMessage) *mem.Optional) part {
	return part{words.Lazy(pattern), setter(to, func(text string) mem.Optional { return parseSize(text + "K") })}
}

func findText(pattern string, to func(*mem.OOMMessage) *string) part {
	return part{words.Lazy(pattern), func(m *mem.OOMMessage, text string) { *to(m) = text }}
}

func setter(to func(*mem.OOMMessage) *mem.Optional, read func(string) mem.Optional) func(*mem.OOMMessage, string) {
	return func(m *mem.OOMMessage, text string) {
		if figure := to(m); !figure.Known() {
			*figure = read(text)
		}
	}
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
func pid(m *mem.OOMMessage) *mem.Optional       { return &m.PID }
func tokens(m *mem.OOMMessage) *mem.Optional    { return &m.Tokens }
func name(m *mem.OOMMessage) *string            { return &m.Name }

// wordings are those of the frameworks that print figures, the more particular first.
var wordings = []wording{
	{name: "mps", framework: "pytorch", versions: "1.12 or later", match: words.Lazy(`MPS backend out of memory`),
		parts: []part{
			find(`Tried to allocate SIZE`, requested), find(`MPS allocated: SIZE`, allocated),
			find(`other allocations: SIZE`, other), find(`max allowed: SIZE`, allowed)}},
	{name: "torch1-cached", framework: "pytorch", versions: "0.4 to 1.3",
		match: words.Lazy(`out of memory\.\s+Tried to allocate [^(]*\([^)]* cached`), parts: parenthesis},
	{name: "torch1-parenthesis", framework: "pytorch", versions: "1.4 to 2.0",
		match: words.Lazy(`out of memory\.\s+Tried to allocate [^(.]*[\d.]+ ?\w+ \([A-Z]+ \d+;`), parts: parenthesis},
	{name: "torch2-sentence", framework: "pytorch", versions: "2.1 or later",
		match: words.Lazy(`(?:CUDA|HIP|XPU|GPU|MTIA|PrivateUse1|\w+)\s+out of memory\.\s+Tried to allocate`), parts: []part{
			find(`Tried to allocate SIZE`, requested), findNumber(`GPU (\d+) has`, device),
			find(`total capaci?ty of SIZE`, total), find(`of which SIZE is free`, free),
			find(`free\. SIZE allowed;`, allowed), find(`[Tt]his process has SIZE`, inUse),
			find(`Of the allocated memory SIZE is allocated`, allocated),
			find(`with SIZE allocated in private pools`, private),
			find(`and SIZE is reserved by PyTorch but`, unused)}},
	{name: "torch-async", framework: "pytorch",
		match: words.Lazy(`Allocation on device \d+ would exceed allowed memory`), parts: []part{
			findNumber(`Allocation on device (\d+)`, device), find(`Currently allocated ?: SIZE`, allocated),
			find(`Requested ?: SIZE`, requested),
			find(`Device limit ?: SIZE`, total), find(`Free \(according to CUDA\) ?: SIZE`, free),
			find(`memory fraction\) ?: SIZE`, allowed)}},
	{name: "torch-cpu", framework: "pytorch", backend: "cpu",
		match: words.Lazy(`DefaultCPUAllocator: (?:can't|not enough memory)`), parts: []part{
			find(`you tried to allocate SIZE`, requested), find(`tried to allocate SIZE`, requested)}},
	{name: "torch0-thc", framework: "pytorch", versions: "0.3 or older",
		match: words.Lazy(`cuda runtime error \(2\) : out of memory`)},
	{name: "jax-xla", framework: "jax", backend: "xla", // what its allocator logged before it says less
		match: words.Lazy(`Out of memory while trying to allocate [^\n]*\[executable_name=`), parts: xla},
	{name: "bfc-attempt", framework: "bfc", match: words.Lazy(`Allocator \(\w+\) ran out of memory trying to allocate[^\n]*not a failure`), parts: bfc, says: []string{
		"TensorFlow or JAX (they share this allocator) tried to get {asked} on the GPU and could not.",
		"The caller had another way, so this is not a failure: it says that more memory might make it faster."}},
	{name: "bfc", framework: "bfc", match: words.Lazy(`Allocator \(\w+\) ran out of memory trying to allocate`),
		parts: bfc, says: []string{
			"TensorFlow or JAX (they share this allocator) asked for {asked} on the GPU and could not get it. | TensorFlow or " +
				"JAX (they share this allocator) could not allocate on the GPU.",
			"Of the allocator's limit of {limit}, {used} were in use.",
			"The lines after it in the log list the chunks in use by size: their sum tells full from fragmented."}},
	{name: "jax-xla", framework: "jax", backend: "xla",
		match: words.Lazy(`(?i)(?:out of memory (?:while )?trying to allocate|RESOURCE_EXHAUSTED: Out of memory allocating|Failed to allocate request for)`), parts: xla},
	{name: "tensorflow-op", framework: "tensorflow", match: words.Lazy(`failed to allocate memory \[Op:\w+\]`),
		says: []string{
			"TensorFlow could not allocate what an operation gives; the message does not say how much it asked for.",
			"The lines of its allocator (bfc_allocator) before it in the log do."}},
	{name: "tensorflow-bfc", framework: "tensorflow", match: words.Lazy(`OOM when allocating tensor`), parts: []part{
		findNumber(`device:GPU:(\d+)`, device)}},
}

var xla = []part{find(`(?:trying to allocate|allocating) SIZE`, requested),
	find(`Failed to allocate request for [\d.]+ ?\w+ \((\d+B)\)`, requested),
	find(`Failed to allocate request for SIZE`, requested), findNumber(`device ordinal (\d+)`, device)}

var bfc = []part{find(`trying to allocate SIZE`, requested), findNumber(`\bLimit:\s+(\d+)`, allowed),
	findNumber(`\bInUse:\s+(\d+)`, inUse)}

var parenthesis = []part{
	find(`Tried to allocate SIZE`, requested), findNumber(`\([A-Z]+ (\d+);`, device),
	find(`; SIZE total capacity`, total), find(`; SIZE already allocated`, allocated),
	find(`; SIZE free`, free), find(`; SIZE reserved in total`, reserved), find(`; SIZE cached`, unused),
	find(`; SIZE allowed`, allowed)}

var (
	backend      = words.Lazy(`\b([A-Z]{2,})(?: backend)? out of memory`)
	otherProcess = words.Lazy(`Process (\d+) has ` + size)
	setting      = words.Lazy(`\b(?:PYTORCH_\w+=[\w.:,]+|PYTORCH_\w+_CONF|max_split_size_mb|expandable_segments:True)`)
	shapeOf      = words.Lazy(`shape ?\[([\d,\s]*)\]`)
	typeOf       = words.Lazy(`and type (\w+)`)
	allocatorOf  = words.Lazy(`(?:by allocator |Allocator \()(\w+)`)
	executableOf = words.Lazy(`\[executable_name='([^']+)'\]`)
	xlaPart      = words.Lazy(`(?m)^\s*((?:parameter|constant|maybe_live_out|preallocated temp|total) (?:allocation|fragmentation)):\s*` + size)
	twoDecimals  = words.Lazy(`\d+\.\d\d ?([KMGTP]i?B)`)
)

// maxMessage bounds a pasted text, in bytes; messages are a few hundred.
const maxMessage = 1 << 20

// ErrNoMessage says that a text holds no message that is known.
var ErrNoMessage = errors.New("holds no out-of-memory message that hightide knows")

// IsMessage finds a wording in the first bytes, which must be text.
func IsMessage(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	_, w, _ := whole(string(head))
	return w != nil
}

func wordingOf(text string) *wording {
	for _, list := range [][]wording{wordings, others} {
		for i := range list {
			if list[i].match.MatchString(text) {
				return &list[i]
			}
		}
	}
	return nil
}

// Read reads a message from a file, see Parse. Of a long log the end counts.
func Read(r io.Reader) (*mem.OOMMessage, error) {
	var text []byte
	for {
		more, err := io.ReadAll(io.LimitReader(r, maxMessage))
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if len(more) == 0 {
			return Parse(string(text))
		}
		text = append(text[max(0, len(text)-maxMessage):], more...)
	}
}

// Parse reads an out-of-memory message out of a text, as people paste it: alone, or the last of a
// log. Figures that the message does not state are absent.
func Parse(text string) (*mem.OOMMessage, error) {
	text, w, readings := whole(text)
	if w == nil {
		return nil, ErrNoMessage
	}
	all := w.match.Regexp().FindAllStringIndex(text, -1) // empty where only an alternative of it matches by itself
	var m *mem.OOMMessage
	for i := len(all) - 1; i >= 0 && (m == nil || !m.Requested.Known() && !m.InUse.Known() && !m.Allocated.Known()); i-- {
		begin, end := all[i][0], all[i][1]         // the last: a log has what came before; what led to it stands above it
		if begin, _ = lineAt(text, begin); i > 0 { // of the message before it nothing
			begin = max(begin, all[i-1][1])
		}
		_, end = lineAt(text, end)
		if m = parse(text[begin:], w, readings); i == len(all)-1 || m.Requested.Known() {
			m.Elsewhere = elsewhere(text, w, begin, end)
		}
	}
	if m == nil {
		m = parse(text, w, readings)
	}
	return m, nil
}

// parse reads the figures of a message that begins the text.
func parse(text string, w *wording, readings []string) *mem.OOMMessage {
	m := &mem.OOMMessage{Framework: w.framework, Wording: w.name, Versions: w.versions, Backend: cmp.Or(w.backend, "cuda"),
		Text: strings.TrimSpace(text)}
	if found := backend.FindStringSubmatch(text); found != nil {
		m.Backend = strings.ToLower(found[1])
	}
	lines := append(together(text), readings...)
	for _, p := range w.parts {
		for _, line := range lines { // what is set stays
			if found := p.pattern.FindStringSubmatch(line); found != nil {
				p.set(m, found[1])
			}
		}
	}
	finishMessage(m, w, lines[0], text)
	return m
}

func parseNumber(text string) mem.Optional {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return mem.Optional{}
	}
	return mem.Some(n)
}

// units in bytes; in every message known the decimal words mean binary units.
var units = map[byte]float64{'k': 1 << 10, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40, 'P': 1 << 50}

// parseSize reads "15.61 GiB", "0 bytes", "48.5KiB", "184549376B", "17.44G", "8,589,934,592 bytes".
func parseSize(text string) mem.Optional {
	if strings.ContainsRune(text, ',') && !grouped.MatchString(strings.TrimRight(text, " kKMGTPiBbytes")) {
		return mem.Optional{}
	}
	text = strings.ReplaceAll(text, ",", "")
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
