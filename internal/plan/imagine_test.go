package plan

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/event"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func one(int) int { return 1 }

// ofRuns are the rows of a use after runs with given ends, by GPU, and the GPUs that were run.
func ofRuns(t *testing.T, use Use, all bool, ends map[string]*report.Imagined, cards ...string) (*Result, []string) {
	t.Helper()
	r := planned(t, llama3, use, cards...)
	o := Options{Use: use, GPU: cards}
	o.Settings().Fill()
	chosen, err := o.chosen(gpus.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	f := factsOf(t, llama3, use)
	var ran []string
	im := &imagining{f, placesOf(chosen, false, 1), r, func(int) []string { return nil }, "", all,
		func(event.Event) {}, one}
	err = im.each(t.Context(), func(_ context.Context, g *gpus.GPU, _ int, _ []string) (*report.Imagined, string, error) {
		ran = append(ran, g.Slug)
		return ends[g.Slug], "the last words", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.settle(f, im.places)
	return r, ran
}

func ended(v mem.Verdict, allocated, reserved, used mem.Bytes) *report.Imagined {
	return &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: v, Allocated: mem.Some(int64(allocated)),
		Reserved: mem.Some(int64(reserved)), Used: mem.Some(int64(used))}}
}

// TestImaginedRowsReplaceEstimates: the cheapest is run first, and after the first that does it nothing is run; the
// figures of a run are those that it ended with, but for what the catalogue is not sure of.
func TestImaginedRowsReplaceEstimates(t *testing.T) {
	use := Use{For: LoRA, Seq: 4096, Batch: 2, Optimizer: "adamw", Rank: 16, Weights: "auto"}
	ends := map[string]*report.Imagined{
		"rtx3090": {GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictOOM}},
		"a40":     ended(mem.VerdictFits, 29*mem.GiB, 31*mem.GiB, 31*mem.GiB+425*mem.MiB),
	}
	r, ran := ofRuns(t, use, false, ends, "h100-sxm", "a40", "rtx3090")
	if want := []string{"rtx3090", "a40"}; !slices.Equal(ran, want) || r.Cheapest != "a40" {
		t.Errorf("ran %q, the cheapest is %s", ran, r.Cheapest)
	}
	row := r.row("a40")
	if row.Label != mem.Imagined || part(t, row, "tensors").Estimate != exactly(29*mem.GiB) ||
		part(t, row, "kept by the allocator").Estimate != exactly(2*mem.GiB) || row.Batch != nil {
		t.Errorf("%+v", row)
	}
	if beside := part(t, row, "context and libraries").Estimate; beside.Bytes != 425*mem.MiB || beside.Low >= beside.Bytes ||
		row.Room != row.Budget.minus(sum(row.Parts)) {
		t.Errorf("%+v", row)
	}
	if row := r.row("rtx3090"); row.Verdict != No || row.Label != mem.Imagined || row.Room.High >= 0 || row.Note == "" {
		t.Errorf("%+v", row)
	}
	if row := r.row("h100-sxm"); row.Label != mem.Estimated || row.Verdict != Fits {
		t.Errorf("%+v", row)
	}
	if text := r.Text(report.TextOptions{}); !strings.Contains(text, "the cheapest GPU that fits is a40, $0.44 an hour (imagined)") {
		t.Error(text)
	}
}

// TestImaginedServer: tokens are the engine's own, and users what of them sequences in whole blocks take.
func TestImaginedServer(t *testing.T) {
	use := Use{For: Serve, Seq: 1000, Users: 20, Weights: "auto", Cache: "auto"}
	serving := &report.Serving{Engine: "vLLM", Ready: true, ServingFigures: mem.ServingFigures{KVTokens: mem.Some(20_160),
		KVBytes: mem.Some(20_160 * 131_072), BlockSize: mem.Some(16), Weights: mem.Some(15 << 30), Activations: mem.Some(1 << 30),
		NonTorch: mem.Some(10 << 20), Budget: mem.Some(20 << 30)}}
	one := &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFits}, Serving: serving}
	r, _ := ofRuns(t, use, true, map[string]*report.Imagined{"l4": one}, "l4")
	row := r.Rows[0]
	if row.Tokens.Figure != 20_160 || row.Users.Figure != 20 || row.Room.Bytes != 0 || row.Room.Low >= 0 || row.Verdict != Likely {
		t.Errorf("%+v, %+v, %+v, %s", row.Tokens, row.Users, row.Room, row.Verdict) // 20 sequences of 63 blocks
	}
	short := *serving
	short.KVTokens, short.KVBytes = mem.Some(20_144), mem.Some(20_144*131_072)
	one = &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFits}, Serving: &short}
	if r, _ = ofRuns(t, use, true, map[string]*report.Imagined{"l4": one}, "l4"); r.Rows[0].Users.Figure != 19 ||
		r.Rows[0].Verdict == Fits || r.Rows[0].Verdict == Likely {
		t.Errorf("%+v", r.Rows[0])
	}
}

