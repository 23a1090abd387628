package modelfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"hightide/internal/mem"
)

// The names that files of a model have.
const (
	configFile = "config.json"
	indexFile  = "model.safetensors.index.json"
)

// ErrNothing is that of a place without files of a model.
var ErrNothing = errors.New("no config.json, *.safetensors or *.gguf")

// Read reads the model in a file system: name is one of its files, or "" for all of it. A file of weights is read with
// the config.json beside it, and with the other parts where it is one of several.
func Read(files fs.FS, name string) (*Model, error) {
	switch {
	case strings.HasSuffix(name, ".gguf"):
		return readGGUFs(files, name)
	case graphs[path.Ext(name)].read != nil:
		return readGraph(files, name)
	case strings.HasSuffix(name, ".safetensors"):
		return withConfig(files, []string{name})
	case strings.HasSuffix(name, ".safetensors.index.json"):
		parts, err := partsOf(files, name)
		if err != nil {
			return nil, err
		}
		return withConfig(files, parts)
	case name != "":
		return readConfigAlone(files, name)
	}
	parts, err := weightFiles(files)
	if err != nil {
		return nil, err
	}
	if len(parts) > 0 {
		return withConfig(files, parts)
	}
	if _, err := fs.Stat(files, configFile); err == nil {
		return readConfigAlone(files, configFile)
	}
	return readOnlyGGUF(files)
}

// Named says whether a file's name is that of weights, which Read reads.
func Named(name string) bool {
	end := path.Ext(name)
	return end == ".gguf" || end == ".safetensors" || graphs[end].read != nil
}

// readOnlyGGUF reads the GGUF of a folder that has nothing else.
func readOnlyGGUF(files fs.FS) (*Model, error) {
	found, err := matching(files, ".gguf")
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(name string) bool {
		first, _, of := sharded(name)
		return of > 0 && name != first || strings.HasPrefix(path.Base(name), "mmproj")
	})
	switch len(found) {
	case 0:
		return nil, ErrNothing
	case 1:
		return readGGUFs(files, found[0])
	}
	return nil, &SeveralError{Files: found}
}

// SeveralError is that of a place with several models: one of them is to be named.
type SeveralError struct{ Files []string }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%d models: %s", len(e.Files), strings.Join(e.Files[:min(6, len(e.Files))], ", "))
}

// weightFiles are the files of safetensors that hold a model: those of its index, or the one of the usual name, or all.
func weightFiles(files fs.FS) ([]string, error) {
	if _, err := fs.Stat(files, indexFile); err == nil {
		return partsOf(files, indexFile)
	}
	if _, err := fs.Stat(files, "model.safetensors"); err == nil {
		return []string{"model.safetensors"}, nil
	}
	indexes, err := matching(files, ".safetensors.index.json")
	if err != nil {
		return nil, err
	}
	if len(indexes) == 1 {
		return partsOf(files, indexes[0])
	}
	found, err := matching(files, ".safetensors")
	found = slices.DeleteFunc(found, func(name string) bool {
		return strings.HasPrefix(name, "consolidated") || strings.HasPrefix(name, "adapter_model")
	})
	if len(found) > maxFiles {
		return nil, fmt.Errorf("more than %d files of weights", maxFiles)
	}
	return found, err
}

// matching are the files of a folder whose names end so.
func matching(files fs.FS, end string) (found []string, err error) {
	entries, err := fs.ReadDir(files, ".")
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), end) {
			found = append(found, e.Name())
		}
	}
	return found, err
}

