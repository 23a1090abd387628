package gpus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hightide/internal/words"
)

// NotFoundError says that a name means no GPU, or several.
type NotFoundError struct {
	Name       string
	Candidates []string // slugs it could mean; of an unknown name: those that look like it
	Ambiguous  bool
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Ambiguous:
		return fmt.Sprintf("%q could be %s", e.Name, alternatives(e.Candidates))
	case len(e.Candidates) > 0:
		return fmt.Sprintf("no GPU %q in the catalogue; did you mean %s?", e.Name, alternatives(e.Candidates))
	}
	return fmt.Sprintf("no GPU %q in the catalogue", e.Name)
}

func alternatives(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// Find returns the GPU that a name means. A name is its slug, its full name as a driver says it, an alias, the
// name of a cloud's instance, or a beginning of one that leaves no doubt. Case, spaces, dashes,
// makers' names and "GB" for "G" do not matter.
func (c *Catalogue) Find(name string) (*GPU, error) {
	wanted := canonical(name)
	if wanted == "" {
		return nil, &NotFoundError{Name: name}
	}
	for _, pass := range []func(*GPU) bool{
		func(g *GPU) bool { return squeeze(g.Slug) == squeeze(wanted) },
		func(g *GPU) bool {
			return slices.ContainsFunc(g.names(), func(n string) bool { return squeeze(canonical(n)) == squeeze(wanted) })
		},
		func(g *GPU) bool { return g.hasWords(parts(wanted)) },
		func(g *GPU) bool {
			return slices.ContainsFunc(g.names(), func(n string) bool {
				return strings.HasPrefix(squeeze(canonical(n)),
					squeeze(wanted))
			})
		},
	} {
		var found []*GPU
		for i := range c.GPUs {
			if pass(&c.GPUs[i]) {
				found = append(found, &c.GPUs[i])
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			err := &NotFoundError{Name: name, Ambiguous: true}
			for _, g := range found {
				err.Candidates = append(err.Candidates, g.Slug)
			}
			return nil, err
		}
	}
	return nil, &NotFoundError{Name: name, Candidates: c.near(wanted)}
}

// names are all that a GPU is called.
func (g *GPU) names() []string { return append([]string{g.Slug, g.Name}, g.Aliases...) }

// hasWords says whether every word is one of the GPU's own, among them its memory size.
func (g *GPU) hasWords(wanted []string) bool {
	own := []string{fmt.Sprintf("%dg", (g.Total+1<<29)>>30)}
	for _, n := range g.names() {
		own = append(own, parts(canonical(n))...)
	}
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(own, w) }) && len(wanted) > 0
}

// makers are words that tell nothing about a model.
var makers = []string{"nvidia", "tesla", "geforce", "amd", "instinct", "graphics", "gpu", "generation", "cuda"}

// canonical writes a name as slugs are: "NVIDIA A100 40GB" becomes "a100-40g".
func canonical(name string) string {
	var kept []string
	for _, w := range parts(strings.ToLower(name)) {
		if slices.Contains(makers, w) {
			continue
		}
		for _, unit := range []string{"gib", "gb"} {
			if number, ok := strings.CutSuffix(w, unit); ok && number != "" && strings.Trim(number, "0123456789") == "" {
				w = number + "g"
			}
		}
		if (w == "gb" || w == "gib") && len(kept) > 0 && strings.Trim(kept[len(kept)-1], "0123456789") == "" {
			kept[len(kept)-1] += "g" // "40 GB"
			continue
		}
		kept = append(kept, w)
	}
	return strings.Join(kept, "-")
}

func parts(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// squeeze leaves out what separates: "rtx-4090" and "rtx4090" are the same.
func squeeze(canonical string) string { return strings.ReplaceAll(canonical, "-", "") }

// guess is a GPU that may have been meant: at what distance, and with how many letters alike at the beginning.
type guess struct {
	slug            string
	distance, alike int
}

// closer takes a name's distance where it is no further than the best so far. Words without a digit name no model.
func (g *guess) closer(wanted, name string) {
	if !strings.ContainsAny(name, "0123456789") {
		return
	}
	alike := 0
	for alike < min(len(wanted), len(name)) && wanted[alike] == name[alike] {
		alike++
	}
	distance := words.Distance(wanted, name)
	if distance < g.distance || distance == g.distance && alike > g.alike {
		g.distance, g.alike = distance, alike
	}
}

// near lists at most four slugs of the models whose names look most like what was asked for. A
// model's number counts as a name of its own, since "h1000" is a slip of "h100", whichever that is;
// among equals those that begin alike come first.
func (c *Catalogue) near(wanted string) []string {
	wanted = squeeze(wanted)
	var guesses []guess
	for i := range c.GPUs {
		best := guess{c.GPUs[i].Slug, 1 + len(wanted)/4, -1}
		for _, n := range c.GPUs[i].names() {
			own := parts(canonical(n))
			for k := range own {
				best.closer(wanted, strings.Join(own[:k+1], ""))
			}
		}
		if best.alike >= 0 {
			guesses = append(guesses, best)
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.alike, a.alike))
	})
	var slugs []string
	for _, g := range guesses[:min(len(guesses), 4)] {
		if g.distance == guesses[0].distance {
			slugs = append(slugs, g.slug)
		}
	}
	return slugs
}
