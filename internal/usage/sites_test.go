package usage

import (
	"testing"

	"hightide/internal/mem"
)

// TestPassedOn: what the agent hands on to PyTorch belongs to who asked for it.
func TestPassedOn(t *testing.T) {
	redispatch := mem.Location{File: "/env/lib/python3.11/site-packages/torch/_ops.py", Line: 926, Function: "redispatch"}
	agent := mem.Location{File: "/x/hightide_agent/imagine/sizes.py", Line: 9, Function: "kernel"}
	library := mem.Location{File: "/env/lib/python3.11/site-packages/torch/autograd/graph.py", Line: 3, Function: "run"}
	var stacks mem.StackTable
	for id, stack := range [][]mem.Location{1: {redispatch, agent}, 2: {redispatch, agent, library}} {
		if err := stacks.Define(uint32(id), stack); err != nil {
			t.Fatal(err)
		}
	}
	p := NewNames(&stacks)
	if got := p.Of(1).File; got != mem.UnknownPlace {
		t.Errorf("nobody's stack is that of %s", got)
	}
	if got := p.Of(2).Location; got != library {
		t.Errorf("got %v, want %v", got, library)
	}
}

// TestCompiledCodeIsNotTheUsersOwn: what torch.compile generated is told by its name, wherever its cache is.
func TestCompiledCodeIsNotTheUsersOwn(t *testing.T) {
	p := NewNames(new(mem.StackTable))
	for file, want := range map[string]FileKind{
		"/tmp/torchinductor_me/3h/c3hzbj64elk4unxirtoynpsva2izo7wk3bnj6jslf3uld5vv7pxb.py": LibraryFile,
		"/scratch/xf/cxf3qk3laoswe4vv6uwp63em53frk5z7woin3qhp72adkvx6r4w2.py":              LibraryFile,
		"/tmp/__autograph_generated_fileueh_rsdk.py":                                       LibraryFile,
		"/home/me/cxf3qk3laoswe4vv6uwp63em53.py":                                           UserFile,
	} {
		if got := p.Kind(file); got != want {
			t.Errorf("%s is of kind %d, want %d", file, got, want)
		}
	}
}

// TestPathsOfWindows: libraries lie in other folders there, and names end after another mark.
func TestPathsOfWindows(t *testing.T) {
	stacks := new(mem.StackTable)
	at := func(file string, line int) uint32 {
		return stacks.Location(mem.Location{File: file, Line: line, Function: "f"})
	}
	library := at(`C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\site-packages\torch\nn\modules\linear.py`, 125)
	standard := at(`D:\miniconda3\envs\ai\Lib\contextlib.py`, 81)
	user := at(`D:\work\train.py`, 61)
	shared := at(`\\server\home\Lib\train.py`, 7)
	names := NewNames(stacks)
	for _, test := range []struct {
		stack []uint32
		name  string
		user  bool
	}{
		{[]uint32{library, standard, user}, "train.py:61", true},
		{[]uint32{library, standard}, "torch/nn/modules/linear.py:125", false},
		{[]uint32{standard}, "contextlib.py:81", false},
		{[]uint32{library, shared}, "train.py:7", true},
	} {
		if s := names.Of(stacks.Add(test.stack)); s.Name != test.name || s.User != test.user {
			t.Errorf("%q, of the user %v; want %q, %v", s.Name, s.User, test.name, test.user)
		}
	}
	if l := stacks.Locations[stacks.Location(mem.Location{File: `odd\name.py`})]; l.File != `odd\name.py` {
		t.Errorf("a file of Linux became %q", l.File)
	}
}

// TestProgramsWithoutAFile: what python -c runs is the user's, all of it; elsewhere code without a file was generated.
func TestProgramsWithoutAFile(t *testing.T) {
	stacks := new(mem.StackTable)
	at := func(file string, line int, function string) uint32 {
		return stacks.Location(mem.Location{File: file, Line: line, Function: function})
	}
	numpy, inner, module := at("/env/lib/python3.11/site-packages/numpy/core.py", 9, "full"), at("<string>", 5, "main"),
		at("<string>", 7, "<module>")
	generated, script := at("<string>", 3, "__init__"), at("/home/me/train.py", 61, "<module>")
	spawn := at("/usr/lib/python3.11/multiprocessing/spawn.py", 122, "spawn_main")
	names := NewNames(stacks)
	for _, test := range []struct {
		stack []uint32
		name  string
	}{
		{[]uint32{numpy, script, spawn, module}, "train.py:61"},
		{[]uint32{numpy, inner, module}, "<string>:5"},
		{[]uint32{module}, "<string>:7"},
		{[]uint32{numpy, generated, script}, "train.py:61"},
	} {
		if s := names.Of(stacks.Add(test.stack)); s.Name != test.name || !s.User {
			t.Errorf("%q, of the user %v; want %q", s.Name, s.User, test.name)
		}
	}
	if s := names.Of(stacks.Add([]uint32{numpy, spawn, module})); s.Name != "numpy/core.py:9" || s.User {
		t.Errorf("%q, of the user %v, of a process that multiprocessing started", s.Name, s.User)
	}
}