// partsOf are the files that an index names.
func partsOf(files fs.FS, index string) ([]string, error) {
	file, err := files.Open(index)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	seen := map[string]bool{}
	err = weightMap(json.NewDecoder(io.LimitReader(file, maxIndex)), func(name string) error {
		name = path.Join(path.Dir(index), name)
		switch seen[name] = true; {
		case !fs.ValidPath(name) || !strings.HasSuffix(name, ".safetensors"):
			return fmt.Errorf("it names %q as a file of weights", short(name))
		case len(seen) > maxFiles:
			return fmt.Errorf("it names more than %d files of weights", maxFiles)
		}
		return nil
	})
	if err == nil && len(seen) == 0 {
		err = errors.New("it names no file of weights")
	}
	if err != nil {
		return nil, &Error{File: index, Offset: -1, Err: inHeader(err)}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// weightMap walks through an index: each tensor has a file.
func weightMap(in *json.Decoder, each func(file string) error) error {
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		return cmp.Or(err, errors.New("no JSON object"))
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		if key != "weight_map" {
			var other json.RawMessage
			if err := in.Decode(&other); err != nil {
				return err
			}
			continue
		}
		if first, err := in.Token(); err != nil || first != json.Delim('{') {
			return cmp.Or(err, errors.New("its weight_map is no object"))
		}
		for in.More() {
			if _, err := in.Token(); err != nil {
				return err
			}
			name, err := in.Token()
			if err != nil {
				return err
			}
			text, _ := name.(string)
			if err := each(text); err != nil {
				return err
			}
		}
		if _, err := in.Token(); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

// graphs are files that hold a program with its weights, by the ends of their names.
var graphs = map[string]struct {
	format Format
	read   func(io.ReaderAt, int64, *budget, *Model) error
}{
	".onnx":   {FormatONNX, readONNX},
	".tflite": {FormatTFLite, readTFLite},
	".pt2":    {FormatPT2, readPT2},
	".pte":    {FormatPTE, readPTE},
}

// readGraph reads the weights of such a file.
func readGraph(files fs.FS, name string) (*Model, error) {
	kind := graphs[path.Ext(name)]
	m := &Model{Format: kind.format, Files: []string{name}}
	err := open(files, name, func(r io.ReaderAt, size int64) (err error) { return kind.read(r, size, new(budget), m) })
	if err != nil {
		return nil, err
	}
	m.Shape.Unknown = []string{m.besides()}
	return m.some(name)
}

// besides says what is known of memory beside the weights.
func (m *Model) besides() string {
	if planned, ok := m.Planned.Get(); ok {
		return fmt.Sprintf("beside its weights the runtime sets %v aside, as the file says; what backends take is not in it",
			mem.Bytes(planned))
	}
	if m.Graph == nil || len(m.Graph.Operators) == 0 {
		return "what the graph takes besides its weights is not computed"
	}
	text := fmt.Sprintf("values that its operators hand to each other take %v at once; what kernels and the runtime take is not "+
		"computed", slices.Max(m.Graph.Live()))
	if unknown, all := m.Graph.Unknown(); unknown > 0 {
		text += fmt.Sprintf(", nor what those take whose sizes the file does not say: %d of %d", unknown, all)
	}
	return text
}

// some refuses a model without weights: nothing would be said of it.
func (m *Model) some(name string) (*Model, error) {
	if len(m.Tensors) == 0 {
		return nil, &Error{File: name, Offset: -1, Err: errors.New("it holds no weights")}
	}
	return m, nil
}

func readConfigAlone(files fs.FS, name string) (*Model, error) {
	c, err := configOf(files, name)
	if err != nil {
		return nil, err
	}
	m, err := c.model()
	return m, inFile(name, err)
}

// model is what follows from a configuration alone.
func (c *config) model() (*Model, error) {
	tensors, err := c.weights()
	if err != nil {
		return nil, &Error{Offset: -1, Err: err}
	}
	return &Model{Format: FormatConfig, Shape: c.shape, Tensors: tensors}, nil
}

// Config is the text of the configuration that a file system has of a model: the file of that name, where it is one,
// else the one beside it. Of it no more is known than that it is JSON and says a kind of model.
func Config(files fs.FS, name string) ([]byte, error) {
	if !strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".index.json") {
		name = path.Join(path.Dir(name), configFile)
	}
	text, err := readAll(files, name, maxConfig)
	if err != nil {
		return nil, err
	}
	all, err := decodeFields(text)
	if err == nil {
		_, err = all.kind()
	}
	return text, inFile(name, err)
}

func configOf(files fs.FS, name string) (*config, error) {
	text, err := readAll(files, name, maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := readConfig(text)
	return c, inFile(name, err)
}

// readConfig reads a config.json of Hugging Face.
func readConfig(text []byte) (*config, error) {
	all, err := decodeFields(text)
	if err != nil {
		return nil, err
	}
	c := &config{fields: all, whole: all}
	s := &c.shape
	whole := all.text("model_type")
	c.parted = all.encoder() != ""
	if inner := all.decoder(); inner != nil {
		s.Kind = cmp.Or(inner.text("model_type"), whole+"_text")
		c.fields = inner.filled(s.Kind)
	} else if s.Kind = whole; s.Kind == "" {
		if s.Kind, err = all.kind(); err != nil {
			return nil, err
		}
	}
	c.family, c.known = families[s.Kind]
	c.tied = c.family.tied || whole == "internvl"
	if _, said := all["tie_word_embeddings"]; said || c.fields["tie_word_embeddings"] != nil {
		c.tied = c.bool("tie_word_embeddings", false) || all.bool("tie_word_embeddings", false)
	}
	s.Type = typeOf(c.text("dtype"), c.text("torch_dtype"), all.text("dtype"), all.text("torch_dtype"))
	s.Quantization = all.object("quantization_config").text("quant_method")
	c.sizes()
	c.experts()
	if err := c.check(); err != nil {
		return nil, err
	}
	s.Caches = c.caches()
	if what := all.encoder(); what != "" {
		s.Unknown = append(s.Unknown, fmt.Sprintf("what the part for %s takes at work is not counted: it follows from "+
			"what is sent", what))
	}
	return c, nil
}

// withConfig reads the headers of weights, and the configuration beside them where there is one.
func withConfig(files fs.FS, parts []string) (*Model, error) {
	m := &Model{Format: FormatSafetensors, Files: parts}
	beside := path.Join(path.Dir(parts[0]), configFile)
	c, err := configOf(files, beside)
	switch {
	case err == nil:
		m.Shape = c.shape
	case errors.Is(err, fs.ErrNotExist):
		m.Shape.Unknown = []string{"there is no config.json beside the weights: what a sequence keeps is not known"}
	default:
		return nil, err
	}
	if m.Tensors, err = readParts(files, parts); err != nil {
		return nil, err
	}
	return m.some(parts[0])
}

// atOnce is how many headers are read at the same time: of a server each takes a while.
const atOnce = 8

// readParts reads the headers of all files.
func readParts(files fs.FS, parts []string) ([]Tensor, error) {
	var keep budget
	all, errs := make([][]Tensor, len(parts)), make([]error, len(parts))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, name := range parts {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			errs[i] = open(files, name, func(r io.ReaderAt, size int64) (err error) {
				all[i], err = readSafetensors(r, size, &keep)
				return err
			})
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return unique(slices.Concat(all...))
}

// unique refuses tensors of one name: which one is loaded would be a guess.
func unique(tensors []Tensor) ([]Tensor, error) {
	seen := make(map[string]bool, len(tensors))
	for i := range tensors {
		name := tensors[i].Name
		if seen[name] {
			return nil, fmt.Errorf("two tensors are called %q", short(name))
		}
		seen[name] = true
	}
	return tensors, nil
}

// part is the end of the name of a GGUF file that is one of several.
var part = regexp.MustCompile(`^(.*-)(\d{5})-of-(\d{5})\.gguf$`)

// sharded is the first of the parts that a name belongs to, the beginning of their names, and how many there are; 0: it
// is whole.
func sharded(name string) (first, begin string, of int) {
	found := part.FindStringSubmatch(name)
	if found == nil {
		return name, "", 0
	}
	_, _ = fmt.Sscanf(found[3], "%d", &of)
	return fmt.Sprintf("%s%05d-of-%s.gguf", found[1], 1, found[3]), found[1], of
}

// readGGUFs reads the header of a GGUF file and those of its other parts. The first has what they share.
func readGGUFs(files fs.FS, name string) (*Model, error) {
	names := []string{name}
	if _, begin, of := sharded(name); of > 0 {
		if of > maxFiles {
			return nil, fmt.Errorf("%s is one of more than %d files", short(name), maxFiles)
		}
		names = nil
		for i := range of {
			names = append(names, fmt.Sprintf("%s%05d-of-%05d.gguf", begin, i+1, of))
		}
	}
	m := &Model{Format: FormatGGUF, Files: names}
	var keep budget
	var head *gguf
	for _, name := range names {
		err := open(files, name, func(r io.ReaderAt, size int64) error {
			file, err := readGGUF(r, size, &keep)
			if err == nil {
				m.Tensors = append(m.Tensors, file.tensors...)
			}
			if head == nil {
				head = file
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	m.Shape = head.shape(m.Tensors)
	if _, err := unique(m.Tensors); err != nil {
		return nil, err
	}
	return m.some(name)
}

// open lets a file be read at any place. Its size is -1 where that is not known.
func open(files fs.FS, name string, read func(io.ReaderAt, int64) error) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at, ok := file.(io.ReaderAt)
	if !ok || info.IsDir() {
		return &Error{File: name, Offset: -1, Err: errors.New("no file that can be read at any place")}
	}
	return inFile(name, read(at, info.Size()))
}

func readAll(files fs.FS, name string, most int64) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, &Error{File: name, Offset: most, Err: fmt.Errorf("larger than the %d bytes that hightide reads of it", most)}
	}
	return text, nil
}

// inFile adds the file's name to an error of its content.
func inFile(name string, err error) error {
	var own *Error
	if errors.As(err, &own) && own.File == "" {
		own.File = name
	}
	return err
}
