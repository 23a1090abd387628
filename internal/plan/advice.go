package plan

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/report"
)

// variation is a use that asks for less.
type variation struct {
	use    Use
	kind   string // what is changed
	amount int    // of what is asked less of: the more is left, the less is changed
	flags  string
	says   string
}

// mostChanges is how many are told.
const mostChanges = 5

// changes are what would let a cheaper GPU do; where nothing fits, any GPU. Each kind of change is told once, those
// first that change least in what the model answers: with the GPU on which least has to change, of these the cheapest.
func (f *facts) changes(r *Result, places []Place) []Alternative {
	limit := 0.0
	if best := r.row(r.Cheapest); best != nil {
		limit = best.Price
	} else if r.Smallest != "" {
		return []Alternative{} // no price is known: nothing is cheaper
	}
	var found []Alternative
	var ways []variation
	for i := range places {
		p := &places[i]
		row := f.at(p)
		if row.Verdict == Fits || limit > 0 && (row.Price == 0 || row.Price >= limit) {
			continue
		}
		for _, v := range f.variations(p, &row) {
			c, ok := f.try(p, v)
			if !ok || limit > 0 && c.Price >= limit {
				continue
			}
			at := slices.IndexFunc(ways, func(o variation) bool { return o.kind == v.kind })
			switch {
			case at < 0:
				ways, found = append(ways, v), append(found, c)
			case v.amount > ways[at].amount || v.amount == ways[at].amount && comparePrice(c.Price, found[at].Price) < 0:
				ways[at], found[at] = v, c
			}
		}
	}
	order := func(c Alternative) int {
		at := slices.IndexFunc(found, func(o Alternative) bool { return o == c })
		return slices.Index(kinds, ways[at].kind)
	}
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b Alternative) int { return cmp.Compare(order(a), order(b)) })
	return slices.Clip(append([]Alternative{}, sorted[:min(mostChanges, len(sorted))]...))
}

// try plans another use on a GPU; false: it does not fit for sure.
func (f *facts) try(p *Place, v variation) (Alternative, bool) {
	changed := f.of(v.use)
	if changed.possible() != nil {
		return Alternative{}, false
	}
	row := changed.at(p)
	return Alternative{row.key(), row.Price, v.flags, v.says, row.Room}, row.Verdict == Fits
}

// The kinds of changes, those first that change least.
const (
	byGPUs          = "gpus"
	byCheckpointing = "checkpointing"
	byCache         = "cache"
	byOptimizer     = "optimizer"
	byWeights       = "weights"
	byBoth          = "weights and cache"
	byBatch         = "batch"
	byUsers         = "users"
	bySeq           = "seq"
	byInt4          = "int4"
	byLoRA          = "lora"
	byQLoRA         = "qlora"
)

var kinds = []string{byGPUs, byCheckpointing, byCache, byOptimizer, byWeights, byBoth, byBatch, byUsers, bySeq, byInt4,
	byLoRA, byQLoRA}

// variations are uses that ask for less.
func (f *facts) variations(p *Place, row *Row) (all []variation) {
	add := func(kind, flags, says string, amount int, change func(*Use)) {
		v := variation{f.use, kind, amount, flags, says}
		change(&v.use)
		all = append(all, v)
	}
	f.lessTraining(add)
	f.fewerBits(add)
	if row.Users != nil && row.Users.Low > 0 && row.Users.Low < int64(f.use.Users) {
		n := int(row.Users.Low)
		add(byUsers, fmt.Sprintf("--users %d", n), report.Counted(int64(n), "user")+" at once", n,
			func(u *Use) { u.Users = n })
	}
	if row.Batch != nil && row.Batch.Low > 0 && row.Batch.Low < f.batch() {
		n := int(row.Batch.Low)
		add(byBatch, fmt.Sprintf("--batch %d", n), fmt.Sprintf("a batch of %d", n), n, func(u *Use) { u.Batch = n })
	}
	if n := f.shorter(p); n > 0 {
		add(bySeq, fmt.Sprintf("--seq %d", n), fmt.Sprintf("sequences of %s tokens", report.Count(int64(n))), n,
			func(u *Use) { u.Seq = n })
	}
	for _, n := range []int{2, 4, 8} {
		if n > f.use.GPUs && p.Machine == nil {
			add(byGPUs, fmt.Sprintf("--gpus %d", n), fmt.Sprintf("%d of them together", n), 0, func(u *Use) { u.GPUs = n })
		}
	}
	return all
}

// adding takes a variation: its kind, its flags, itself in words, how much is left of what is asked, and the change.
type adding func(kind, flags, says string, amount int, change func(*Use))

// fewerBits are types of weights and cache that take less.
func (f *facts) fewerBits(add adding) {
	cache := f.serves() && f.use.Cache == "auto" && !f.gguf()
	if cache {
		add(byCache, "--kv-dtype fp8", "the cache in fp8", 0, func(u *Use) { u.Cache = "fp8" })
	}
	if f.trains() || f.packed || f.gguf() || f.use.Weights != "auto" {
		return
	}
	add(byWeights, "--dtype fp8", "weights in fp8", 0, func(u *Use) { u.Weights = "fp8" })
	if cache {
		add(byBoth, "--dtype fp8 --kv-dtype fp8", "weights and cache in fp8", 0,
			func(u *Use) { u.Weights, u.Cache = "fp8", "fp8" })
	}
	add(byInt4, "--dtype int4", "weights in int4", 0, func(u *Use) { u.Weights = "int4" })
}

