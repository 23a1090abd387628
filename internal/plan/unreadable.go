package plan

import (
	"errors"
	"io/fs"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/modelfile"
)

// unreadable is an error of a model's files with what to do about it.
func unreadable(name string, err error) error {
	var own *modelfile.Error
	var several *modelfile.SeveralError
	var known *fail.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &several):
		return fail.Input("name one of them: hightide plan "+strings.TrimSuffix(name, "/")+"/"+several.Files[0],
			"%s holds %w", name, err)
	case errors.Is(err, modelfile.ErrNothing):
		return fail.Input("give a config.json, a folder with one, or a file of safetensors or GGUF", "%s: %w", name, err)
	case errors.Is(err, modelfile.ErrNoWriter):
		return fail.Input("plan is for models that write text; what your own program takes says hightide imagine -- python FILE",
			"%w", err)
	case errors.As(err, &own) && own.Offset >= 0:
		return fail.Input("is the file whole? copy or download it again, or give another of the model", "%w", err)
	case errors.As(err, &own):
		return fail.Input("give the model's safetensors or GGUF; or have the engine build it: hightide imagine --gpu NAME "+
			"--users 20 --tokens 4096 -- vllm serve FOLDER --load-format dummy", "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fail.Input("is the model here whole?", "%s: %w", name, err)
	}
	return fail.Input("", "%s: %w", name, err)
}
