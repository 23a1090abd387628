package diagnose

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/pythons"
)

// TestInfo on this very machine: every ability has an answer, and those that need nothing are there.
func TestInfo(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	info := Look(context.Background(), &engine.Engine{DataDir: filepath.Join(t.TempDir(), "not", "there", "yet")}, "")
	can := map[string]Can{}
	for _, a := range info.Abilities {
		if a.Name == "" || a.Text == "" || (a.Can != Yes && a.Can != Partly && a.Can != No) || can[a.Name] != "" {
			t.Errorf("%+v", a)
		}
		can[a.Name] = a.Can
	}
	for _, name := range []string{"processes", "PSS and USS", "recordings"} {
		if can[name] != Yes {
			t.Errorf("%s: %q", name, can[name])
		}
	}
	if _, err := os.Stat(info.Data.Path); err == nil {
		t.Error("info made the data folder")
	}
	if info.Data.Free.Or(0) <= 0 || info.Host.Memory.Or(0) <= 0 {
		t.Errorf("%+v", info)
	}
}

func TestFlightRecorder(t *testing.T) {
	gpu := mem.Host{GPUs: []mem.GPU{{Vendor: "NVIDIA"}}}
	torch := map[string]string{"torch": "2.15.0"}
	for _, test := range []struct {
		python *pythons.Interpreter
		host   mem.Host
		want   Can
	}{
		{nil, gpu, No},
		{&pythons.Interpreter{Frameworks: torch}, gpu, No},
		{&pythons.Interpreter{Frameworks: torch, Build: frameworks.Build{CUDA: "12.8"}}, mem.Host{}, No},
		{&pythons.Interpreter{Frameworks: torch, Build: frameworks.Build{CUDA: "12.8"}}, gpu, Yes},
	} {
		if a := historyAbility(test.python, test.host); a.Can != test.want {
			t.Errorf("%+v: %+v", test.python, a)
		}
	}
}
