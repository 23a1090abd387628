package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/patch"
)

// byHand is how to write levers that the agent writes as no code.
var byHand = map[string]string{
	levers.SharedData: "workers that are forked share arrays; others would need them in multiprocessing.shared_memory",
	levers.Malloc: "set MALLOC_ARENA_MAX=2, MALLOC_MMAP_THRESHOLD_=131072 and MALLOC_TRIM_THRESHOLD_=131072 where it " +
		"is started",
	levers.Spread: "make a process group and a DistributedSampler, and call fully_shard for each block before the " +
		"optimizer is made; torchrun starts it",
	levers.Words:   "the command is to be changed, as the plan says",
	levers.Remat:   frameworks.RematByHand,
	levers.Ahead:   "give DataLoader prefetch_factor=1, and no pin_memory",
	levers.Workers: "give DataLoader fewer num_workers",
}

// code is what the agent says of one lever as code.
type code struct {
	Edits []patch.Edit `json:"edits"`
	Why   string       `json:"why"`
}

// asCode writes a plan as code, applies it to a copy and imagines that. said is what the agent says of each lever.
func (r *Result) asCode(ctx context.Context, host Host, said string) {
	if r.Recommended == nil || len(r.Recommended.Levers) == 0 {
		return
	}
	var known map[string]code
	if json.Unmarshal([]byte(said), &known) != nil || len(known) == 0 {
		r.Patch = &Patch{Plan: r.Recommended, Problem: "the program ended before its second step was over"}
		if r.Recommended.Framework() == levers.JAX {
			r.Patch.Problem = "levers of JAX are not written as code; by hand " + frameworks.RematByHand
		}
		r.Patch.Says = r.Patch.sentence(r.Recommended)
		return
	}
	p := r.writable(known)
	r.Patch = p
	defer func() { p.Says = p.sentence(r.Recommended) }()
	changed, err := p.write(known, host)
	switch {
	case err != nil:
		p.Problem = err.Error()
	case len(changed) == 0:
		p.Problem = "none of its levers can be written for this code"
		for _, name := range slices.Sorted(maps.Keys(p.Missing)) {
			p.Problem += fmt.Sprintf("; %s: %s", name, p.Missing[name])
		}
	default:
		r.Runs++
		p.imagine(ctx, host, changed)
	}
}

// writable is the cheapest plan that reaches the goal and can be written whole, else the recommended one with what
// cannot be written.
func (r *Result) writable(known map[string]code) *Patch {
	var first *Patch
	for _, point := range append([]*Point{{Plan: r.Recommended, Enough: true}}, r.Points...) {
		if !point.Enough || len(point.Plan.Levers) == 0 {
			continue
		}
		p := &Patch{Plan: point.Plan, Missing: map[string]string{}}
		for name := range point.Plan.Levers {
			if len(known[name].Edits) == 0 {
				p.Missing[name] = cmp.Or(known[name].Why, byHand[name])
			}
		}
		if len(p.Missing) == 0 {
			return p
		}
		if first == nil {
			first = p
		}
	}
	return first
}

