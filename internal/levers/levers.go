// Package levers has the changes that the agent makes in an unmodified training, and the plan that says which.
//
//	hightide.plan.toml ──▶ Read ──▶ Plan ──▶ Agent, as JSON in a variable ──▶ agent/python/src/hightide_agent/levers
//	Plan ──▶ Text ──▶ hightide.plan.toml
//
// To add a lever: its file in the agent, and a line in All.
package levers

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
)

// File is where tune writes a plan.
const File = "hightide.plan.toml"

// Variable carries a plan to the agent, Blocks asks it to record what each block takes.
const (
	Variable = "HIGHTIDE_PLAN"
	Blocks   = "HIGHTIDE_BLOCKS"
	Patch    = "HIGHTIDE_PATCH"   // asks for the levers as code
	Counted  = "HIGHTIDE_COUNTED" // asks how the backward passes of a step add up
	Batch    = "HIGHTIDE_BATCH"   // another size of a batch that a known trainer owns
)

// AnyModel is the model of a plan that the agent holds against none.
const AnyModel = "*"

// Facts of a process whose blocks the agent recorded, or whose activations it moved, beside those in package mem.
const (
	FactBlocks  = "blocks"  // JSON, see tune.Recorded
	FactModel   = "model"   // "GPT 124439808"
	FactCode    = "code"    // JSON by lever: edits of the program's files, or why there are none
	FactCounted = "counted" // JSON, see tune.counted
	FactFiles   = "sources" // JSON: the program's own files that make its optimizer and its trainer

	FactOwner = "batch owner" // who says the size of the batch: a setting of a known trainer

	NumberSamples = "batch samples" // of the trainer's data set
	NumberMoved   = mem.NumberOffloaded
	NumberHosted  = mem.NumberHosted
	NumberWeights = "weight bytes" // and buffers
	NumberStates  = "state bytes"  // of optimizers
)

// Lever is one change.
type Lever struct {
	Name  string
	What  string // in a list of what a plan does
	Does  string // a sentence
	Costs string // in words
	Price Price
	Steps []Settings // from the mildest to the strongest, of a lever that tune sets by degrees

	Framework string // whose programs it is for; "": any
}

// Frameworks that have levers.
const (
	PyTorch = frameworks.Torch
	JAX     = frameworks.JAX
)

// For says whether the lever is for programs of a framework.
func (l *Lever) For(framework string) bool { return l.Framework == "" || l.Framework == framework }

// Price is what a plan gives for a lever: tune takes the cheap ones first.
type Price int

// From the cheapest to the dearest.
const (
	Free     Price = iota // numbers stay the same bit for bit, and nothing of size is computed or moved
	Paid                  // they stay, and something is computed again, or moved
	Changing              // they change: only where that is allowed
)

// Names of levers that the engine knows more of.
const (
	Allocator  = "allocator"  // not the agent's: a variable of the program
	Checkpoint = "checkpoint" // which blocks is planned
	Remat      = "remat"
	Donate     = "donate" // which arguments an imagined run says
	Offload    = "offload"
	Hosted     = "states_on_host"
	Budget     = "compile_budget"
	Parts      = "micro_batch"
	Words      = "accumulation" // not the agent's: words of the command
	Malloc     = "malloc"       // not the agent's: variables of the program
	SharedData = "shared_data"
	Ahead      = "loader_ahead"
	Workers    = "loader_workers"
	Eight      = "states_8bit"
	Adapters   = "lora"
	Foreach    = "foreach"
	Spread     = "fsdp" // over as many processes as there are GPUs: the command is started as torchrun does
)

// apart are levers that a plan has one of: the first in place of the others.
var apart = map[string][]string{Eight: {Hosted}, Adapters: {"step_in_backward"}, Words: {Parts, "step_in_backward"},
	Spread: {"step_in_backward", Hosted, Offload, Eight, Adapters, Parts, Words, Budget}}

