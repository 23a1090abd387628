package oomtext

import (
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// finishMessage takes what is not a single figure: processes, settings, XLA's table, the tensor.
func finishMessage(m *mem.OOMMessage, w *wording, line, text string) {
	for _, p := range otherProcess.Regexp().FindAllStringSubmatch(line, -1) {
		pid, _ := strconv.ParseInt(p[1], 10, 64)
		if used, ok := parseSize(p[2]).Get(); ok {
			m.Processes = append(m.Processes, mem.OOMProcess{PID: pid, Used: mem.Bytes(used)})
		}
	}
	for _, advice := range setting.Regexp().FindAllString(line, -1) {
		if advice = strings.TrimRight(advice, "."); !slices.Contains(m.Advice, advice) {
			m.Advice = append(m.Advice, advice)
		}
	}
	for _, p := range xlaPart.Regexp().FindAllStringSubmatch(text, -1) {
		if size, ok := parseSize(p[2]).Get(); ok {
			m.Parts = append(m.Parts, mem.OOMPart{Name: p[1], Size: mem.Bytes(size)})
		}
	}
	takeLists(m, text)
	m.Type, m.Allocator = group(typeOf, line), group(allocatorOf, line)
	tensor(m, group(shapeOf, line))
	complement(m)
	for _, unit := range twoDecimals.Regexp().FindAllStringSubmatch(line, -1) { // half of the last digit
		m.Rounding = max(m.Rounding, mem.Bytes(units[unit[1][0]]/200))
	}
	m.Cut = w.name == "torch2-sentence" && !m.Unused.Known()
}

func group(pattern *words.Pattern, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// typeBytes are TensorFlow's types by their names in messages.
var typeBytes = map[string]int64{"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int32": 4, "int64": 8, "uint8": 1,
	"int8": 1, "int16": 2, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex64": 8, "complex128": 16}

// tensor computes what a tensor takes from its shape and type. Without a type, the request stays
// unknown: it is not guessed.
func tensor(m *mem.OOMMessage, shape string) {
	if shape == "" {
		return
	}
	elements := int64(1)
	for field := range strings.SplitSeq(shape, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
		if err != nil || n < 0 || n > 0 && elements > int64(mem.MaxSize)/n {
			m.Shape = nil
			return
		}
		m.Shape = append(m.Shape, n)
		elements *= n
	}
	if each, ok := typeBytes[m.Type]; ok && !m.Requested.Known() && elements <= int64(mem.MaxSize)/each {
		m.Requested = mem.Some(elements * each)
	}
}

// complement derives reserved and unused from each other: what the wordings state differs.
func complement(m *mem.OOMMessage) {
	allocated, ok := m.Allocated.Get()
	if !ok {
		return
	}
	if unused, ok := m.Unused.Get(); ok && !m.Reserved.Known() {
		m.Reserved = mem.Some(allocated + unused)
	} else if reserved, ok := m.Reserved.Get(); ok && !m.Unused.Known() {
		m.Unused = mem.Some(max(0, reserved-allocated))
	}
}