// write makes the diff, and returns the changed files by their paths.
func (p *Patch) write(known map[string]code, host Host) (changed map[string]string, err error) {
	edits := map[string][]patch.Edit{}
	for _, lever := range levers.All {
		settings, on := p.Plan.Levers[lever.Name]
		if _, eight := p.Plan.Levers[levers.Eight]; !on || eight && lever.Name == levers.Foreach {
			continue // bitsandbytes updates one parameter after the other anyway
		}
		for _, e := range known[lever.Name].Edits {
			e.Text = filled(e.Text, settings)
			edits[e.File] = append(edits[e.File], e)
		}
	}
	files := slices.Sorted(maps.Keys(edits))
	p.Folder, changed = above(host.Folder, files), map[string]string{}
	var b strings.Builder
	for _, path := range files {
		text, err := host.Source(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(p.Folder, path)
		if err != nil {
			return nil, err
		}
		file, err := patch.New(filepath.ToSlash(name), text, edits[path])
		if err != nil {
			return nil, err
		}
		b.WriteString(file.Unified())
		changed[path] = file.After()
	}
	p.Text = b.String()
	return changed, nil
}

// part is the size of a batch of which the plan's parts are.
var part = regexp.MustCompile(`PART_OF_(\d+)`)

// filled is what the agent writes, with what the plan says.
func filled(text string, settings levers.Settings) string {
	text = part.ReplaceAllStringFunc(text, func(of string) string {
		size, _ := strconv.Atoi(part.FindStringSubmatch(of)[1])
		return strconv.Itoa(size / max(1, settings.Parts))
	})
	return strings.NewReplacer("BLOCKS", names(settings.Blocks), "VALUE", strconv.Quote(settings.Value),
		"BUDGET", fmt.Sprint(settings.Budget), "PARTS", strconv.Itoa(settings.Parts)).Replace(text)
}

// imagine runs the changed copy. A diff whose program does not run is not shown.
func (p *Patch) imagine(ctx context.Context, host Host, changed map[string]string) {
	same := &levers.Plan{Model: p.Plan.Model, Parameters: p.Plan.Parameters}
	if _, adapters := p.Plan.Levers[levers.Adapters]; adapters {
		same = &levers.Plan{Model: levers.AnyModel} // it has more parameters, and peft may wrap it
	}
	o, err := host.Patched(ctx, same, p.Folder, changed)
	switch {
	case err != nil:
		p.Problem = "the changed copy was not imagined: " + err.Error()
	case o.Refused != "":
		p.Problem = "the changed copy trains something else: " + o.Refused
	case !o.Fits() && o.Verdict != mem.VerdictOOM:
		p.Problem = "the changed copy did not run: " + o.How
	case o.Fits() && !o.Applied:
		p.Problem = "what ran was not the changed copy: the command names the program in a way that was not followed"
	default:
		p.Verdict = o.GPUVerdict
		p.Same = o.Fits() && mem.Bytes(o.Allocated.Or(0)) == p.Plan.Planned.Allocated
		return
	}
	p.Text = ""
}

// above is the folder that the names in a diff begin at: the one the program is started in, or the one above all files.
func above(folder string, files []string) string {
	for folder != filepath.Dir(folder) && !slices.ContainsFunc(files, func(path string) bool { return within(folder, path) }) {
		folder = filepath.Dir(folder)
	}
	for folder != filepath.Dir(folder) && slices.ContainsFunc(files, func(path string) bool { return !within(folder, path) }) {
		folder = filepath.Dir(folder)
	}
	return folder
}

func within(folder, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// names are blocks as an expression of Python: numbered ones in a row as a range.
func names(blocks []string) string {
	if prefix, first, ok := numbered(blocks); ok {
		return fmt.Sprintf("[f\"%s{n}\" for n in range(%d, %d)]", prefix, first, first+len(blocks))
	}
	quoted := make([]string, len(blocks))
	for i, name := range blocks {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// numbered says of names that end in numbers one after the other where they begin.
func numbered(blocks []string) (prefix string, first int, ok bool) {
	if len(blocks) < 3 {
		return "", 0, false
	}
	prefix = strings.TrimRight(blocks[0], "0123456789")
	first, err := strconv.Atoi(blocks[0][len(prefix):])
	for i, name := range blocks {
		if name != prefix+strconv.Itoa(first+i) {
			return "", 0, false
		}
	}
	return prefix, first, err == nil
}

// sentence says what the patch does beside the plan, and where that is not the recommended one.
func (p *Patch) sentence(recommended *levers.Plan) string {
	if p.Text == "" {
		return "No patch is shown: " + p.Problem + "."
	}
	said := fmt.Sprintf("The copy with this patch ran out of memory; the run with the plan took %v", p.Plan.Planned.Used)
	if p.Verdict.Fits() {
		said = fmt.Sprintf("The copy with this patch was imagined: its peak is %v", mem.Bytes(p.Verdict.Used.Or(0)))
		allocated := mem.Bytes(p.Verdict.Allocated.Or(0))
		if p.Same {
			said += fmt.Sprintf(", and %v allocated as with the plan, to the byte", allocated)
		} else {
			more, than := allocated-p.Plan.Planned.Allocated, "more"
			if more < 0 {
				more, than = -more, "less"
			}
			said += fmt.Sprintf(", and %v allocated, %v %s than with the plan", allocated, more, than)
		}
	}
	said += "."
	if p.Plan != recommended {
		said = fmt.Sprintf("The patch is of another plan, as the recommended one cannot be written whole: %s. %s",
			p.Plan.Changes(), said)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Missing)) {
		said += fmt.Sprintf(" Not written: %s: %s.", name, p.Missing[name])
	}
	return said
}