// All are the levers, in the order in which they are tried: the cheapest first.
var All = []Lever{
	{Allocator, "allocator settings", "PyTorch's allocator gets other settings.", "nothing", Free, nil, PyTorch},
	{"set_to_none", "gradients let go", "Gradients are let go where the program zeroes them.", "nothing", Free, nil,
		PyTorch},
	{Foreach, "foreach=False", "The optimizer updates one parameter after the other.",
		"more launches of kernels in the optimizer's step", Free, nil, PyTorch},
	{"step_in_backward", "optimizer's step in the backward pass",
		"Each parameter is updated once its gradient is there.", "a call of the optimizer for each parameter", Free, nil,
		PyTorch},
	{Budget, "the compiler's activation budget", "Compiled graphs keep a share of their activations.",
		"what the compiler chooses is computed again", Paid,
		[]Settings{{Budget: 0.8}, {Budget: 0.6}, {Budget: 0.4}, {Budget: 0.2}, {Budget: 0.05}}, PyTorch},
	{Checkpoint, "checkpointing", "Blocks compute their activations again in the backward pass.",
		"a second forward pass of these blocks", Paid, nil, PyTorch},
	{Donate, "donation of replaced state", "Arguments that a step's result replaces are given to it.", "nothing", Free,
		nil, JAX},
	{Remat, "layers computed again",
		"What is repeated, as layers or a scan's body, is computed again in the backward pass.", "a second forward pass of these", Paid, nil, JAX},
	{Hosted, "optimizer's state on the host", "The optimizer's state waits in pinned memory of the host.",
		"its way over PCIe, twice a step, the host's memory, and a call of the optimizer for each parameter", Paid, nil,
		PyTorch},
	{Offload, "activations on the host", "Saved activations wait in pinned memory of the host.",
		"their way over PCIe, twice a step, and the host's memory", Paid, nil, PyTorch},
	{SharedData, "one copy of the data set", "Workers of a loader share the data set's arrays.",
		"each array twice while it is copied", Free, nil, PyTorch},
	{Malloc, "malloc settings", "C's allocator has two arenas, and gives memory back that is free.",
		"calls of the kernel, and threads that wait for each other", Paid, nil, ""},
	{Ahead, "one batch ahead", "Loaders fetch one batch ahead for each worker, and pin none.",
		"waits where workers do not keep up, and copies to the device that wait", Paid, nil, PyTorch},
	{Workers, "fewer workers", "Loaders have fewer workers.", "the time of fewer workers", Paid,
		[]Settings{{Workers: 4}, {Workers: 2}, {Workers: 1}}, PyTorch},
	{Parts, "smaller micro-batches", "A trainer's batches are trained in parts, and the optimizer steps once.",
		"smaller kernels; numbers change: the rounding of the sum, and what dropout draws", Changing,
		[]Settings{{Parts: 2}, {Parts: 4}, {Parts: 8}, {Parts: 16}}, PyTorch},
	{Words, "a smaller batch by the command", "The command has a smaller batch, and accumulates as many more.",
		"smaller kernels; numbers change: the rounding of the sum, and what is drawn at random for each batch", Changing,
		[]Settings{{Parts: 2}, {Parts: 4}, {Parts: 8}, {Parts: 16}}, PyTorch},
	{Spread, "FSDP", "Parameters, gradients and the optimizer's state are spread over several GPUs.",
		"these GPUs, and gathers of each block's parameters, twice a step; numbers change: the rounding of the sum, " +
			"and what dropout draws", Changing, nil, PyTorch},
	{"chunked_loss", "cross entropy in chunks", "Cross entropy is computed over some rows at a time.",
		"launches of kernels; numbers change: the rounding of the sum", Changing, nil, PyTorch},
	{"bf16", "bf16 autocast", "The model computes in bfloat16.", "numbers change: 8 bits of mantissa", Changing, nil,
		PyTorch},
	{Eight, "optimizer's state in 8 bits", "Adam's states have 8 bits, as bitsandbytes keeps them.",
		"a call of bitsandbytes for each parameter; numbers change: states are rounded", Changing, nil, PyTorch},
	{Adapters, "LoRA adapters", "Adapters of rank 8 are trained in place of the weights, by peft.",
		"two small products for each layer; another training: what is learned changes", Changing, nil, PyTorch},
}

// Find is a lever by its name; nil: there is none.
func Find(name string) *Lever {
	if i := slices.IndexFunc(All, func(l Lever) bool { return l.Name == name }); i >= 0 {
		return &All[i]
	}
	return nil
}

// Beside leaves out, of the names of levers with their degrees, what a plan with another lever cannot have.
func Beside(names []string, lever string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(step string) bool {
		name, _, _ := strings.Cut(step, "=")
		return slices.Contains(apart[lever], name) || slices.Contains(apart[name], lever)
	})
}