// lessTraining are ways to train that take less.
func (f *facts) lessTraining(add adding) {
	if !f.trains() {
		return
	}
	if f.use.KeepAll {
		add(byCheckpointing, "without --no-checkpointing", "gradient checkpointing", 0, func(u *Use) { u.KeepAll = false })
	}
	if f.use.Optimizer == "adamw" && !f.adapts() {
		add(byOptimizer, "--optimizer adamw-8bit", "AdamW with states of 8 bits", 0,
			func(u *Use) { u.Optimizer = "adamw-8bit" })
	}
	if f.use.For == Full {
		add(byLoRA, "--for lora", "adapters in place of all weights", 0, func(u *Use) { u.For = LoRA })
	}
	if f.use.For == Full || f.use.For == LoRA {
		add(byQLoRA, "--for qlora", "adapters over weights in 4 bits", 0,
			func(u *Use) { u.For, u.Weights = QLoRA, "auto" })
	}
}

// shortest is the least length that a shorter sequence is proposed with, as a part of what was asked.
const shortest = 4

// shorter is the longest sequence that fits on a GPU, in steps of 256 tokens; 0: none from a quarter of the length on.
func (f *facts) shorter(p *Place) int {
	const step = 256
	fits := func(n int) bool {
		use := f.use
		use.Seq = n * step
		row := f.of(use).at(p)
		return row.Verdict == Fits
	}
	low, high := 0, (f.use.Seq-1)/step
	for low < high {
		middle := (low + high + 1) / 2
		if fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	if low*step*shortest < f.use.Seq || low == 0 {
		return 0
	}
	return low * step
}

// notes are what was assumed, and what is not known.
func (f *facts) notes() []string {
	notes := slices.Clone(f.shape.Unknown)
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if c := f.shape.Context; c > 0 && f.use.Seq > c {
		more := ""
		if f.serves() && !f.gguf() {
			more = ": vLLM refuses to start so"
		}
		say("the model has positions for %s tokens, and %s are asked%s", report.Count(int64(c)), report.Count(f.seq()), more)
	}
	if len(f.shape.Caches) == 0 && f.shape.Kind != "" && f.shape.Unknown == nil {
		say("the model keeps nothing of a sequence: it has no decoder's cache")
	}
	switch {
	case f.serves() && f.gguf():
		say("served by llama.cpp with all layers on the GPU and a cache of 16 bits")
	case f.serves():
		say("served by vLLM with --gpu-memory-utilization %g (--utilization); prefixes that users share take less",
			f.use.Utilization)
		f.started(say)
	case f.use.For == Full || f.use.For == DPO:
		how := "in mixed precision"
		if f.pure() {
			how = "in 16 bits alone"
		}
		say("trained by Hugging Face's Trainer %s; the optimizer is --optimizer %s", how, f.use.Optimizer)
	case f.use.For == GRPO:
		say("trained as full is, without a reference model; an estimate has nothing for writing the answers: a server that " +
			"shares the GPU comes on top")
	}
	if f.use.For == Infer && f.shape.Quantization == "mxfp4" {
		say("transformers keeps MXFP4 packed where Triton and the package kernels are installed; " +
			"else it unpacks the weights to 16 bits")
	}
	if f.use.For == QLoRA && f.experts > 0 {
		say("transformers 5 has a layer's experts in one piece, which bitsandbytes leaves in 16 bits; with transformers 4 " +
			"they are packed where each has matrices of its own")
	}
	if f.untried() {
		say("what layers with a state keep for the backward pass is taken as that of attention, and no run was compared")
	}
	if f.trains() {
		say("attention keeps no table of scores, as FlashAttention or SDPA; before compute capability 8.0 it does in bf16")
	}
	switch {
	case f.byLayers():
		say("on %d GPUs each has whole layers, as many as llama.cpp gives it by default (--split-mode layer)", f.gpus())
	case f.gpus() > 1 && f.serves():
		say("on %d GPUs each has a part of the matrices (tensor parallel)", f.gpus())
		if s := f.shape; s.Experts > 0 || latent(s) || f.gpus() > int64(s.KVHeads) {
			say("what chooses experts or makes latent vectors is whole on each, as is a head of keys and values that several need")
		}
	case f.gpus() > 1 && f.use.For == Infer:
		say("on %d GPUs each has as many layers and heads", f.gpus())
	}
	if f.left > 0 {
		say("%v of the files are not loaded: layers that predict further tokens, or constants", f.left)
	}
	return notes
}

// started says how the server has to be started for the plan to hold.
func (f *facts) started(say func(string, ...any)) {
	if c := f.shape.Context; c > f.use.Seq {
		say("start it with --max-model-len %d; without it vLLM wants room for a sequence of %s tokens", f.use.Seq,
			report.Count(int64(c)))
	}
	if f.use.Users > fewestSequences {
		say("vLLM takes 256 sequences at once by default, 1,024 on the largest GPUs; --max-num-seqs changes it")
	}
}
