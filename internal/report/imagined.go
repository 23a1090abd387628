package report

import (
	"fmt"

	"hightide/internal/mem"
)

// Imagined is the verdict on a run on imaginary GPUs. Its JSON form is documented in
// docs/formats/json.md.
//
//	frames (mem/imagined.go) ──▶ analyze/imagined ──▶ Imagined, tables, notes
type Imagined struct {
	mem.GPUVerdict
	GPUs          int                  `json:"gpu_count"`
	PeakPhase     mem.Phase            `json:"peak_phase,omitempty"`
	PeakStep      mem.Optional         `json:"peak_step,omitzero"` // completed before it
	Tight         mem.Bytes            `json:"tight_below_bytes"`
	TotalLabel    mem.Label            `json:"total_label,omitempty"` // how the total was come by
	FailedStep    mem.Optional         `json:"first_failed_step,omitzero"`
	Basis         string               `json:"basis,omitempty"`      // what a fit rests on: steps, and what was not reached
	Broken        string               `json:"problem,omitempty"`    // why there is no verdict, where that is not the program's own doing
	How           string               `json:"failure,omitempty"`    // verdicts failed and unused: how it ended
	Asked         mem.Optional         `json:"asked_bytes,omitzero"` // by the request that failed last
	Shortages     int64                `json:"out_of_memory_errors,omitempty"`
	StoppedFor    string               `json:"stopped,omitempty"` // steady, steps, duration, cancelled: ended before the program would
	Categories    []Category           `json:"categories,omitempty"`
	CategoryBasis string               `json:"categories_device,omitempty"`
	ByStack       mem.Bytes            `json:"categories_by_stack_bytes,omitempty"` // of Categories: told by no more than the stack
	Lines         []HeldLine           `json:"peak_lines,omitempty"`
	Devices       []mem.ImaginedDevice `json:"devices,omitempty"`
	Ranks         []RankUse            `json:"ranks,omitempty"`
	ReadBack      mem.Bytes            `json:"read_back_bytes_unmodelled"`
	ReadBacks     []ReadBack           `json:"read_backs,omitempty"`
	Calls         map[string]uint64    `json:"unmodelled_calls"`
	Refused       []string             `json:"refused_calls,omitempty"` // of those, the ones that failed by name
	Undecided     []Undecided          `json:"undecided,omitempty"`     // numbers that nobody computed and that decide something
	Indifferent   []Undecided          `json:"indifferent,omitempty"`   // of those, where another number was tried and took the same
	Spread        []Undecided          `json:"spread,omitempty"`        // of those, how a routing or a mask spreads: it fits at both ends
	Other         *mem.Try             `json:"other_values,omitempty"`  // the run with other numbers
	Policies      []Policy             `json:"policies,omitempty"`
	NotReached    []Unreached          `json:"not_reached,omitempty"`
	FakeWeights   []mem.FakeWeights    `json:"fake_weights,omitempty"`
	Redirected    []string             `json:"redirected_writes,omitempty"`
	Conditions    map[string]string    `json:"conditions,omitempty"`
	Tries         []mem.Try            `json:"tries,omitempty"`
	Variations    []mem.Try            `json:"variations,omitempty"`
	All           []mem.GPUVerdict     `json:"gpus,omitempty"`
}

// StoppedForDuration: --duration ended a program that came to no step at which it could be asked to end.
const StoppedForDuration = "duration"

// Category is a part of the peak.
type Category struct {
	Name  string    `json:"name"`
	Bytes mem.Bytes `json:"bytes"`
}

// HeldLine is what a line of the program held at the peak.
type HeldLine struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Bytes    mem.Bytes `json:"bytes"`
	Blocks   int64     `json:"blocks"`
	User     bool      `json:"user,omitempty"` // of the program, not of a library
}

// RankUse is the memory of one process on its device.
type RankUse struct {
	Rank      mem.Optional         `json:"rank,omitzero"`
	World     mem.Optional         `json:"world_size,omitzero"`
	Process   uint32               `json:"process"`
	Device    string               `json:"device"`
	Index     int                  `json:"index"` // of the device
	Allocated mem.Optional         `json:"peak_allocated_bytes,omitzero"`
	Reserved  mem.Optional         `json:"peak_reserved_bytes,omitzero"`
	Used      mem.Bytes            `json:"peak_used_bytes"` // of the process
	Parts     map[string]mem.Bytes `json:"parts_bytes,omitempty"`
	Played    bool                 `json:"played,omitempty"` // alone, without the other ranks
}

// ReadBack counts reads by the host of what a kernel would have computed.
type ReadBack struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Count    int64     `json:"count"`
	Bytes    mem.Bytes `json:"bytes"`
}

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
	File     string       `json:"file"`
	Line     int          `json:"line"`
	Function string       `json:"function,omitempty"`
	Number   string       `json:"number"` // bool, int, float; spread: counts of a routing; size: of what Op gave
	Op       string       `json:"op,omitempty"`
	Use      string       `json:"use"`
	UseLine  int          `json:"use_line,omitempty"`
	Value    string       `json:"value"`            // that the program was given, as JSON
	Upper    mem.Optional `json:"upper,omitzero"`   // the largest that it can be
	Other    string       `json:"other,omitempty"`  // what the second run takes, as JSON, where it is not the other end
	Unsure   bool         `json:"unsure,omitempty"` // a second run does not show what the number can do
	Count    int64        `json:"count"`
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
	Op       string `json:"op"`
	Policy   string `json:"policy"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Count    int64  `json:"count"`
	Elements int64  `json:"elements,omitempty"`
}

// OfData says whether a kernel would have counted the size; others are lengths that were asked for.
func (p *Policy) OfData() bool {
	switch p.Op {
	case "nonzero", "unique", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "repeat_interleave", "bincount", "coalesce":
		return p.Elements > 0
	}
	return false
}

// Unreached is what an early stop left out.
type Unreached struct {
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}
