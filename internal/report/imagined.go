package report

import (
	"cmp"
	"fmt"

	"hightide/internal/mem"
)

// Imagined is the verdict on a run on imaginary GPUs. Its JSON form is documented in
// docs/formats/json.md.
//
//	frames (mem/imagined.go) ──▶ analyze/imagined ──▶ Imagined, tables, notes
type Imagined struct {
	mem.GPUVerdict
	GPUs            int                  `json:"gpu_count" doc:"How many GPUs the machine had."`
	Serving         *Serving             `json:"serving,omitempty" doc:"Of an LLM server: what it serves, or how far its start came."`
	Limit           mem.Optional         `json:"allocator_limit_bytes,omitzero" doc:"What the framework's allocator may take of that device at most, in bytes, where it sets a limit."`
	LimitBy         string               `json:"allocator_limit_by,omitempty" doc:"The framework that sets it."`
	OwnLimit        mem.Optional         `json:"own_limit_bytes,omitzero" doc:"The part of the device to which the program limits itself, in bytes, where memory ran out with it."`
	PeakPhase       mem.Phase            `json:"peak_phase,omitempty" doc:"The phase in which the peak was."`
	PeakStep        mem.Optional         `json:"peak_step,omitzero" doc:"How many steps were completed before the peak."`
	Tight           mem.Bytes            `json:"tight_below_bytes" doc:"The headroom below which a fit is called tight, in bytes."`
	TotalLabel      mem.Label            `json:"total_label,omitempty" doc:"How the GPU's memory is known."`
	FailedStep      mem.Optional         `json:"first_failed_step,omitzero" doc:"How many steps were completed before the first that ran out of memory."`
	Basis           string               `json:"basis,omitempty" doc:"What a fit rests on: steps, and what was not reached."`
	Broken          string               `json:"problem,omitempty" doc:"Why there is no verdict, where that is not the program's own doing."`
	How             string               `json:"failure,omitempty" doc:"How a program without a verdict ended."`
	Asked           mem.Optional         `json:"asked_bytes,omitzero" doc:"What the request asked for that failed last, in bytes."`
	Short           *ShortCall           `json:"short,omitempty" doc:"The call of a compiled function that found no memory, where the framework tells."`
	Shortages       int64                `json:"out_of_memory_errors,omitempty" doc:"How many requests found no memory."`
	StoppedFor      string               `json:"stopped,omitempty" doc:"Why it was ended before the program would: steady, steps or duration."`
	Categories      []Category           `json:"categories,omitempty" doc:"What the peak is made of."`
	CategoryBasis   string               `json:"categories_device,omitempty" doc:"The device of these categories."`
	ByStack         mem.Bytes            `json:"categories_by_stack_bytes,omitempty" doc:"Bytes of the categories that are told by no more than the stack."`
	GraphPools      mem.Optional         `json:"graph_pools_bytes,omitzero" doc:"Of what the allocator reserved, what the private pools of CUDA graphs had when that was last told, in bytes."`
	GraphNodes      mem.Optional         `json:"graph_nodes_bytes,omitzero" doc:"Of what was in use at the peak, what the driver keeps for the nodes of CUDA graphs, in bytes, as estimated; of the process that has most."`
	GraphNodesRange *mem.Range           `json:"graph_nodes_range_bytes,omitempty" doc:"What it may be by published figures, from the lowest to the highest, in bytes."`
	CategoriesShort bool                 `json:"categories_short,omitempty" doc:"Whether the categories and lines are of what was needed when memory ran out, in place of what was held."`
	Lines           []HeldLine           `json:"peak_lines,omitempty" doc:"What lines of the program held at the peak, largest first."`
	LinesHeld       mem.Bytes            `json:"peak_lines_bytes,omitempty" doc:"What all lines held together."`
	LinesAsked      mem.Bytes            `json:"peak_lines_asked_bytes,omitempty" doc:"Of these what was asked for, where the allocator gives more."`
	Modules         []HeldModule         `json:"peak_modules,omitempty" doc:"Of an LLM server: what lines of each Python module held at the peak, largest first."`
	Devices         []mem.ImaginedDevice `json:"devices,omitempty" doc:"Each GPU that was used."`
	Ranks           []RankUse            `json:"ranks,omitempty" doc:"Each process on each device."`
	ReadBack        mem.Bytes            `json:"read_back_bytes_unmodelled" doc:"Bytes that the host read and nothing computed."`
	ReadBacks       []ReadBack           `json:"read_backs,omitempty" doc:"The lines that read them."`
	Calls           map[string]uint64    `json:"unmodelled_calls" doc:"How often calls did nothing as nobody models them, by name."`
	Refused         []string             `json:"refused_calls,omitempty" doc:"Which of those failed, by name."`
	Undecided       []Undecided          `json:"undecided,omitempty" doc:"Numbers that nobody computed and that decide something."`
	Indifferent     []Undecided          `json:"indifferent,omitempty" doc:"Of those, the ones where another number was tried and took the same."`
	Spread          []Undecided          `json:"spread,omitempty" doc:"Of those, how a routing or a mask spreads, where both ends fit."`
	Other           *mem.Try             `json:"other_values,omitempty" doc:"The run with other numbers."`
	Policies        []Policy             `json:"policies,omitempty" doc:"Sizes that depend on data, and what was taken for them."`
	Rising          *Rising              `json:"rising,omitempty" doc:"By how much more each step takes, where the program was ended although it did."`
	NotReached      []Unreached          `json:"not_reached,omitempty" doc:"What the program did not get to."`
	FakeWeights     []mem.FakeWeights    `json:"fake_weights,omitempty" doc:"Weights that were made up in the right shapes."`
	Redirected      []string             `json:"redirected_writes,omitempty" doc:"Paths whose writes went to a folder of their own."`
	Conditions      map[string]string    `json:"conditions,omitempty" doc:"What the answer rests on, by name: versions, settings, attention and others."`
	Tries           []mem.Try            `json:"tries,omitempty" doc:"Further runs, each with one thing changed that might make it fit."`
	Variations      []mem.Try            `json:"variations,omitempty" doc:"Further runs that were asked for."`
	All             []mem.GPUVerdict     `json:"gpus,omitempty" doc:"The verdict on each GPU, the cheapest that fits first."`
}