// TestLibraryFirst: of a program that starts a server, the lines of the engine are named.
func TestLibraryFirst(t *testing.T) {
	in := func(file, function string, line int) mem.Location {
		return mem.Location{File: "/env/lib/python3.11/site-packages/" + file, Line: line, Function: function}
	}
	stack := []mem.Location{in("torch/_tensor.py", "zeros", 9), in("vllm/worker.py", "allocate", 7),
		in("vllm/engine.py", "start", 5), {File: "/home/me/serve.py", Line: 3, Function: "<module>"}}
	names := NewNames(new(mem.StackTable))
	if s := names.Search(stack); s.Name != "serve.py:3" {
		t.Errorf("got %q", s.Name)
	}
	names.LibraryFirst = true
	if s := names.Search(stack); s.Name != "vllm/worker.py:7" || s.User {
		t.Errorf("got %q", s.Name)
	}
	if s := names.Search(stack[3:]); s.Name != "serve.py:3" {
		t.Errorf("got %q where no library is", s.Name)
	}
}

// TestInstalledPrograms: of a program that came as a package its own lines are named, and of libraries that run
// others' models these.
func TestInstalledPrograms(t *testing.T) {
	stacks := new(mem.StackTable)
	in := func(file, function string, line int) mem.Location {
		return mem.Location{File: "/env/lib/python3.11/site-packages/" + file, Line: line, Function: function}
	}
	script := mem.Location{File: "/env/bin/litgpt", Line: 10, Function: "<module>"}
	linear, call := in("torch/nn/modules/linear.py", "forward", 125), in("torch/nn/modules/module.py", "_call_impl", 1750)
	attention, fit := in("litgpt/model.py", "forward", 350), in("litgpt/finetune/full.py", "fit", 220)
	fabric, quantised := in("lightning/fabric/wrappers.py", "forward", 140),
		in("bitsandbytes/nn/modules.py", "forward", 500)
	llama, trainer, trl := in("transformers/models/llama/modeling_llama.py", "forward", 240),
		in("transformers/trainer.py", "step", 3700), in("trl/scripts/sft.py", "main", 60)
	own := mem.Location{File: "/home/me/bin/train", Line: 61, Function: "<module>"}
	for name, test := range map[string]struct {
		stack []mem.Location
		want  string
		user  bool
	}{
		"a console script": {[]mem.Location{linear, call, attention, call, fabric, fit, script},
			"litgpt/model.py:350", false},
		"quantised weights": {[]mem.Location{quantised, call, attention, call, fabric, fit, script},
			"litgpt/model.py:350", false},
		"outside of the model": {[]mem.Location{in("torch/optim/adamw.py", "step", 200), fit, script},
			"litgpt/finetune/full.py:220", false},
		"another's model": {[]mem.Location{linear, call, llama, call, trainer, trl, script},
			"transformers/models/llama/modeling_llama.py:240", false},
		"of two libraries":       {[]mem.Location{trainer, trl, script}, "trl/scripts/sft.py:60", false},
		"frameworks alone":       {[]mem.Location{linear, call}, "torch/nn/modules/linear.py:125", false},
		"nothing but a script":   {[]mem.Location{linear, call, script}, "litgpt:10", true},
		"a script of the user's": {[]mem.Location{linear, call, llama, own}, "train:61", true},
	} {
		var numbers []uint32
		for _, l := range test.stack {
			numbers = append(numbers, stacks.Location(l))
		}
		if s := NewNames(stacks).Of(stacks.Add(numbers)); s.Name != test.want || s.User != test.user {
			t.Errorf("%s: %q, of the user %v; want %q, %v", name, s.Name, s.User, test.want, test.user)
		}
	}
}

// TestOwnAgent: what the agent allocates for itself is not the program's, and what the program allocates beneath a
// wrapper of the agent is.
func TestOwnAgent(t *testing.T) {
	at := func(file, function string) mem.Location { return mem.Location{File: file, Line: 7, Function: function} }
	user := at("/home/me/train.py", "train")
	torch := at("/env/lib/python3.11/site-packages/torch/optim/optimizer.py", "wrapper")
	standard := at("/usr/lib/python3.11/linecache.py", "updatecache")
	frozen := at("<frozen importlib._bootstrap_external>", "_compile_bytecode")
	scan := at("/c/agent/hightide_agent/reach.py", "copied")
	thread := at("/c/agent/hightide_agent/watcher.py", "_run")
	step := at("/c/agent/hightide_agent/pytorch/optimizers.py", "after")
	imports := at("/c/agent/hightide_agent/imports.py", "exec_module")
	for _, test := range []struct {
		name  string
		stack []mem.Location
		want  string
	}{
		{"its own thread", []mem.Location{scan, thread}, OwnAgent},
		{"by Python's library", []mem.Location{standard, scan, thread}, OwnAgent},
		{"in a hook of the program's thread", []mem.Location{scan, step, torch, user}, OwnAgent},
		{"the program, beneath a wrapper", []mem.Location{torch, step, user}, "train.py:7"},
		{"an import that it watches", []mem.Location{frozen, imports, user}, "train.py:7"},
		{"the program, called by its thread", []mem.Location{user, scan, thread}, "train.py:7"},
	} {
		if got := NewNames(new(mem.StackTable)).Search(test.stack); got.Name != test.want || got.User != (test.want != OwnAgent) {
			t.Errorf("%s: %s, user %t; want %s", test.name, got.Name, got.User, test.want)
		}
	}
}
