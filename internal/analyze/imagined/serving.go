package imagined

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// serving takes the processes of an LLM server together; nil where the program is none, or trains.
func serving(run *mem.Run) *report.Serving {
	if !run.Serves() {
		return nil
	}
	s := &report.Serving{}
	var last int64
	failed, ended := run.Uncaught()
	for _, part := range run.Imagined.Serving {
		s.Engine, s.Version = part.Engine, part.Version
		s.Answers = s.Answers || part.Answers
		s.Ready = s.Ready || part.Step == mem.ServingReady && (part.KVTokens.Known() || part.Answers)
		switch {
		case part.Step == "":
		case ended && failed.Process == part.Process:
			s.Step, last = part.Step, 1<<62
		case part.Time >= last:
			s.Step, last = part.Step, part.Time
		}
		s.ServingFigures = largest(s.ServingFigures, part.ServingFigures)
	}
	if s.Ready {
		s.Step = mem.ServingReady
	}
	return s
}

// largest has of each figure the larger one. Ranks that share a model take nearly the same, and the fullest decides;
// settings are the same everywhere.
func largest(a, b mem.ServingFigures) mem.ServingFigures {
	for _, pair := range []struct{ to, from *mem.Optional }{{&a.KVTokens, &b.KVTokens}, {&a.KVBytes, &b.KVBytes},
		{&a.KVHost, &b.KVHost}, {&a.KVBlocks, &b.KVBlocks}, {&a.BlockSize, &b.BlockSize}, {&a.MaxModelLen, &b.MaxModelLen},
		{&a.MaxSeqs, &b.MaxSeqs}, {&a.MaxBatched, &b.MaxBatched}, {&a.MaxCaptured, &b.MaxCaptured},
		{&a.Weights, &b.Weights}, {&a.WeightsNeeded, &b.WeightsNeeded},
		{&a.Activations, &b.Activations}, {&a.Graphs, &b.Graphs},
		{&a.GraphsReserved, &b.GraphsReserved}, {&a.NonTorch, &b.NonTorch}, {&a.Budget, &b.Budget},
		{&a.KVNeeded, &b.KVNeeded}, {&a.LongestLen, &b.LongestLen}, {&a.LongestOfModel, &b.LongestOfModel},
		{&a.TensorParallel, &b.TensorParallel}, {&a.LoadAnswered, &b.LoadAnswered}, {&a.LoadRunning, &b.LoadRunning},
		{&a.LoadBlocks, &b.LoadBlocks}, {&a.LoadPreempted, &b.LoadPreempted}} {
		pair.to.Raise(*pair.from)
	}
	for _, pair := range []struct{ to, from *mem.Optional }{{&a.Free, &b.Free}, {&a.KVAvailable, &b.KVAvailable},
		{&a.Suggested, &b.Suggested}} {
		if least, ok := pair.from.Get(); ok && least <= pair.to.Or(least) { // the GPU with least room decides
			*pair.to = *pair.from
		}
	}
	a.AskedAtOnce = max(a.AskedAtOnce, b.AskedAtOnce)
	a.MaxConcurrency, a.Utilization = max(a.MaxConcurrency, b.MaxConcurrency), max(a.Utilization, b.Utilization)
	if a.KVType == "" {
		a.KVType = b.KVType
	}
	a.CUDAGraphs = a.CUDAGraphs || b.CUDAGraphs
	a.LoadRefused = cmp.Or(a.LoadRefused, b.LoadRefused)
	return a
}

// short is how much memory a server's start lacks that its engine refused; 0 where it did not.
func short(s *report.Serving) mem.Bytes {
	switch {
	case s == nil || s.Ready:
		return 0
	case s.Step == mem.ServingKVCache && s.KVNeeded.Known() && s.KVAvailable.Known():
		return max(0, mem.Bytes(s.KVNeeded.Or(0)-s.KVAvailable.Or(0)))
	case s.Step == mem.ServingDevice && s.Budget.Known() && s.Free.Known():
		return max(0, mem.Bytes(s.Budget.Or(0)-s.Free.Or(0)))
	case s.Step == mem.ServingWeights && s.WeightsNeeded.Known() && s.Free.Known():
		return max(0, mem.Bytes(s.WeightsNeeded.Or(0)-s.Free.Or(0)))
	}
	return 0
}