// Serving is an LLM server, its processes taken together.
type Serving struct {
	Engine  string       `json:"engine" doc:"The engine."`
	Version string       `json:"version,omitempty" doc:"Its version."`
	Ready   bool         `json:"ready" doc:"Whether it has all its memory and takes requests."`
	Answers bool         `json:"answers" doc:"Whether it was seen to take requests: its HTTP port was open, or a call for texts returned."`
	Step    string       `json:"step,omitempty" doc:"What its start was at last: device, weights, profiling, kv_cache, warm-up, graphs or ready."`
	Users   mem.Optional `json:"users,omitzero" doc:"How many users were asked for: sequences at once."`
	Tokens  mem.Optional `json:"tokens,omitzero" doc:"The tokens of each of their sequences."`
	// Graphs is among the figures, and an estimate in part.
	GraphRange *mem.Range `json:"graph_range_bytes,omitempty" doc:"What graph_bytes may be, from the lowest to the highest, in bytes: what a driver keeps for the nodes of graphs is estimated."`
	mem.ServingFigures
}

// AfterCache says whether the start was at a step after the KV cache was allocated: beyond the share that is divided.
func (s *Serving) AfterCache() bool {
	return s.Step == mem.ServingWarmUp || s.Step == mem.ServingGraphs
}

// StoppedForDuration: --duration ended a program that came to no step at which it could be asked to end.
const StoppedForDuration = mem.StopDuration

// Category is a part of the peak.
type Category struct {
	Name  string    `json:"name" doc:"What the memory is for."`
	Bytes mem.Bytes `json:"bytes" doc:"How much of the peak that is, in bytes."`
}

// HeldLine is what a line of the program held at the peak.
type HeldLine struct {
	File     string    `json:"file" doc:"The file."`
	Line     int       `json:"line" doc:"The line, from 1."`
	Function string    `json:"function,omitempty" doc:"Its function."`
	Bytes    mem.Bytes `json:"bytes" doc:"What its blocks held at the peak, in bytes."`
	Blocks   int64     `json:"blocks" doc:"How many blocks that were."`
	What     string    `json:"what,omitempty" doc:"Of XLA: arrays, or temporaries of the program that ran."`
	User     bool      `json:"user,omitempty" doc:"Whether it is a line of the program, not of a library."`
}

