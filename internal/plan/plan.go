// Package plan tells from a model's files how much memory a use of it takes, and which GPUs have that: no engine or
// framework runs, and nothing is imagined.
//
//	Options ──▶ hub: the files ──▶ modelfile.Model ──▶ facts (facts.go)
//	                                                     │
//	            serve.go, train.go: portions of one GPU ◀───┘
//	                        │
//	   gpus.Catalogue ──▶ Row: verdict, room, tokens, users or batch (rows.go) ──▶ Result ──▶ text.go, JSON
//	                        └──▶ advice.go: the cheapest, and the smallest change for a cheaper one
//
// Every figure says how it is known: exact, from the files; computed, from fields of the configuration; estimated, with
// an interval and what it rests on. Read Estimate, then serve.go.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/hub"
	"hightide/internal/modelfile"
)

// Run answers.
func Run(ctx context.Context, o Options) (*Result, error) {
	places, err := o.places()
	if err != nil {
		return nil, err
	}
	source, err := hub.Open(ctx, o.Model, hub.Options{Offline: o.Offline, MayRead: o.MayRead})
	if err != nil {
		return nil, err
	}
	f, r, err := o.answer(source, places)
	if err == nil {
		err = o.runOrSay(ctx, source, f, places, r)
	}
	return r, err
}

// runOrSay has the use imagined where that is asked for, and says else that nothing was. An answer that was interrupted
// is whole: what was not run is estimated.
func (o *Options) runOrSay(ctx context.Context, source *hub.Place, f *facts, places []Place, r *Result) error {
	switch {
	case o.Imagine == ImagineOff:
		return nil
	case o.Imagine == "":
		r.sayArithmetic(f)
		return nil
	}
	err := o.imagine(ctx, source, f, places, r)
	said := "nothing was imagined"
	if r.imagined() {
		said = "no more was imagined"
	}
	switch {
	case ctx.Err() != nil:
		r.Notes = append(r.Notes, said+": it was interrupted")
	case err != nil && o.Imagine == ImagineAuto:
		r.Notes = append(r.Notes, said+": "+why(err))
		return nil
	}
	return err
}

// why is an error as part of a sentence, with what to do.
func why(err error) string {
	var known *fail.Error
	if errors.As(err, &known) && known.Code == fail.ExitEnvironment && known.Hint != "" {
		return err.Error() + "; " + known.Hint
	}
	return err.Error()
}

// sayArithmetic says that nothing was run, where it could be.
func (r *Result) sayArithmetic(f *facts) {
	if f.unimaginable() == "" {
		r.Notes = append(r.Notes,
			"nothing was run: all of it is arithmetic. hightide plan --imagine runs it on imaginary GPUs")
	}
}

// OfFiles answers for files that somebody sends, whose folder has nothing else; the model in the options is their name.
func OfFiles(files fs.FS, o Options) (*Result, error) {
	places, err := o.places()
	if err != nil {
		return nil, err
	}
	f, r, err := o.answer(&hub.Place{Asked: o.Model, Source: "sent", Files: files}, places)
	if err == nil {
		r.sayArithmetic(f)
	}
	return r, err
}

func (o *Options) answer(source *hub.Place, places []Place) (*facts, *Result, error) {
	model, err := modelfile.Read(source.Files, source.Name)
	if err != nil {
		return nil, nil, unreadable(o.Model, err)
	}
	f := newFacts(model, o.Use)
	r, err := f.answer(source, places)
	if unused := o.unused(); err == nil && unused != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("with --for %s this changes nothing: %s", o.For, unused))
	}
	return f, r, err
}

// unused are settings that were given, and are of other uses.
func (o *Options) unused() string {
	var names []string
	trains := o.For != Serve && o.For != Infer
	for _, one := range []struct {
		name  string
		given bool
	}{{"--users", o.For != Serve && o.Users > 1}, {"--utilization", o.For != Serve && o.Utilization > 0},
		{"--batch", o.For == Serve && o.Batch > 1}, {"--kv-dtype", trains && o.Cache == "fp8"},
		{"--optimizer", !trains && o.Optimizer != "adamw"}, {"--no-checkpointing", !trains && o.KeepAll},
		{"--lora-rank", o.For != LoRA && o.For != QLoRA && o.Rank != usualRank}} {
		if one.given {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, ", ")
}

// places are where a use is planned, its settings checked and filled in.
func (o *Options) places() ([]Place, error) {
	o.Settings().Fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	catalogue, err := gpus.Load(o.Catalogue...)
	if err != nil {
		return nil, err
	}
	chosen, err := o.chosen(catalogue)
	if err != nil {
		return nil, err
	}
	places := placesOf(chosen, o.Instances, o.GPUs)
	if len(places) == 0 {
		return nil, fail.Usage("leave --gpus out, or name other GPUs", "no machine that hightide knows has %d such GPUs", o.GPUs)
	}
	return places, nil
}

// Make is the pure part of Run: the answer for a model, a use and some places.
func Make(model *modelfile.Model, source *hub.Place, use Use, places []Place) (*Result, error) {
	return newFacts(model, use).answer(source, places)
}

func (f *facts) answer(source *hub.Place, places []Place) (*Result, error) {
	if err := f.possible(); err != nil {
		return nil, err
	}
	r := &Result{Version: Version, Use: f.use, Alone: f.blind(), Model: f.info(), Rows: []Row{}, Changes: []Alternative{}}
	if source != nil {
		r.Model.Name, r.Model.Source = source.Asked, source.Source
	}
	for i := range places {
		r.Rows = append(r.Rows, f.at(&places[i]))
	}
	sortRows(r.Rows)
	r.conclude()
	r.Changes = f.changes(r, places)
	r.Notes = f.notes()
	return r, nil
}

// chosen are the GPUs that were asked for.
func (o *Options) chosen(catalogue *gpus.Catalogue) ([]gpus.GPU, error) {
	var chosen []gpus.GPU
	for _, name := range o.GPU {
		if name == "all" {
			return o.several(catalogue.GPUs), nil
		}
		g, err := catalogue.Named(name)
		if err != nil {
			return nil, err
		}
		if o.GPUs > 1 && g.Alone() {
			return nil, fail.Usage("leave --gpus out, or name another GPU", "--gpus %d: a machine has one %s", o.GPUs, g.Name)
		}
		chosen = append(chosen, *g)
	}
	if chosen == nil {
		return o.several(catalogue.GPUs), nil
	}
	return chosen, nil
}

// several leaves out GPUs of which a machine has one, where more were asked for.
func (o *Options) several(list []gpus.GPU) []gpus.GPU {
	if o.GPUs <= 1 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(g gpus.GPU) bool { return g.Alone() })
}
