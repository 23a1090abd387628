package plan

import (
	"context"
	"maps"
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
	im := &imagining{f, placesOf(chosen, false, 1), r, func(int) []string { return nil }, all,
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

// TestReferenceOfSeveralGPUs: of Llama-3-8B on 8 GPUs an imagined run of TRL's DPOTrainer (1.16) held 52,590,402,560
// bytes, as each GPU gathers the whole reference model.
func TestReferenceOfSeveralGPUs(t *testing.T) {
	use := Use{For: DPO, Seq: 2048, Batch: 2, GPUs: 8, Optimizer: "adamw", Weights: "auto"}
	f := factsOf(t, llama3, use)
	var held Estimate
	for _, p := range f.batchParts(&gpus.Builtin().GPUs[0], f.batch()) {
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
		im := &imagining{f, places, r, func(count int) []string { asked[count] = true; return nil }, true,
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
				func(int) []string { return nil }, false, told, func(int) int { return 2 }}
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
