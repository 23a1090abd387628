package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// costsOf is what settings cost, in words, but for a length that was asked for. How much slower that is nobody
// measured: no kernel ran.
func costsOf(set []Setting, asked int) string {
	var parts []string
	for _, one := range set {
		if one.Argument == lengthOf && one.Value == strconv.Itoa(asked) {
			continue
		}
		if words := costWords[one.Argument]; words != "" {
			if strings.Contains(words, "%s") {
				value := one.Value
				if n, err := strconv.ParseInt(value, 10, 64); err == nil {
					value = report.Count(n)
				}
				words = fmt.Sprintf(words, value)
			}
			parts = append(parts, words)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing")
}

// costWords are what another value of an argument costs.
var costWords = map[string]string{
	lengthOf:                     "no sequence is longer than %s tokens",
	"kv_cache_dtype":             "keys and values are rounded to 8 bits",
	"tensor_parallel_size":       "%s GPUs, which exchange data in each layer",
	"enforce_eager":              "no CUDA graphs: slower decoding",
	"max_cudagraph_capture_size": "batches above %s have no CUDA graph: slower decoding",
	"cuda_graph_sizes":           "batches above %s have no CUDA graph: slower decoding",
	"max_num_seqs":               "at most %s sequences run at once, and others wait",
	"max_num_batched_tokens":     "prompts are read %s tokens at a time",
}

// sentence is the recommendation.
func (v *Server) sentence(r *Result) string {
	p := v.Chosen
	if p == nil {
		var most *ServerPoint
		for _, one := range v.Points {
			tokens := one.Verdict.KVTokens
			if tokens.Known() && (most == nil || tokens.Or(0) > most.Verdict.KVTokens.Or(0)) {
				most = one
			}
		}
		if most == nil {
			return fmt.Sprintf("No settings that were tried have the server start on %s.", r.GPUName)
		}
		with := "as it is"
		if len(most.Settings) > 0 {
			with = "with " + most.What
		}
		return fmt.Sprintf("No settings that were tried reach the goal on %s: the most are %s, %s.", r.GPUName,
			v.holds(most), with)
	}
	on := r.GPUName
	if p.GPUs > 1 {
		on = fmt.Sprintf("%d × %s", p.GPUs, on)
	}
	if len(p.Settings) == 0 {
		return fmt.Sprintf("Leave the command as it is: %s on %s.", v.holds(p), on)
	}
	cost := ""
	if p.Costs != "nothing" {
		cost = "; " + p.Costs
	}
	return fmt.Sprintf("Add %s: %s on %s%s.", p.What, v.holds(p), on, cost)
}

// holds says how many tokens a start holds, and sequences.
func (v *Server) holds(p *ServerPoint) string {
	text := report.Count(p.Verdict.KVTokens.Or(0)) + " tokens of KV cache"
	length := cmp.Or(int64(v.Tokens), p.Length.Or(0))
	if held, known := p.Held.Get(); known && length > 0 {
		text += fmt.Sprintf(", %s of %s tokens at once", report.Counted(held, "sequence"), report.Count(length))
	}
	return text
}

// table is tokens against what latency depends on: the command as it is, and each start than which no other holds as
// many tokens at no more cost.
func (v *Server) table(r *Result) *report.Table {
	count := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Unit: mem.UnitCount, Label: r.Label}
	}
	t := &report.Table{Name: "tune", Title: "Tokens against what latency depends on",
		Columns: []report.Column{{Name: "start", Title: "Start"}, {Name: "verdict", Title: "Verdict"},
			count("tokens", "KV tokens"), count("held", "At once"), count("length", "Length"), count("gpus", "GPUs"), count("sequences", "Seqs"),
			count("batched", "Batch"), {Name: "kv", Title: "KV type"}, {Name: "graphs", Title: "Graphs"},
			{Name: "share", Title: "Share"}}}
	for _, p := range v.Points {
		if !p.Best && !p.Chosen && p != v.first {
			continue
		}
		graphs, mark := "no", ""
		if p.Graphs {
			graphs = "yes"
		}
		switch {
		case p.Chosen:
			mark = "recommended"
		case p == v.first:
			mark = asItIs
		}
		t.Add(mark, string(p.Verdict.Verdict), p.Verdict.KVTokens, p.Held, p.Length, mem.Some(int64(p.GPUs)),
			p.Sequences, p.Batched, p.KVType, graphs, fmt.Sprintf("%.2f", p.Utilization))
	}
	return t
}

// text is the table, and the recommendation as the last sentence.
func (v *Server) text(r *Result, o report.TextOptions) string {
	var b strings.Builder
	b.WriteString(v.table(r).Text(o))
	fmt.Fprintf(&b, "%s in %s.\n", report.Counted(int64(r.Runs), "imagined start"), report.Duration(r.Duration))
	fmt.Fprintf(&b, "How long an answer takes is not known, as no kernel ran: the columns are what it depends on.\n")
	for _, p := range v.Points {
		if p.Verdict.Note != "" {
			fmt.Fprintf(&b, "%s: %s.\n", report.Clean(p.What), report.Clean(strings.TrimSuffix(p.Verdict.Note, ".")))
		}
	}
	for _, note := range slices.Compact(r.Notes) {
		fmt.Fprintf(&b, "Note: %s.\n", report.Clean(strings.TrimSuffix(note, ".")))
	}
	fmt.Fprintf(&b, "\n%s\n", report.Clean(r.Answer))
	if len(v.Command) > 0 && len(v.Chosen.Settings) > 0 {
		fmt.Fprintf(&b, "%s\n", report.Clean(mem.CommandLine(v.Command)))
	}
	return b.String()
}