// TestFailuresOfImaginedRuns: a failure that is none of memory leaves the estimate, with why; after two no more is run.
func TestFailuresOfImaginedRuns(t *testing.T) {
	use := Use{For: LoRA, Seq: 512, Batch: 1, Optimizer: "adamw", Rank: 16, Weights: "auto"}
	failed := &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFailed}, How: "ValueError: no such head"}
	ends := map[string]*report.Imagined{"rtx3090": failed, "rtx4090": failed, "a40": failed}
	r, ran := ofRuns(t, use, false, ends, "rtx3090", "rtx4090", "a40")
	if len(ran) != 2 || r.row("rtx3090").Label != mem.Estimated || !strings.Contains(r.row("rtx4090").Note, "no such head") ||
		!slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "no more was imagined after") }) {
		t.Errorf("%q, %+v, %q", ran, r.row("rtx3090"), r.Notes)
	}
}

// TestContradictedEstimates: where a run says otherwise than the estimate, the row has both figures.
func TestContradictedEstimates(t *testing.T) {
	use := Use{For: LoRA, Seq: 512, Batch: 1, Optimizer: "adamw", Rank: 16, Weights: "auto"}
	ends := map[string]*report.Imagined{
		"a40":      {GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictOOM}},
		"h100-sxm": ended(mem.VerdictFits, 60*mem.GiB, 61*mem.GiB, 62*mem.GiB),
	}
	before := planned(t, llama3, use, "a40").Rows[0]
	r, _ := ofRuns(t, use, true, ends, "a40", "h100-sxm", "mi300x")
	row := r.row("a40")
	if before.Verdict != Fits || row.Verdict != No || row.Estimated == nil || row.Estimated.Verdict != Fits ||
		row.Estimated.Room != before.Room || row.Estimated.Batch == nil {
		t.Errorf("%+v, it was %+v", row, before)
	}
	text := r.Text(report.TextOptions{})
	for _, want := range []string{"a40: imagined: ran out of memory; estimated: fits, " + before.Room.Bytes.String(),
		"h100-sxm: imagined: fits, 17.2 GiB left; estimated: fits, ", "ran out of memory; estimated: fits, "} {
		if !strings.Contains(text, want) {
			t.Errorf("not told: %s\n%s", want, text)
		}
	}
	if strings.Contains(text, "mi300x: imagined") || r.row("mi300x").Estimated != nil {
		t.Errorf("a row that was not run: %+v", r.row("mi300x"))
	}
}

// withoutRuns are the options of a model of which runs are as given, and nothing is started.
func withoutRuns(t *testing.T, mode string, run Trial) Options {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"python", "vllm"} { // a server is looked for, and not asked
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(llama3), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{Model: dir, GPU: []string{"a40", "l40s"}, Imagine: mode, Python: filepath.Join(dir, "python"),
		Host: Host{Check: func() error { return nil }, AtOnce: one,
			Session: func(map[string]string, []string) Trial { return run }}, Events: func(event.Event) {}}
}

// TestAnswersOfWhatIsNotRun: an answer is whole where runs are interrupted, cannot be made, are left out, or were not
// asked for; and it says which.
func TestAnswersOfWhatIsNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := withoutRuns(t, ImagineAuto, func(ctx context.Context, _ *gpus.GPU, _ int,
		_ []string) (*report.Imagined, string, error) {
		cancel()
		<-ctx.Done()
		return nil, "", ctx.Err()
	})
	r, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || r == nil || r.Cheapest != "a40" ||
		!slices.Contains(r.Notes, "nothing was imagined: it was interrupted") {
		t.Errorf("%v, %+v", err, r)
	}
	elsewhere := func(o *Options) { o.Python = "/nowhere/python" }
	for _, test := range []struct {
		name, mode, notes string
		change            func(*Options)
	}{
		{"no server is there", ImagineAuto, "nothing was imagined: there is no vLLM beside ", elsewhere},
		{"what to do is said", ImagineAuto, "; pip install vllm, or name a Python that has it with", elsewhere},
		{"the machine does not do it", ImagineAuto, "nothing was imagined: no imaginary GPUs here",
			func(o *Options) { o.Host.Check = func() error { return errors.New("no imaginary GPUs here") } }},
		{"such weights are not run", ImagineAuto, "nothing was imagined: --dtype int4 is not imagined",
			func(o *Options) { o.Weights = "int4" }},
		{"no GPU may do it", ImagineFirst, "nothing was imagined: no GPU looked at may do it",
			func(o *Options) { o.Users = 1000 }},
		{"a run cannot be made", ImagineAuto, "nothing was imagined: no room", func(*Options) {}},
		{"it was not asked for", "", "nothing was run: all of it is arithmetic. ", func(*Options) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := withoutRuns(t, test.mode, func(context.Context, *gpus.GPU, int,
				[]string) (*report.Imagined, string, error) {
				return nil, "", errors.New("no room")
			})
			test.change(&o)
			r, err := Run(t.Context(), o)
			if err != nil || len(r.Rows) != 2 || !strings.Contains(strings.Join(r.Notes, "\n"), test.notes) {
				t.Errorf("%v, %q", err, r.Notes)
			}
		})
	}
	r, err = Run(t.Context(), withoutRuns(t, ImagineOff, nil))
	if err != nil || strings.Contains(strings.Join(r.Notes, "\n"), "nothing") {
		t.Errorf("%v, %q", err, r.Notes)
	}
	o = withoutRuns(t, ImagineFirst, nil)
	o.Python = "/nowhere/python"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no vLLM") {
		t.Errorf("asked for, and not possible: %v", err)
	}
}

