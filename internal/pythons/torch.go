package pythons

import (
	"context"

	"hightide/internal/fail"
)

// WithTorch is the path of the interpreter to build a model with: the one named, else the best that has torch. cuda: a
// build for the CPU alone will not do.
func WithTorch(ctx context.Context, named string, cuda bool) (string, error) {
	for _, p := range toTry(ctx, named) {
		wanted := p.Source == "--python"
		switch {
		case p.Problem != "" && wanted: // never passed over
			return "", fail.Environment("name an interpreter of Python that has torch", "%s: %s", p.Path, p.Problem)
		case p.Problem != "":
		case p.Frameworks["torch"] == "" && (wanted || p.Source == "$VIRTUAL_ENV"):
			return "", fail.Environment("install torch there, or name another with --python", "%s has no torch", p.Path)
		case p.Frameworks["torch"] == "":
		case cuda && p.CUDA == "":
			return "", fail.Environment("install the CUDA build (it needs no GPU to be imagined), or use --device cpu",
				"%s has torch %s, which was built without CUDA", p.Path, p.Frameworks["torch"])
		default:
			return p.Path, nil
		}
	}
	return "", fail.Environment("pip install torch, or name an interpreter that has it with --python", "no Python with torch found")
}

// toTry are those to choose from, the best first. The first place to look is asked alone: where it has torch or was
// named, nothing else counts, and asking every interpreter of a machine can take longer than a trial.
func toTry(ctx context.Context, named string) []Interpreter {
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if all := candidates(named); len(all) > 0 {
		all[0].Ask(short)
		if named != "" || all[0].Problem == "" && all[0].Frameworks["torch"] != "" {
			return all[:1]
		}
	}
	return Find(ctx, named)
}