// Settings of one lever; most have none.
type Settings struct {
	Blocks  []string `toml:"blocks,omitempty" json:"blocks,omitempty" doc:"Of checkpoint: the names of the blocks."`
	Value   string   `toml:"settings,omitempty" json:"settings,omitempty" doc:"Of allocator: as in PYTORCH_CUDA_ALLOC_CONF."`
	Budget  float64  `toml:"budget,omitempty" json:"budget,omitempty" doc:"Of compile_budget: the share of the activations that compiled graphs may keep."`
	Workers int      `toml:"workers,omitempty" json:"workers,omitempty" doc:"Of loader_workers: how many workers a loader has at most."`
	Parts   int      `toml:"parts,omitempty" json:"parts,omitempty" doc:"Of micro_batch and accumulation: into how many parts a batch is cut."`
	Ranks   int      `toml:"ranks,omitempty" json:"ranks,omitempty" doc:"Of fsdp: how many processes the training is, each with a GPU."`
	Command string   `toml:"command,omitempty" json:"command,omitempty" doc:"Of accumulation: the command as it is changed."`

	Arguments []string `toml:"arguments,omitempty" json:"arguments,omitempty" doc:"Of donate: as step(params, state) at train.py:18."`
}

// Plan is what is to be changed in one training.
type Plan struct {
	Version    int                 `toml:"version" json:"version" doc:"The version of this form."`
	Command    string              `toml:"command,omitempty" json:"command,omitempty" doc:"The command that it was made for."`
	GPU        string              `toml:"gpu,omitempty" json:"gpu,omitempty" doc:"The GPU that it was made for."`
	Model      string              `toml:"model,omitempty" json:"model,omitempty" doc:"The class of the model; another one is refused."`
	Parameters int64               `toml:"parameters,omitempty" json:"parameters,omitempty" doc:"How many numbers the model's parameters have; another model is refused."`
	Levers     map[string]Settings `toml:"levers" json:"levers" doc:"The levers by name."`
	Planned    Figures             `toml:"planned,omitempty" json:"planned,omitzero" doc:"What the imagined run with this plan took."`

	file string // that it was read from
}

// Figures of a run with a plan.
type Figures struct {
	Allocated  mem.Bytes `toml:"peak_allocated_bytes,omitempty" json:"peak_allocated_bytes,omitempty" doc:"The highest of what the allocator gave, in bytes."`
	Reserved   mem.Bytes `toml:"peak_reserved_bytes,omitempty" json:"peak_reserved_bytes,omitempty" doc:"The highest of what the allocator took from the device, in bytes."`
	Used       mem.Bytes `toml:"device_used_bytes,omitempty" json:"device_used_bytes,omitempty" doc:"The highest use of the device, in bytes."`
	Recomputed float64   `toml:"recomputed_share,omitempty" json:"recomputed_share,omitempty" doc:"Of the forward pass's FLOPs, the share that is computed again."`
	Host       mem.Bytes `toml:"host_bytes,omitempty" json:"host_bytes,omitempty" doc:"The highest PSS of all processes, as far as the run went, in bytes; absent: it was not asked for."`
	Moved      mem.Bytes `toml:"offloaded_bytes,omitempty" json:"offloaded_bytes,omitempty" doc:"What waits in the host's memory in a step, of activations and of the optimizer's state, in bytes; it crosses PCIe twice."`
}

// Version of the plan file that this program writes and reads.
const Version = 1

// Name is the file that it was read from, as people know it.
func (p *Plan) Name() string {
	if p.file == "" {
		return "the plan"
	}
	return filepath.Base(p.file)
}

// Agent is what the agent is told; "" where it has nothing to do.
func (p *Plan) Agent() string {
	told := Plan{Model: p.Model, Parameters: p.Parameters, Levers: map[string]Settings{}}
	for name, settings := range p.Levers {
		if name != Allocator && name != Malloc && name != Words {
			told.Levers[name] = settings
		}
	}
	if len(told.Levers) == 0 && p.Model == "" {
		return ""
	}
	text, err := json.Marshal(told)
	if err != nil {
		return ""
	}
	return string(text)
}