// TestReferenceOfSeveralGPUs: of Llama-3-8B on 8 GPUs an imagined run of TRL's DPOTrainer (1.16) held 52,590,402,560
// bytes, as each GPU gathers the whole reference model.
func TestReferenceOfSeveralGPUs(t *testing.T) {
	use := Use{For: DPO, Seq: 2048, Batch: 2, GPUs: 8, Optimizer: "adamw", Weights: "auto"}
	f := factsOf(t, llama3, use)
	var held Estimate
	for _, p := range f.batchParts(h100(t), f.batch()) {
		if p.Name != "context and libraries" && p.Name != "kept by the allocator" {
			held = held.plus(p.Estimate)
		}
	}
	if held.Low > 52_590_402_560 || held.High < 52_590_402_560 {
		t.Errorf("planned are %s", held.text())
	}
}

// TestMachinesAreUsedWhole: a command is for as many GPUs as the row has, of a machine too; and a batch that is
// generated is not run on several.
func TestMachinesAreUsedWhole(t *testing.T) {
	for use, want := range map[string][]int{LoRA: {1, 8}, Infer: {1}} {
		f := factsOf(t, llama3, Use{For: use, Seq: 512, Batch: 1, Optimizer: "adamw", Rank: 16, Weights: "auto"})
		var places []Place
		for _, m := range gpus.Instances() {
			if g, err := gpus.Builtin().Named("h100-sxm"); err == nil && m.GPU == g.Slug && (m.Count == 1 || m.Count == 8) {
				places = append(places, Place{g, &m})
			}
		}
		r, err := f.answer(nil, places)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[int]bool{}
		im := &imagining{f, places, r, func(count int) []string { asked[count] = true; return nil }, "", true,
			func(event.Event) {}, one}
		err = im.each(t.Context(), func(_ context.Context, _ *gpus.GPU, count int, _ []string) (*report.Imagined, string, error) {
			return ended(mem.VerdictFits, mem.GiB, mem.GiB, mem.GiB), "", nil
		})
		if got := slices.Sorted(maps.Keys(asked)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: commands for %v, want %v, %v", use, got, want, err)
		}
	}
}

// TestTurnsAtOnce: two GPUs are run side by side. Where the dearer one does it, the cheaper one is waited for; where
// the cheaper one does it, the dearer one is ended, and its row stays estimated.
func TestTurnsAtOnce(t *testing.T) {
	use := Use{For: LoRA, Seq: 4096, Batch: 2, Optimizer: "adamw", Rank: 16, Weights: "auto"}
	fits := ended(mem.VerdictFits, 12*mem.GiB, 13*mem.GiB, 14*mem.GiB)
	fails := &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictOOM}}
	for _, test := range []struct {
		name     string
		cheap    *report.Imagined
		ran      []string
		cheapest string
	}{
		{"the cheaper one does it", fits, []string{"rtx3090"}, "rtx3090"},
		{"only the dearer one does it", fails, []string{"a40", "rtx3090"}, "a40"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cards := []string{"h100-sxm", "a40", "rtx3090"}
			o := Options{Use: use, GPU: cards}
			o.Settings().Fill()
			chosen, err := o.chosen(gpus.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			r := planned(t, llama3, use, cards...)
			both, dearer := make(chan bool), make(chan bool)
			told := func(e event.Event) {
				if e, ok := e.(Imagined); ok && e.Row != nil && e.Row.GPU == "a40" {
					close(dearer)
				}
			}
			im := &imagining{factsOf(t, llama3, use), placesOf(chosen, false, 1), r,
				func(int) []string { return nil }, "", false, told, func(int) int { return 2 }}
			err = im.each(t.Context(), func(ctx context.Context, g *gpus.GPU, _ int,
				_ []string) (*report.Imagined, string, error) {
				if g.Slug == "a40" {
					both <- true
					if test.cheap == fits {
						<-ctx.Done()
						return fails, "", nil
					}
					return fits, "", nil
				}
				<-both
				if test.cheap == fails {
					<-dearer
				}
				return test.cheap, "", nil
			})
			if err != nil {
				t.Fatal(err)
			}
			r.settle(im.facts, im.places)
			var ran []string
			for _, row := range r.Rows {
				if row.Label == mem.Imagined {
					ran = append(ran, row.GPU)
				}
			}
			if slices.Sort(ran); !slices.Equal(ran, test.ran) || r.Cheapest != test.cheapest {
				t.Errorf("imagined are %q, the cheapest is %s", ran, r.Cheapest)
			}
		})
	}
}
