package levers

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestText: what is written is read back as it was.
func TestText(t *testing.T) {
	plan := &Plan{Version: 1, Command: `python "train it.py" --x 'ä\'`, GPU: "rtx4090", Model: "GPT", Parameters: 124439808,
		Levers: map[string]Settings{"checkpoint": {Blocks: []string{"h.0", "h.11"}}, "foreach": {},
			"compile_budget": {Budget: 0.35}, "allocator": {Value: "expandable_segments:True"}},
		Planned: Figures{Allocated: 5 << 30, Reserved: 6 << 30, Used: 7 << 30, Recomputed: 0.25, Moved: 1 << 20}}
	path := written(t, plan.Text())
	back, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	plan.file = path
	if !reflect.DeepEqual(plan, back) {
		t.Errorf("wrote %+v\nread  %+v\n%s", plan, back, plan.Text())
	}
	if strings.Contains(plan.Text(), "bit for bit") || !strings.Contains(plan.Text(), "the compiler's kernels round alike") {
		t.Error("it does not say on what numbers depend")
	}
	delete(plan.Levers, Budget)
	if !strings.Contains(plan.Text(), "# Losses and gradients stay the same bit for bit.") {
		t.Error("it does not say that numbers stay")
	}
	plan.Levers["bf16"] = Settings{}
	if strings.Contains(plan.Text(), "bit for bit") {
		t.Error("it says that numbers stay")
	}
}

