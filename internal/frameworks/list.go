package frameworks

import (
	"cmp"
	"slices"
	"strings"

	"hightide/internal/fail"
)

// list is in the order in which people see them.
var list = []*Framework{&torch, &tensorflow, &keras, &jax, &lightning, &pytorchLightning, &transformers, &accelerate,
	&deepspeed, &cupy, &onnxruntime, &litert, &openvino, &executorch, &llamacpp}

// Probe is Python that adds to `out` what the frameworks were built for, under the names of Build's answer.
const Probe = torchProbe + jaxProbe + tensorflowProbe + cupyProbe

// All are the frameworks that something is known of.
func All() []*Framework { return list }

// Of is the framework of a name. Of one that nothing is known of it has the name alone.
func Of(name string) *Framework {
	if f := findFramework(func(f *Framework) bool { return f.Name == name }); f != nil {
		return f
	}
	return &Framework{Name: name, Title: name}
}

// OfBench is the framework that bench calls so, else Of that name.
func OfBench(name string) *Framework {
	if f := findFramework(func(f *Framework) bool { return f.Bench == name && name != "" }); f != nil {
		return f
	}
	return Of(name)
}

// Benched are the names of those that bench has models for; the first is its default.
func Benched() (names []string) {
	for _, f := range list {
		if f.Bench != "" {
			names = append(names, f.Bench)
		}
	}
	return names
}

// Runtimes are the names by which bench calls what runs a file of a model.
func Runtimes() (names []string) {
	for _, f := range list {
		if f.Runtime != "" {
			names = append(names, f.Runtime)
		}
	}
	return names
}

// OfRuntime is the framework that bench calls so as a runtime, else Of that name.
func OfRuntime(name string) *Framework {
	if f := findFramework(func(f *Framework) bool { return f.Runtime == name && name != "" }); f != nil {
		return f
	}
	return Of(name)
}

// Rank is where a framework stands among those that something is known of; behind them all if nothing is.
func Rank(name string) int {
	if i := slices.IndexFunc(list, func(f *Framework) bool { return f.Name == name }); i >= 0 {
		return i
	}
	return len(list)
}

// Carriers are the packages of all frameworks that run the modules and loops of others.
func Carriers() []string { return joined(func(f *Framework) []string { return f.Carriers }) }

// Unwinders are what the names of native functions begin with that every stack has.
func Unwinders() []string { return joined(func(f *Framework) []string { return f.Unwinder }) }

func joined(of func(*Framework) []string) (all []string) {
	for _, f := range list {
		all = append(all, of(f)...)
	}
	return all
}

// CacheOf is the cache of graphs or programs that the agent calls so; nil: no framework's.
func CacheOf(kind string) *Cache {
	for _, f := range list {
		if c, ok := f.Freed[kind]; ok {
			return &c
		}
	}
	return nil
}

// Imaginable says why an interpreter's programs cannot use an imaginary GPU, or what of them cannot, by the versions of
// the frameworks that it has.
func Imaginable(versions map[string]string, b Build, path string) (note string, err error) {
	has := func(f *Framework) bool { return versions[f.Name] != "" }
	var refused error
	for _, f := range list {
		if !has(f) || f.Imagined == nil {
			continue
		}
		if note, err = f.Imagined(versions[f.Name], b, path); err == nil {
			return note, nil
		}
		refused = cmp.Or(refused, err)
	}
	if refused != nil {
		return "", refused
	}
	if f := findFramework(func(f *Framework) bool { return has(f) && f.Short != "" }); f != nil {
		return "", fail.Environment("the host's memory: hightide run -- ...",
			"imaginary GPUs serve %s; %s has %s %s, which cannot be imagined", Served(), path, f.Title, versions[f.Name])
	}
	return "", fail.Environment("name the interpreter of the environment you train in, or install torch, tensorflow, jax or cupy into it",
		"%s has none of %s", path, Served())
}

// Served names the frameworks whose programs can be imagined.
func Served() string {
	var titles []string
	for _, f := range list {
		if f.Imagined != nil {
			titles = append(titles, f.Title)
		}
	}
	last := len(titles) - 1
	return strings.Join(titles[:last], ", ") + " and " + titles[last]
}

func findFramework(is func(*Framework) bool) *Framework {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// LauncherOf is the one that these words start; nil: they start none.
func LauncherOf(name string) *Launcher {
	if f := findFramework(func(f *Framework) bool { return f.Launcher != nil && f.Launcher.Name == name }); f != nil {
		return f.Launcher
	}
	return nil
}

// LauncherModule names the launcher that python -m starts by a module; "": none.
func LauncherModule(module string) string {
	for _, f := range list {
		if f.Launcher != nil && slices.Contains(f.Launcher.Modules, module) {
			return f.Launcher.Name
		}
	}
	return ""
}
