package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/files"
	models "hightide/internal/hub"
	"hightide/internal/modelfile"
	"hightide/internal/options"
	"hightide/internal/plan"
)

// planTakes is what a plan is asked for: a use, and a model by its name or by what of its files is read.
var planTakes = jobKind{name: "plan", short: "Which GPUs serve, run or train a model", takes: new(plan.Options).Settings()}

// sentBytes is the most that a request with headers has. Large vocabularies make headers of 10 MiB, and Base64 a third more.
const sentBytes = 96 << 20

// planInput is a request. Its settings are read, and refused, by package options.
type planInput struct {
	Body json.RawMessage
}

// sentModel are the parts of a request that are no settings: a model that is sent.
type sentModel struct {
	Config json.RawMessage `json:"config,omitempty" doc:"A config.json of Hugging Face, as it is."`
	Files  []sentFile      `json:"files,omitempty" doc:"Files of safetensors or GGUF: their headers alone."`
	Name   string          `json:"name,omitempty" doc:"How to call the model that is sent."`
}

// sentFile is the beginning of a file.
type sentFile struct {
	Name  string `json:"name" doc:"As model.safetensors."`
	Bytes int64  `json:"bytes" doc:"The size of the whole file, in bytes."`
	Head  []byte `json:"head" doc:"Its first bytes, to the end of its header."`
}

// planAnswer is a plan, and the same in words.
type planAnswer struct {
	*plan.Result
	Told *plan.Told `json:"told" doc:"The same in words."`
}

func (s *Server) plan(api huma.API) {
	huma.Post(api, "/api/v1/plan", answering(func(ctx context.Context, in *planInput) (*planAnswer, error) {
		r, err := s.planned(ctx, in.Body)
		if fail.Code(err) == fail.ExitBadInput { // it stands in the request
			err = huma.Error422UnprocessableEntity(line(err))
		}
		if err != nil {
			return nil, err
		}
		return &planAnswer{r, r.Told()}, nil
	}), func(o *huma.Operation) {
		o.Summary = "Which GPUs serve, run or train a model: arithmetic, nothing is run"
		o.MaxBodyBytes, o.BodyReadTimeout = sentBytes, -1 // both are bounded before: see bounded.go
	})
}

// planned reads a request and answers it.
func (s *Server) planned(ctx context.Context, body []byte) (*plan.Result, error) {
	var given map[string]json.RawMessage
	var sent sentModel
	if err := json.Unmarshal(body, &given); err != nil || json.Unmarshal(body, &sent) != nil {
		return nil, fail.Usage(`as in {"config": {…}, "for": "serve", "users": 20}`, "the request is no such JSON object")
	}
	maps.DeleteFunc(given, func(key string, _ json.RawMessage) bool {
		return key == "config" || key == "files" || key == "name"
	})
	rest, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	o := plan.Options{MayRead: s.mayPlan}
	if err := o.Settings().Read(options.HTTP, rest); err != nil {
		return nil, err
	}
	here, err := sent.folder()
	if err != nil {
		return nil, err
	}
	switch {
	case len(here) > 0 && o.Model != "":
		return nil, fail.Usage("leave one of them out", "a model is named, and another one sent")
	case len(here) > 0:
		o.Model = cmp.Or(sent.Name, "config.json")
		return plan.OfFiles(here, o)
	}
	return s.engine.Plan(ctx, o)
}

// folder has what was sent as files.
func (m *sentModel) folder() (modelfile.Heads, error) {
	here := modelfile.Heads{}
	if m.Config != nil {
		here["config.json"] = modelfile.Head{Size: int64(len(m.Config)), Begin: m.Config}
	}
	for _, f := range m.Files {
		switch _, twice := here[f.Name]; {
		case !fs.ValidPath(f.Name) || strings.Contains(f.Name, "/") || f.Name == ".":
			return nil, fail.Usage("a name without folders", "files: %q is no name of a file", f.Name)
		case twice:
			return nil, fail.Usage("send it once", "files: %s is sent twice", f.Name)
		case f.Bytes < int64(len(f.Head)):
			return nil, fail.Usage("bytes is the size of the whole file", "files: %s has %d bytes, and %d of them are sent", f.Name,
				f.Bytes, len(f.Head))
		}
		here[f.Name] = modelfile.Head{Size: f.Bytes, Begin: f.Head}
	}
	return here, nil
}

// mayPlan says why a model may not be read: it lies neither where the server was started nor with the recordings, nor in
// the hub's cache. Where programs may be started, whoever asks can read what these can.
func (s *Server) mayPlan(path string) error {
	if s.options.AllowExec || files.Within(path, ".", s.engine.Dir(), models.CacheDir()) {
		return nil
	}
	return fail.Input("drop its files on the page, or start hightide ui in the folder of the models",
		"%s lies outside the folders that may be read", path)
}

// planSchema describes a request: for readers, as the options of jobs.
func planSchema(all huma.Registry) *huma.Schema {
	schema := optionsSchema(planTakes)
	sent := all.Schema(reflect.TypeFor[sentModel](), false, "")
	maps.Copy(schema.Properties, sent.Properties)
	schema.Description = fmt.Sprintf("%s. The model is named by `model`, or sent: `config`, `files`.", planTakes.short)
	return schema
}