// TestParts: into how many parts a batch is cut is read from the file, and told to the agent.
func TestParts(t *testing.T) {
	plan, err := Read(written(t, "version = 1\nmodel = \"GPT\"\n[levers.micro_batch]\nparts = 4"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"version":0,"model":"GPT","levers":{"micro_batch":{"parts":4}}}`; plan.Agent() != want {
		t.Errorf("the agent is told %s, want %s", plan.Agent(), want)
	}
	if again, err := Read(written(t, plan.Text())); err != nil || !reflect.DeepEqual(again.Levers, plan.Levers) {
		t.Errorf("%v: %+v, want %+v", err, again, plan)
	}
	if got, want := plan.Changes(), "smaller micro-batches, 4 parts of each batch"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, wrong := range []string{"[levers.micro_batch]", "[levers.micro_batch]\nparts = 1", "[levers.foreach]\nparts = 2"} {
		if _, err := Read(written(t, "version = 1\n"+wrong)); err == nil || !strings.Contains(err.Error(), "parts belong to") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestOfJAX: levers of JAX are read from the file, do not stand beside PyTorch's, and do not promise bits.
func TestOfJAX(t *testing.T) {
	plan, err := Read(written(t, "version = 1\n[levers.remat]\n[levers.donate]\narguments = [\"step(w, s) at a.py:3\"]"))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Framework() != JAX || plan.Exact() || !strings.Contains(plan.Numbers(), "XLA") {
		t.Errorf("%s: %s", plan.Framework(), plan.Numbers())
	}
	if again, err := Read(written(t, plan.Text())); err != nil || !reflect.DeepEqual(again.Levers, plan.Levers) {
		t.Errorf("%v: %+v, want %+v", err, again, plan)
	}
	for wrong, why := range map[string]string{"[levers.donate]": "arguments belong to",
		"[levers.donate]\narguments = [\"step\"]": "arguments belong to", "[levers.remat]\narguments = [\"f(x) at a.py:1\"]": "arguments belong to",
		"[levers.remat]\n[levers.allocator]\nsettings = \"expandable_segments:True\"": "of two frameworks"} {
		if _, err := Read(written(t, "version = 1\n"+wrong)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", wrong, err, why)
		}
	}
	if !strings.Contains(plan.Text(), "are for programs of JAX") {
		t.Error(plan.Text())
	}
	if plan, err = Read(written(t, "version = 1\n[levers.malloc]")); err != nil || plan.Framework() != PyTorch {
		t.Error(plan, err)
	}
}

// TestRanks: over how many GPUs a training is spread is read from the file, and what does not go with it is refused.
func TestRanks(t *testing.T) {
	plan, err := Read(written(t, "version = 1\n[levers.fsdp]\nranks = 2"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":0,"levers":{"fsdp":{"ranks":2}}}`
	if plan.Agent() != want || plan.Ranks() != 2 || plan.Exact() {
		t.Errorf("the agent is told %s, want %s", plan.Agent(), want)
	}
	if again, err := Read(written(t, plan.Text())); err != nil || !reflect.DeepEqual(again.Levers, plan.Levers) {
		t.Errorf("%v: %+v, want %+v", err, again, plan)
	}
	if got, want := plan.Changes(), "FSDP over 2 GPUs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if next := plan.next(map[string]bool{}).next(map[string]bool{}); next.has(Offload) || !next.has(Checkpoint) {
		t.Errorf("a further start has %s", next.Changes())
	}
	for wrong, why := range map[string]string{
		"[levers.fsdp]": "ranks belong to", "[levers.fsdp]\nranks = 1": "ranks belong to",
		"[levers.foreach]\nranks = 2": "ranks belong to", "[levers.fsdp]\nranks = -2": "ranks belong to",
		"[levers.fsdp]\nranks = 2\n[levers.offload]": "fsdp and offload do not go together"} {
		if _, err := Read(written(t, "version = 1\n"+wrong)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestWords: how a command is changed is read from the file, and is not the agent's.
func TestWords(t *testing.T) {
	plan, err := Read(written(t, "version = 1\n[levers.accumulation]\nparts = 2\ncommand = \"python train.py -b 1 --accum 2\""))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Agent() != "" || !plan.Cuts() || plan.Exact() {
		t.Errorf("agent %q, cuts %v, exact %v", plan.Agent(), plan.Cuts(), plan.Exact())
	}
	if again, err := Read(written(t, plan.Text())); err != nil || !reflect.DeepEqual(again.Levers, plan.Levers) {
		t.Errorf("%v: %+v, want %+v", err, again, plan)
	}
	for wrong, want := range map[string]string{"[levers.accumulation]\nparts = 1": "parts belong to",
		"[levers.accumulation]": "parts belong to", "[levers.foreach]\ncommand = \"a\"": "a command belongs to",
		"[levers.accumulation]\nparts = 2\n[levers.micro_batch]\nparts = 2": "do not go together"} {
		if _, err := Read(written(t, "version = 1\n"+wrong)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", wrong, err, want)
		}
	}
}

// TestRead: what is wrong with a file is said with its line.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"version = 1\n[levers.chekpoint]\nblocks = [\"a\"]": "unknown lever chekpoint; did you mean checkpoint?",
		"version = 1\n[levers.checkpoint]":                  "blocks belong to the lever checkpoint",
		"version = 1\n[levers.foreach]\nblocks = [\"a\"]":   "blocks belong to the lever checkpoint",
		"version = 1\n[levers.allocator]":                   "settings belong to the lever allocator",
		"version = 1\n[levers.compile_budget]":              "a budget belongs to the lever compile_budget",
		"version = 1\n[levers.compile_budget]\nbudget = 1":  "above 0 and below 1",
		"version = 1\n[levers.loader_workers]":              "workers belong to the lever loader_workers",
		"version = 1\n[levers.foreach]\nbudget = 0.5":       "a budget belongs to the lever compile_budget",
		"version = 2":                        "version 2",
		"version = 1\nspeed = 3":             ":2: unknown key speed",
		"version = ":                         ":1: ",
		"":                                   "says no version of a plan",
		"version = \"1\"":                    ":1: version has to be a whole number, and is of the type string",
		"version = 1.5":                      ":1: version has to be a whole number, and is of the type float",
		"version = 1\nlevers = 3":            ":2: levers has to be a table, and is of the type integer",
		"version = 1\n[levers]\nforeach = 3": ":3: levers.foreach has to be a table, as [levers.foreach],",
		"version = 1\n[levers.checkpoint]\nblocks = \"h.0\"":              ":3: levers.checkpoint.blocks has to be a list of names in quotes",
		"version = 1\n[levers.checkpoint]\nblocks = [1]":                  ":3: levers.checkpoint.blocks has to be a list of names",
		"version = 1\n[levers.checkpoint]\nblocks = [\"\"]":               "blocks belong to the lever checkpoint",
		"version = 1\n[levers.compile_budget]\nbudget = \"half\"":         ":3: levers.compile_budget.budget has to be a number",
		"version = 1\n[levers.compile_budget]\nbudget = nan":              "above 0 and below 1",
		"version = 1\n[levers.compile_budget]\nbudget = inf":              "above 0 and below 1",
		"version = 1\n[levers.micro_batch]\nparts = 2.5":                  ":3: levers.micro_batch.parts has to be a whole number",
		"version = 1\n[levers.allocator]\nsettings = 5":                   ":3: levers.allocator.settings has to be a text in quotes",
		"version = 1\n[levers.allocator]\nsettings = \"a:1\"":             `allocator settings: "a": is not an option`,
		"version = 1\nparameters = -5":                                    "cannot be below 0",
		"version = 1\n[planned]\npeak_allocated_bytes = -5":               "cannot be below 0",
		"version = 1\n[planned]\nrecomputed_share = nan":                  "cannot be below 0",
		"version = 1\n[planned]\npeak_allocated_bytes = \"x\"":            ":3: planned.peak_allocated_bytes has to be a whole number",
		"version = 1\nmodel = 3":                                          ":2: model has to be a text in quotes, and is of the type integer",
		"version = 1\n[levers.foreach]\n[levers.foreach]":                 ":3: ",
		"version = 1\ncommand = \"" + strings.Repeat("x", 1<<20) + "\"\n": "has more than 1.00 MiB",
	} {
		if _, err := Read(written(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestAgentKnows: the agent's list and ours have the same levers, but for those that are variables or words of a command.
func TestAgentKnows(t *testing.T) {
	source, err := os.ReadFile("../../agent/python/src/hightide_agent/levers/__init__.py")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "LEVERS = (")
	list, of, _ := strings.Cut(list, "\n)")
	_, ofJAX, _ := strings.Cut(of, "OF_JAX = (")
	ofJAX, _, _ = strings.Cut(ofJAX, ")")
	pytorchs := 0
	for _, lever := range All {
		engines := lever.Name == Allocator || lever.Name == Malloc || lever.Name == Words
		if lever.Framework == JAX {
			if !strings.Contains(ofJAX, `"`+lever.Name+`"`) {
				t.Errorf("%s: the agent does not have it for JAX", lever.Name)
			}
			continue
		}
		if !engines {
			pytorchs++
		}
		if has := strings.Contains(list, `"`+lever.Name+`"`); has == engines {
			t.Errorf("%s: the agent has it: %v", lever.Name, has)
		}
	}
	if n := strings.Count(list, "\n"); n != pytorchs {
		t.Errorf("the agent has %d levers of PyTorch, and this package %d without those that are not the agent's", n, pytorchs)
	}
}

// TestAlone: a run within a run with a plan is refused.
func TestAlone(t *testing.T) {
	for text, refused := range map[string]bool{"": false, "HIGHTIDE_PLAN=": false, "HIGHTIDE_PLANS=x": false,
		"HIGHTIDE_PLAN={}": true} {
		if err := Alone([]string{"PATH=/bin", text}); (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}
