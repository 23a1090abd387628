package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/hub"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/pythons"
	"hightide/internal/report"
)

// Imagined is told after each run, and before the first: the whole answer as it is now.
type Imagined struct {
	Row    *Row // that was run; nil: none yet
	Before Verdict
	Result *Result
}

// EventName implements event.Event.
func (Imagined) EventName() string { return "imagined" }

// imagining replaces estimates of an answer by imagined runs.
type imagining struct {
	facts  *facts
	places []Place
	result *Result

	command func(count int) []string // on so many GPUs
	all     bool
	tell    event.Sink
}

// imagine runs the use on the GPUs that may do it, the cheapest first.
func (o *Options) imagine(ctx context.Context, source *hub.Place, f *facts, places []Place, r *Result) error {
	if why := f.unimaginable(); why != "" {
		return fail.Usage("leave --imagine out: the figures are then estimated", "%s", why)
	}
	dir, err := os.MkdirTemp("", "hightide-plan-")
	if err != nil {
		return fail.Environment("is the temporary folder full?", "keep the model's configuration: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := f.writeConfig(source, dir); err != nil {
		return err
	}
	im := &imagining{facts: f, places: places, result: r, all: o.Imagine == ImagineAll, tell: o.Events}
	most := 1
	for _, row := range im.candidates() {
		most = max(most, row.Count)
	}
	var with string
	if im.command, with, err = o.command(ctx, f, dir, most); err != nil {
		return err
	}
	if err := im.each(ctx, o.Host.Session(im.command(1))); err != nil {
		return err
	}
	r.settle(f, places)
	if r.imagined() {
		r.Notes = append(r.Notes, "imagined: with "+with)
	}
	return nil
}

// unimaginable says why a use is not run on imaginary GPUs; "": it is.
func (f *facts) unimaginable() string {
	switch {
	case f.gguf() || f.model.Format.Graph():
		return "runs of llama.cpp and of graphs as ONNX are not imagined"
	case f.blind():
		return "without a config.json there is nothing to imagine"
	case f.use.For == Infer && f.gpus() > 1:
		return "--for infer on several GPUs is not imagined; your own script is, by hightide imagine"
	case f.use.Weights == "int4" || f.use.Weights == "fp8" && !f.serves():
		return "--dtype " + f.use.Weights + " is not imagined: there are no such weights to load"
	}
	return ""
}

// writeConfig puts the configuration where a program finds it. A training says its type itself.
func (f *facts) writeConfig(source *hub.Place, dir string) error {
	text, err := modelfile.Config(source.Files, source.Name)
	if err != nil {
		return unreadable(source.Asked, err)
	}
	if !f.serves() {
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return fail.Input("", "%s: %w", source.Asked, err)
		}
		delete(fields, "torch_dtype")
		fields["dtype"] = map[string]string{"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[f.runAs()]
		if text, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// runAs is the type of the weights in a run of our trainer.
func (f *facts) runAs() string {
	switch {
	case f.use.Weights != "auto":
		return f.use.Weights
	case !f.adapts() && f.use.For != Infer:
		return "fp32"
	}
	return "bf16"
}

// command is what is run, on one GPU to most of them: the user's own vLLM, or our trainer over the user's own
// transformers. with says which.
func (o *Options) command(ctx context.Context, f *facts, dir string, most int) (command func(count int) []string,
	with string, err error) {
	if f.serves() {
		program, err := findServer(ctx, o.Python)
		if err != nil {
			return nil, "", err
		}
		return func(count int) []string { return append([]string{program, "serve", dir}, f.serverFlags(count)...) },
			"vLLM, " + program, nil
	}
	python, err := pythons.WithTorch(ctx, o.Python, "imaginary")
	if err != nil {
		return nil, "", err
	}
	trainer, err := o.Host.Trainer()
	if err != nil {
		return nil, "", err
	}
	command = func(count int) []string {
		text, err := json.Marshal(map[string]any{"model": filepath.Join(dir, "config.json"), "use": f.use.For,
			"batch": f.batch(), "seq_len": f.seq(), "dtype": f.runAs(), "optimizer": cmp.Or(f.use.Optimizer, "adamw"),
			"lora_rank": f.use.Rank, "checkpointing": !f.use.KeepAll, "gpus": count})
		if err != nil {
			panic("hightide: words and numbers are no JSON: " + err.Error())
		}
		return []string{python, trainer, string(text)}
	}
	with, err = installed(ctx, command(most))
	return command, with, err
}

// installed has our trainer look for the packages that it needs, and says their versions, and how they are used.
func installed(ctx context.Context, command []string) (with string, err error) {
	python := command[0]
	out, err := exec.CommandContext(ctx, python, append(slices.Clone(command[1:]), "--check")...).Output()
	var there struct {
		Missing  []string          `json:"missing"`
		Versions map[string]string `json:"versions"`
		How      string            `json:"how"`
	}
	if err == nil {
		err = json.Unmarshal(out, &there)
	}
	if err != nil {
		return "", fail.Environment("name another with --python", "%s does not answer: %w", python, err)
	}
	if len(there.Missing) > 0 {
		return "", fail.Environment(python+" -m pip install "+strings.Join(there.Missing, " ")+", or name another with --python",
			"%s has no %s", python, strings.Join(there.Missing, ", "))
	}
	var all []string
	for name, version := range there.Versions {
		all = append(all, name+" "+version)
	}
	slices.Sort(all)
	if with = strings.Join(all, ", ") + ", " + python; there.How != "" {
		with += "; " + there.How
	}
	return with, nil
}

// findServer is the vLLM of an interpreter, else the one on PATH, else that of the first Python with torch.
func findServer(ctx context.Context, python string) (string, error) {
	of := func(python string) string { return filepath.Join(filepath.Dir(python), "vllm") }
	isThere := func(program string) bool { _, err := os.Stat(program); return err == nil }
	const hint = "pip install vllm, or name a Python that has it with --python"
	if python != "" {
		if program := of(python); isThere(program) {
			return program, nil
		}
		return "", fail.Environment(hint, "there is no vLLM beside %s", python)
	}
	if program, err := exec.LookPath("vllm"); err == nil {
		return program, nil
	}
	if found, err := pythons.WithTorch(ctx, "", "imaginary"); err == nil && isThere(of(found)) {
		return of(found), nil
	}
	return "", fail.Environment(hint, "no vLLM found")
}

// serverFlags have vLLM hold what is planned. Weights and tokens are made up: only their sizes matter.
func (f *facts) serverFlags(count int) []string {
	flags := []string{"--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len", strconv.Itoa(f.use.Seq),
		"--gpu-memory-utilization", strconv.FormatFloat(f.use.Utilization, 'g', -1, 64)}
	if f.use.Cache == "fp8" {
		flags = append(flags, "--kv-cache-dtype", "fp8")
	}
	switch f.use.Weights {
	case "fp8":
		flags = append(flags, "--quantization", "fp8")
	case "bf16", "fp16", "fp32":
		names := map[string]string{"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
		flags = append(flags, "--dtype", names[f.use.Weights])
	}
	if count > 1 {
		flags = append(flags, "--tensor-parallel-size", strconv.Itoa(count))
	}
	return flags
}

// mostFailures is how many runs may fail one after the other, for another reason than memory, before no more are made.
const mostFailures = 2

// each runs the use on each GPU that may do it.
func (im *imagining) each(ctx context.Context, run Trial) error {
	var keys []string
	for _, row := range im.candidates() {
		keys = append(keys, row.key())
	}
	im.tell.Tell(Imagined{Result: im.result})
	failures := 0
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, row := im.place(key), im.result.row(key)
		im.tell.Tell(event.Progress{Done: i, All: len(keys), Text: "imagining " + row.called()})
		v, said, err := run(ctx, p.GPU, row.Count, append(im.command(row.Count), im.facts.flagsOn(p.GPU)...))
		if err != nil {
			return err
		}
		before := row.Verdict
		if why := im.facts.replace(row, p.GPU, v); why != "" {
			row.Note = "the imagined run failed, not for memory: " + cmp.Or(why, plainText(said))
			if failures++; failures == mostFailures {
				im.result.Notes = append(im.result.Notes, "no more was imagined after "+row.called()+": "+row.Note)
				return nil
			}
			continue
		}
		failures = 0
		im.tell.Tell(Imagined{row, before, im.result})
		if row.Verdict == Fits && !im.all {
			return nil
		}
	}
	return nil
}

// colours are what programs write to terminals besides text.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func plainText(said string) string { return strings.TrimSpace(colours.ReplaceAllString(said, "")) }

// flagsOn are what a server is started with besides on a GPU: a port that nobody has, and before Ampere another type.
func (f *facts) flagsOn(g *gpus.GPU) (flags []string) {
	if !f.serves() {
		return nil
	}
	flags = []string{"--host", "127.0.0.1", "--port", strconv.Itoa(freePort())}
	if f.needsHalf(g) {
		flags = append(flags, "--dtype", "half")
	}
	return flags
}

// freePort is one that nobody listens on now; 0 where that cannot be told.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	at, _ := listener.Addr().(*net.TCPAddr)
	return at.Port
}

// candidates are the rows that may do it, on GPUs that can be imagined: the cheapest first. Nothing splits a batch that
// is generated among the GPUs of a machine.
func (im *imagining) candidates() (rows []*Row) {
	for i := range im.result.Rows {
		row := &im.result.Rows[i]
		g := im.place(row.key()).GPU
		if row.Verdict != No && g.CUDA() && g.Compute != "" && (row.Count == 1 || im.facts.use.For != Infer) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return cmp.Or(comparePrice(a.Price, b.Price), cmp.Compare(a.Total, b.Total))
	})
	return rows
}

func (im *imagining) place(key string) *Place {
	for i := range im.places {
		p := &im.places[i]
		if p.Machine != nil && p.Machine.Name == key || p.Machine == nil && p.GPU.Slug == key {
			return p
		}
	}
	return nil
}

// replace puts the figures of a run in place of a row's estimates. why is why there are none; "": they are there.
func (f *facts) replace(row *Row, g *gpus.GPU, v *report.Imagined) (why string) {
	switch {
	case v.Verdict == mem.VerdictOOM:
		f.ranOut(row, v)
	case !v.Fits():
		return cmp.Or(v.Broken, v.How, string(v.Verdict))
	case f.serves() && (v.Serving == nil || !v.Serving.KVTokens.Known()):
		return "the server said nothing of its cache"
	case f.serves():
		f.served(row, g, v.Serving)
	default:
		f.ran(row, g, v)
	}
	row.Label, row.Batch = mem.Imagined, nil // the largest one was not looked for
	if row.Verdict = verdictOf(row.Room); v.Verdict == mem.VerdictConditional && row.Verdict == Fits {
		row.Verdict = Likely
		row.Note = "the run fits on a condition"
	}
	if row.Machine != nil {
		left := exactly(row.Machine.Memory - row.Machine.Memory/20).minus(row.Machine.Host.Estimate)
		if host := verdictOf(left); rank[host] > rank[row.Verdict] {
			row.Verdict = host
		}
	}
	return ""
}

// beside is what the catalogue is not sure of: the run has its figure of what a process takes beside its allocator.
func beside(g *gpus.GPU, figure mem.Bytes) Estimate {
	p := process(g).Estimate
	return Estimate{max(0, figure-(p.Bytes-p.Low)), figure, figure + p.High - p.Bytes}
}

// ran are the figures of a training, or of a batch that was generated.
func (f *facts) ran(row *Row, g *gpus.GPU, v *report.Imagined) {
	held, reserved, used := mem.Bytes(v.Allocated.Or(0)), mem.Bytes(v.Reserved.Or(0)), mem.Bytes(v.Used.Or(0))
	row.Parts = []Portion{
		{"tensors", mem.Imagined, exactly(held), "the most that PyTorch's allocator gave"},
		{"kept by the allocator", mem.Imagined, exactly(reserved - held), "reserved beyond what was allocated"},
		{"context and libraries", mem.Estimated, beside(g, used-reserved), process(g).Basis},
	}
	row.Room = row.Budget.minus(sum(row.Parts))
}

// served are the figures of a server that started: the engine's own.
func (f *facts) served(row *Row, g *gpus.GPU, s *report.Serving) {
	row.Parts = nil
	add := func(name string, figure mem.Optional, basis string) {
		if n, ok := figure.Get(); ok {
			row.Parts = append(row.Parts, Portion{name, mem.Imagined, exactly(mem.Bytes(n)), basis})
		}
	}
	add("weights", s.Weights, "as the engine measured them")
	add("activations", s.Activations, "of the engine's profiling pass")
	n := mem.Bytes(s.NonTorch.Or(0))
	own := Estimate{n, n, n + 256*mem.MiB} // servers' logs on real GPUs have 0.06 to 0.16 GiB, and 0.35 GiB of older ones
	row.Parts = append(row.Parts, Portion{"beside the allocator", mem.Estimated, own, "as the engine found it; real GPUs may have more"})
	if budget, ok := s.Budget.Get(); ok {
		row.Budget = exactly(mem.Bytes(budget))
	}
	tokens, kv, block := s.KVTokens.Or(0), float64(s.KVBytes.Or(0)), s.BlockSize.Or(1)
	byToken := kv / float64(max(1, tokens))
	one := (f.seq() + block - 1) / block * block
	cache := exactly(mem.Rounded(float64(int64(f.use.Users)*one) * byToken))
	row.Cache = &cache
	spread := Estimate{own.Bytes - own.High, 0, own.Bytes - own.Low} // what the cache gains or loses
	row.Room = exactly(mem.Rounded(kv)).plus(spread).minus(cache)
	at := func(e mem.Bytes) int64 { return max(0, int64((kv+float64(e))/byToken)/block*block) }
	row.Tokens = &Range{at(spread.Low), tokens, at(spread.High)}
	row.Users = &Range{row.Tokens.Low / one, tokens / one, row.Tokens.High / one}
}

// ranOut is a row of a run that had not enough memory: how much is missing is known of some, else it is estimated.
func (f *facts) ranOut(row *Row, v *report.Imagined) {
	if n, ok := v.Headroom.Get(); ok && n < 0 {
		row.Room = exactly(mem.Bytes(n))
	} else {
		row.Room = Estimate{min(row.Room.Low, -1), min(row.Room.Bytes, -1), min(row.Room.High, -1)}
	}
	row.Note = "ran out of memory"
	if s := v.Serving; s != nil && s.KVNeeded.Known() && s.KVAvailable.Known() {
		row.Room = exactly(mem.Bytes(s.KVAvailable.Or(0) - s.KVNeeded.Or(0)))
		row.Note = "the cache does not hold one sequence"
	}
	row.Tokens, row.Users = nil, nil
}

// settle concludes anew from rows that have changed.
func (r *Result) settle(f *facts, places []Place) {
	sortRows(r.Rows)
	r.Cheapest, r.Smallest = "", ""
	r.conclude()
	r.Changes = f.changes(r, places)
}

// Line says what a run was, for who follows without a terminal.
func (e *Imagined) Line() string {
	row := e.Row
	text := fmt.Sprintf("%s: %s", row.called(), row.Verdict)
	switch {
	case row.Verdict == No && row.Note != "":
		text += ", " + row.Note
	case row.Users != nil:
		text += fmt.Sprintf(", %s users, %s tokens", row.Users.text(), report.Count(row.Tokens.Figure))
	default:
		text += fmt.Sprintf(", %s left", row.Room.text())
	}
	return fmt.Sprintf("%s (%s; it was estimated: %s)", text, row.Label, e.Before)
}

// tryingRows is how many rows are shown while some are imagined: few enough for any terminal.
const tryingRows = 10

// Trying is the table while some rows are imagined: what was run, and what may do it besides, the cheapest first.
func (r *Result) Trying(o report.TextOptions) string {
	var run, may []Row
	for i := range r.Rows {
		switch row := &r.Rows[i]; {
		case row.Label == mem.Imagined:
			run = append(run, *row)
		case row.Verdict != No:
			may = append(may, *row)
		}
	}
	for _, rows := range [][]Row{run, may} {
		slices.SortStableFunc(rows, func(a, b Row) int { return comparePrice(a.Price, b.Price) })
	}
	some := *r
	some.Rows = append(run[max(0, len(run)-tryingRows+2):], may...)
	some.Rows = some.Rows[:min(tryingRows, len(some.Rows))]
	return some.table().Text(o)
}