// atOnce is "13 sequences of 32,768 tokens at once". An engine may be set to run fewer than there is room for.
func atOnce(s *report.Serving, length int64) string {
	whole := int64(s.MaxConcurrency)
	if whole == 0 {
		return fmt.Sprintf("less than one sequence of %s tokens", report.Count(length))
	}
	text := fmt.Sprintf("%s of %s tokens at once", report.Counted(whole, "sequence"), report.Count(length))
	if most, ok := s.MaxSeqs.Get(); ok && most < whole {
		text += fmt.Sprintf(", of which %s runs %s", seqsSetting(s), report.Count(most))
	}
	return text
}

// seqsSetting is the engine's name for how many sequences run at once.
func seqsSetting(s *report.Serving) string {
	if s.Engine == "SGLang" {
		return "max_running_requests"
	}
	return "max_num_seqs"
}

// servingParts is what the memory is for: "weights 15.0 GiB, KV cache 55.0 GiB, …".
func servingParts(s *report.Serving) string {
	var parts []string
	for _, part := range servingMemory(s) {
		if bytes, ok := part.bytes.Get(); ok {
			text := fmt.Sprintf("%s %v", part.name, mem.Bytes(bytes))
			if r := s.GraphRange; r != nil && part.name == graphsName {
				text += fmt.Sprintf(" (%v to %v)", r.Low, r.High)
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, ", ")
	if s.TensorParallel.Or(1) > 1 {
		text = "on each GPU " + text
	}
	if host, ok := s.KVHost.Get(); ok {
		text += fmt.Sprintf(", and %v of KV cache on the host", mem.Bytes(host))
		if s.TensorParallel.Or(1) > 1 {
			text += " for each"
		}
	}
	return text
}

const graphsName = "CUDA graphs"

type servingPart struct {
	name  string
	bytes mem.Optional
}

// servingMemory is what an engine says of its memory, in the order people read it.
func servingMemory(s *report.Serving) []servingPart {
	return []servingPart{{"weights", s.Weights}, {"KV cache", s.KVBytes}, {"activations of the largest batch", s.Activations},
		{graphsName, s.Graphs}, {"beside the allocator", s.NonTorch}}
}

// refusal is why a server does not start, by the step that lacked memory: "" where another step failed.
func refusal(v *report.Imagined) string {
	s := v.Serving
	asked := ""
	if bytes, ok := v.Asked.Get(); ok {
		asked = fmt.Sprintf(", %v in use of %v and %v asked for", mem.Bytes(v.Used.Or(0)), v.Total, mem.Bytes(bytes))
	}
	switch lack := short(s); {
	case lack > 0 && s.Step == mem.ServingDevice:
		return fmt.Sprintf("%s is to use %.0f %% of the memory, %v, and %v are free at its start: %v are missing", s.Engine,
			100*s.Utilization, mem.Bytes(s.Budget.Or(0)), mem.Bytes(s.Free.Or(0)), lack)
	case lack > 0 && s.Step == mem.ServingWeights:
		each := ""
		if s.TensorParallel.Or(1) > 1 {
			each = " on each GPU"
		}
		return fmt.Sprintf("the weights take %v%s, and %v were free for them: %v are missing", mem.Bytes(s.WeightsNeeded.Or(0)),
			each, mem.Bytes(s.Free.Or(0)), lack)
	case lack > 0 && s.KVAvailable.Or(0) <= 0:
		return fmt.Sprintf("nothing is left for the KV cache of one sequence of %s tokens, %v: %v are missing of the %v that "+
			"%s may use", report.Count(s.MaxModelLen.Or(0)), mem.Bytes(s.KVNeeded.Or(0)), lack, mem.Bytes(s.Budget.Or(0)),
			s.Engine)
	case lack > 0:
		return fmt.Sprintf("the KV cache of one sequence of %s tokens takes %v, and %v are left for it: %v are missing",
			report.Count(s.MaxModelLen.Or(0)), mem.Bytes(s.KVNeeded.Or(0)), mem.Bytes(s.KVAvailable.Or(0)), lack)
	case v.Verdict != mem.VerdictOOM:
		return ""
	case s.Ready:
		return "out of memory once it served" + asked
	}
	return "out of memory " + while[s.Step] + asked
}

// wholeStart says what a start takes in all that failed after it had its KV cache, as far as that was tried; "" where
// it failed before.
func wholeStart(v *report.Imagined) string {
	if v.Serving.Ready || !v.Serving.AfterCache() {
		return ""
	}
	at := slices.IndexFunc(v.Tries, func(t mem.Try) bool { return t.Kind == mem.TryMemory && t.Fits() })
	if at < 0 {
		return "how much the rest of its start takes is not known"
	}
	try := &v.Tries[at]
	text := fmt.Sprintf("with this KV cache its whole start takes %v: %v are missing", mem.Bytes(try.Used.Or(0)),
		mem.Bytes(-try.Headroom.Or(0)))
	if try.Note != "" {
		text += "; " + try.Note
	}
	return text
}

// while says what a start was doing.
var while = map[string]string{"": "at its start", mem.ServingDevice: "when it looked at the GPU",
	mem.ServingWeights: "while it loaded the weights", mem.ServingProfiling: "while it profiled the largest batch",
	mem.ServingKVCache: "while it allocated the KV cache", mem.ServingWarmUp: "while it warmed up",
	mem.ServingGraphs: "while it captured CUDA graphs", mem.ServingReady: "after a GPU's start"}

// While says what a start was at: "while it captured CUDA graphs".
func While(s *report.Serving) string { return while[s.Step] }

// judgeUsers holds a server against the users that it is to serve at once.
func judgeUsers(setup *mem.ImaginedSetup, v *report.Imagined) {
	s := v.Serving
	if setup.Users == 0 || s == nil {
		return
	}
	s.Users, s.Tokens = mem.Some(int64(setup.Users)), mem.Some(cmp.Or(int64(setup.Tokens), s.MaxModelLen.Or(0)))
	if !s.Ready || !v.Fits() {
		return
	}
	held := int64(s.MaxConcurrency)
	if setup.Tokens > 0 {
		held = int64(s.AskedAtOnce)
	}
	if s.MaxModelLen.Known() && s.MaxModelLen.Or(0) < int64(setup.Tokens) {
		held = 0
	}
	if v.Users = mem.Some(min(held, s.MaxSeqs.Or(held))); v.Users.Or(0) < int64(setup.Users) {
		v.Verdict = mem.VerdictFew
	}
}

// tooFew is why a server that starts does not serve the users that were asked for.
func tooFew(v *report.Imagined) string {
	s := v.Serving
	tokens, held := report.Count(s.Tokens.Or(0)), v.Users.Or(0)
	switch {
	case s.MaxModelLen.Or(0) < s.Tokens.Or(0):
		return fmt.Sprintf("its sequences have %s tokens at most (--max-model-len)", report.Count(s.MaxModelLen.Or(0)))
	case !s.KVTokens.Known():
		return fmt.Sprintf("%s keeps no KV cache for several sequences, and how much each takes is not known", s.Engine)
	case held == s.MaxSeqs.Or(-1):
		return fmt.Sprintf("it runs %s at once (--max-num-seqs)", report.Counted(held, "sequence"))
	}
	return fmt.Sprintf("its KV cache of %s tokens holds %s of %s tokens at once", report.Count(s.KVTokens.Or(0)),
		report.Counted(held, "sequence"), tokens)
}

// gainText says what changing one setting of a server brought, over those that were tried.
func gainText(v *report.Imagined) string {
	now, most := v.KVTokens.Or(0), (*mem.Try)(nil)
	served, ran, failed := 0, 0, int64(0)
	for i := range v.Variations {
		try := &v.Variations[i]
		switch try.Verdict {
		case mem.VerdictFailed:
			failed++
			continue
		case mem.VerdictNone:
			continue
		}
		ran++
		if tokens, ok := try.KVTokens.Get(); ok && try.Fits() {
			served++
			if tokens > now && (most == nil || tokens > most.KVTokens.Or(0)) {
				most = try
			}
		}
	}
	if ran == 0 {
		return ""
	}
	text := fmt.Sprintf("One setting was changed at a time, each in an engine of its own: %d of %d served", served, ran)
	if failed > 0 {
		text += fmt.Sprintf("; %s failed for another reason than memory", report.Counted(failed, "more start"))
	}
	text += "."
	if most != nil {
		text += fmt.Sprintf(" %s holds most: %s tokens of KV cache, %s more (%s).", most.What, report.Count(most.KVTokens.Or(0)),
			report.Count(most.KVTokens.Or(0)-now), v.Label)
	}
	return text
}

// promiseText holds against the truth what an engine's log promises; "" where that was not tried.
func promiseText(v *report.Imagined) string {
	if v.Serving == nil {
		return ""
	}
	for _, try := range v.Variations {
		if !strings.HasPrefix(try.Kind, mem.TryPromise) {
			continue
		}
		says := fmt.Sprintf("%s's log says that a KV cache of %v uses all of the GPU (--kv-cache-memory=%d): ", v.Serving.Engine,
			mem.Bytes(v.Serving.Suggested.Or(0)), v.Serving.Suggested.Or(0))
		switch room, ok := try.Headroom.Get(); {
		case try.Verdict == mem.VerdictOOM:
			return says + "that is out of memory " + strings.TrimSuffix(try.Note, ".") + ", as was tried."
		case ok && try.Verdict == mem.VerdictTight:
			return says + fmt.Sprintf("that was tried and leaves %v, less than the %v below which other drivers may not fit.",
				mem.Bytes(room), v.Tight)
		}
	}
	return ""
}

// overText says by how much a server passes the share that it was given, "" where it does not.
func overText(v *report.Imagined) string {
	s := v.Serving
	if s == nil || !s.Ready || !s.Budget.Known() || v.Used.Or(0) <= s.Budget.Or(0) {
		return ""
	}
	return fmt.Sprintf("At the peak %v more are in use than the %.0f %% of the memory, %v, that %s divides: the context, and "+
		"what is taken after the KV cache was sized, come on top.", mem.Bytes(v.Used.Or(0)-s.Budget.Or(0)), 100*s.Utilization,
		mem.Bytes(s.Budget.Or(0)), s.Engine)
}

// servingTable is the server in figures.
func servingTable(v *report.Imagined) report.Table {
	s := v.Serving
	title := strings.TrimSpace(s.Engine + " " + s.Version)
	if s.Ready {
		title = "What " + title + " serves"
	} else {
		title += ", as far as its start came"
	}
	t := report.Table{Name: "serving", Title: title,
		Columns: []report.Column{report.TextColumn("what", "what"), report.BytesColumn("bytes", "bytes", mem.Imagined),
			{Name: "count", Title: "tokens, sequences", Unit: mem.UnitCount, Label: mem.Imagined}}}
	for _, part := range servingMemory(s) {
		if part.bytes.Known() {
			t.Add(part.name, part.bytes, mem.Optional{})
		}
	}
	if s.KVHost.Known() {
		t.Add("KV cache on the host", s.KVHost, mem.Optional{})
	}
	for _, count := range []servingPart{{"tokens of KV cache", s.KVTokens}, {"blocks of KV cache", s.KVBlocks}, {"tokens of a block", s.BlockSize},
		{"longest sequence, in tokens", s.MaxModelLen}, {"sequences at once, by " + seqsSetting(s), s.MaxSeqs},
		{"tokens of the largest batch", s.MaxBatched},
		{"requests played, answered", s.LoadAnswered}, {"of them at once, at most", s.LoadRunning},
		{"blocks that they had at most", s.LoadBlocks}, {"preemptions", s.LoadPreempted}} {
		if count.bytes.Known() {
			t.Add(count.name, mem.Optional{}, count.bytes)
		}
	}
	return t
}

// loadText is what the requests that were played took; "" where none were.
func loadText(run *mem.Run, v *report.Imagined) string {
	s := v.Serving
	load, ok := mem.ParseLoad(run.Imagined.Setup.Load)
	if !ok || s == nil || !s.LoadAnswered.Known() {
		return ""
	}
	text := fmt.Sprintf("%s of %s + %s tokens at once", report.Counted(load.Sequences, "sequence"), report.Count(load.Prompt),
		report.Count(load.Output))
	blocks, ok := s.LoadBlocks.Get()
	if !ok {
		return text + " were played; what they took of the KV cache was not seen."
	}
	text += fmt.Sprintf(" had %s of %s blocks of the KV cache at most, %s at a time", report.Count(blocks),
		report.Count(s.KVBlocks.Or(0)), report.Count(s.LoadRunning.Or(0)))
	switch n, known := s.LoadPreempted.Get(); {
	case !known:
		return text + "."
	case n > 0:
		return text + fmt.Sprintf("; %s: a sequence lost its blocks and was computed anew.", report.Counted(n, "preemption"))
	}
	return text + "; no preemption."
}

// unready says how far a server had come that was ended, or ended itself, before it could serve.
func unready(v *report.Imagined) string {
	how := "it ended"
	if v.StoppedFor == report.StoppedForDuration {
		how = "it was stopped by --duration"
	}
	return fmt.Sprintf("%s before %s was ready, %s", how, v.Serving.Engine, while[v.Serving.Step])
}

// servesWith is the smallest change, of those that were tried, by which a server starts that does not: "it serves with
// --max-model-len 29472". Where that leaves little room, the smallest that leaves enough is told too.
func servesWith(v *report.Imagined) string {
	best := smallest(v.Tries, mem.VerdictFits, mem.VerdictTight)
	if best == nil {
		return ""
	}
	tokens := report.Count(best.KVTokens.Or(0)) + " tokens of KV cache"
	if best.Verdict == mem.VerdictFits {
		return "it serves " + best.with() + ": " + tokens
	}
	text := "it serves " + best.with() + ", though it is tight: " + tokens
	if roomy := smallest(v.Tries, mem.VerdictFits); roomy != nil {
		text += fmt.Sprintf("; with room to spare %s: %s tokens", roomy.with(), report.Count(roomy.KVTokens.Or(0)))
	}
	return text
}

// change is what was tried, and how much of a change it is: a setting, more GPUs, another GPU.
type change struct {
	*mem.Try
	size int
}

// smallest is the smallest change with one of these verdicts; of two as large the one that leaves room, then the first.
func smallest(tries []mem.Try, verdicts ...mem.Verdict) (best *change) {
	for i := range tries {
		c := change{Try: &tries[i]}
		switch {
		case !c.KVTokens.Known() || c.Kind == mem.TryMemory || !slices.Contains(verdicts, c.Verdict):
			continue
		case c.Kind == mem.TryGPU:
			c.size = 2
		case strings.HasPrefix(c.Kind, mem.TryTwo):
			c.size = 1
		}
		fits := c.Verdict == mem.VerdictFits
		if best == nil || c.size < best.size || c.size == best.size && fits && best.Verdict != mem.VerdictFits {
			best = &c
		}
	}
	return best
}

// with is "with --enforce-eager", or "on a40".
func (c *change) with() string {
	if c.Kind == mem.TryGPU {
		return c.What
	}
	return "with " + c.What
}