// ShortCall is the last call of a compiled function that found no memory.
type ShortCall struct {
	Function    string       `json:"function" doc:"The function."`
	File        string       `json:"file" doc:"Its file."`
	Line        int          `json:"line" doc:"Its line, from 1."`
	CalledFile  string       `json:"called_file,omitempty" doc:"The file of the line that called it."`
	CalledLine  int          `json:"called_line,omitempty" doc:"That line, from 1."`
	Used        mem.Optional `json:"used_bytes,omitzero" doc:"What was in use on the device when it failed, in bytes."`
	Arguments   mem.Bytes    `json:"argument_bytes" doc:"What its arguments take, in bytes."`
	Outputs     mem.Bytes    `json:"output_bytes" doc:"What its outputs take, in bytes, those that lie in donated arguments too."`
	Donated     mem.Bytes    `json:"alias_bytes" doc:"What of them lies in donated arguments, in bytes."`
	Temporaries mem.Bytes    `json:"temp_bytes" doc:"What its temporaries take, in bytes."`
}

// HeldModule is what the lines of a module of Python held at the peak.
type HeldModule struct {
	Module string    `json:"module" doc:"The module, as vllm.v1.worker.gpu_model_runner; outside of packages the name of the file."`
	Bytes  mem.Bytes `json:"bytes" doc:"What its blocks held at the peak, in bytes."`
	Blocks int64     `json:"blocks" doc:"How many blocks that were."`
}

// RankUse is the memory of one process on its device.
type RankUse struct {
	Rank      mem.Optional         `json:"rank,omitzero" doc:"Its rank; absent: the program is not distributed."`
	Name      string               `json:"name,omitempty" doc:"What the program calls the rank, as TP1."`
	World     mem.Optional         `json:"world_size,omitzero" doc:"How many ranks the program has."`
	Process   uint32               `json:"process" doc:"The process, by its id in the run."`
	Device    string               `json:"device" doc:"The device, as the framework calls it."`
	Index     int                  `json:"index" doc:"The number of the device on the machine."`
	Allocated mem.Optional         `json:"peak_allocated_bytes,omitzero" doc:"The highest of what its allocator gave, in bytes."`
	Reserved  mem.Optional         `json:"peak_reserved_bytes,omitzero" doc:"The highest of what its allocator took from the device, in bytes."`
	Used      mem.Bytes            `json:"peak_used_bytes" doc:"The highest use of the device by the process, in bytes."`
	Parts     map[string]mem.Bytes `json:"parts_bytes,omitempty" doc:"What that is made of beside the allocator, by name, in bytes."`
	Played    bool                 `json:"played,omitempty" doc:"Whether it ran alone, without the other ranks."`
}

// Title is what a rank is called in a sentence: "rank 3", "TP1".
func (r *RankUse) Title() string { return cmp.Or(r.Name, fmt.Sprintf("rank %d", r.Rank.Or(0))) }

// ReadBack counts reads by the host of what a kernel would have computed.
type ReadBack struct {
	File     string    `json:"file" doc:"The file."`
	Line     int       `json:"line" doc:"The line, from 1."`
	Function string    `json:"function,omitempty" doc:"Its function."`
	Count    int64     `json:"count" doc:"How often it read."`
	Bytes    mem.Bytes `json:"bytes" doc:"How much it read, in bytes."`
	Check    int       `json:"check_line,omitempty" doc:"A line that raises unless the number passes, in the file of the function that checks it; which number passes is not known."`
}

// Place is the line that reads.
func (r *ReadBack) Place() string { return mem.LineName(mem.Location{File: r.File, Line: r.Line}) }

// What an undecided number is, beside those of Python.
const (
	NumberSize   = "size"   // of what an operator gave, which depends on data
	NumberShare  = "share"  // what a mask has that shares its elements with its opposite
	NumberSpread = "spread" // how a routing that nobody knows spreads over its experts
)

// UseCaught is the use of a number that decides whether an exception is raised which the program catches.
const UseCaught = "caught"

// UseFailed is the use of a number over which the program failed, as with a division by zero.
const UseFailed = "failed"