// AllocatorSettings is what the plan sets beside what is set; "" for nothing at all.
func (p *Plan) AllocatorSettings(set string) string {
	return strings.Trim(set+","+p.Levers[Allocator].Value, ",")
}

// Changes says in words what the plan does, the cheapest first.
func (p *Plan) Changes() string {
	var parts []string
	for _, lever := range All {
		settings, on := p.Levers[lever.Name]
		switch {
		case !on:
		case lever.Name == Allocator:
			parts = append(parts, settings.Value)
		case lever.Name == Checkpoint:
			parts = append(parts, "checkpointing of "+blocks(settings.Blocks))
		case lever.Name == Workers:
			parts = append(parts, fmt.Sprintf("%s, %d at most", lever.What, settings.Workers))
		case lever.Name == Parts, lever.Name == Words:
			parts = append(parts, fmt.Sprintf("%s, %d parts of each batch", lever.What, settings.Parts))
		case lever.Name == Spread:
			parts = append(parts, fmt.Sprintf("%s over %d GPUs", lever.What, settings.Ranks))
		case lever.Name == Budget:
			parts = append(parts, fmt.Sprintf("%s of %g", lever.What, settings.Budget))
		default:
			parts = append(parts, lever.What)
		}
	}
	if len(parts) == 0 {
		return "no change"
	}
	return strings.Join(parts, ", ")
}

// everyBlock in place of names means each block that the model has.
const everyBlock = "*"

func blocks(names []string) string {
	switch {
	case slices.Equal(names, []string{everyBlock}):
		return "all blocks"
	case len(names) == 1:
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", len(names))
}

// Framework is whose programs its levers are for: PyTorch's, where it has none that says so.
func (p *Plan) Framework() string {
	for i := range All { // in an order that stays
		if lever := &All[i]; lever.Framework != "" && p.has(lever.Name) {
			return lever.Framework
		}
	}
	return PyTorch
}

// Cuts says whether it cuts the batch by the words of the command.
func (p *Plan) Cuts() bool { return p.has(Words) }

// Ranks is how many processes it makes of the program; 0: it stays one.
func (p *Plan) Ranks() int {
	if p == nil {
		return 0
	}
	return p.Levers[Spread].Ranks
}

// Slices says whether a batch is trained in parts that have to add up, which the imagined runs are to show.
func (p *Plan) Slices() bool { return p.Cuts() || p.Ranks() > 0 }

func (p *Plan) has(lever string) bool {
	if p == nil {
		return false
	}
	_, on := p.Levers[lever]
	return on
}

// Exact says whether numbers stay the same bit for bit. Kernels that the compiler makes anew may round otherwise, and a
// data set may draw from generators of its own.
func (p *Plan) Exact() bool {
	return !p.has(Budget) && !p.has(Workers) && !p.has(Remat) && !p.has(Donate) && !p.changing()
}

func (p *Plan) changing() bool {
	for name := range p.Levers {
		if lever := Find(name); lever == nil || lever.Price == Changing {
			return true
		}
	}
	return false
}

// Numbers says what becomes of losses and gradients.
func (p *Plan) Numbers() string {
	switch {
	case p.Exact():
		return "losses and gradients stay the same bit for bit"
	case !p.changing() && p.has(Workers):
		return "losses and gradients stay the same as far as the data set draws from no generator of its own"
	case p.Framework() == JAX:
		return "losses and gradients stay the same as far as XLA's kernels round alike"
	case !p.changing():
		return "losses and gradients stay the same as far as the compiler's kernels round alike"
	}
	return "losses and gradients change"
}

// Event says in a recording what was planned.
func (p *Plan) Event() mem.Event {
	event := mem.Event{Time: 1, Kind: mem.EventPlan, Text: p.Changes(), Facts: map[string]string{},
		Numbers: map[string]int64{}}
	if p.file != "" {
		event.Facts["file"] = p.Name()
	}
	if p.Agent() != "" {
		event.Facts["agent"] = "asked"
	}
	if p.Framework() == JAX {
		event.Facts["framework"] = JAX
	}
	for name, bytes := range map[string]mem.Bytes{"allocated": p.Planned.Allocated, "reserved": p.Planned.Reserved,
		"moved": p.Planned.Moved} {
		if bytes > 0 {
			event.Numbers[name] = int64(bytes)
		}
	}
	return event
}