// Undecided is a line that read a number which nobody computed, and where it goes.
type Undecided struct {
	File     string       `json:"file" doc:"The file."`
	Line     int          `json:"line" doc:"The line that reads the number, from 1."`
	Function string       `json:"function,omitempty" doc:"Its function."`
	Number   string       `json:"number" doc:"What it is: bool, int, float; spread: counts of a routing; share: of a mask; size: of what an operation gave."`
	Op       string       `json:"op,omitempty" doc:"The operation that gave it."`
	Use      string       `json:"use" doc:"What it decides: branch, loop, size, range, slice, passed on, kept or caught."`
	UseLine  int          `json:"use_line,omitempty" doc:"The line at which it decides that, from 1."`
	Value    string       `json:"value" doc:"What the program was given, as JSON."`
	Upper    mem.Optional `json:"upper,omitzero" doc:"The largest that it can be."`
	Other    string       `json:"other,omitempty" doc:"What the second run takes, as JSON, where that is not the other end."`
	Unsure   bool         `json:"unsure,omitempty" doc:"Whether a second run does not show what the number can do."`
	Count    int64        `json:"count" doc:"How often it was read."`
}

// String is "the whole number read at train.py:12, which is a size,".
func (u *Undecided) String() string {
	switch u.Number {
	case NumberSize:
		return fmt.Sprintf("the size of %s at %s", u.Op, u.Place())
	case NumberShare:
		return fmt.Sprintf("the share of the mask at %s", u.Place())
	}
	return fmt.Sprintf("the %s read at %s, which %s,", u.Kind(), u.Place(), u.Decides())
}

// Kind is what was read, for people.
func (u *Undecided) Kind() string {
	switch u.Number {
	case "bool":
		return "truth value"
	case "float":
		return "number"
	case NumberSpread:
		return "spread of the counts"
	}
	return "whole number"
}

// Place is the line that read it.
func (u *Undecided) Place() string {
	if u.File == "" {
		return "an unknown line"
	}
	return mem.LineName(mem.Location{File: u.File, Line: u.Line})
}

// Decides says where it goes.
func (u *Undecided) Decides() string {
	switch u.Use {
	case "branch":
		return "decides a branch"
	case "loop":
		return "ends a loop"
	case "size", "range", "slice":
		return "is a " + u.Use
	case "kept":
		return "is kept"
	case UseFailed:
		return "makes the program fail where it is zero"
	case UseCaught:
		return "decides whether an exception is raised that the program catches"
	}
	return "is passed on"
}

// Policy is a size that depends on data, and how it was chosen.
type Policy struct {
	Op       string `json:"op" doc:"The operation whose result has a size that depends on data."`
	Policy   string `json:"policy" doc:"What was taken for it: upper, zero, or a fraction."`
	File     string `json:"file" doc:"The file; empty: no line of the program was running."`
	Line     int    `json:"line" doc:"The line, from 1."`
	Count    int64  `json:"count" doc:"How often it ran."`
	Elements int64  `json:"elements,omitempty" doc:"The largest size that was given, in elements."`
}

// OfData says whether a kernel would have counted the size; others are lengths that were asked for.
func (p *Policy) OfData() bool {
	switch p.Op {
	case "nonzero", "unique", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "repeat_interleave",
		"bincount", "coalesce":
		return p.Elements > 0
	}
	return false
}

// Rising is a use of memory that rose with the steps when the program was ended.
type Rising struct {
	PerStep mem.Bytes    `json:"per_step_bytes" doc:"By how much with each step, in bytes."`
	Kept    bool         `json:"kept,omitempty" doc:"Whether it is what is held between steps that rises, still below the peak."`
	Least   mem.Optional `json:"steps_least,omitzero" doc:"In how many steps from the first memory runs out at that rate, at least; absent: headroom is not known."`
	Most    mem.Optional `json:"steps_most,omitzero" doc:"The same at most."`
}

// Unreached is what an early stop left out.
type Unreached struct {
	What string `json:"what" doc:"What was not reached: evaluation, checkpoint, longest batch, steady peak and others."`
	Text string `json:"text,omitempty" doc:"Why that matters."`
	// Perhaps is of what may have been reached.
	Perhaps bool   `json:"perhaps,omitempty" doc:"Whether it was reached is not known."`
	File    string `json:"file,omitempty" doc:"The file of it."`
	Line    int    `json:"line,omitempty" doc:"The line, from 1."`
}
