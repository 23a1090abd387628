package frameworks

import (
	"strings"
	"testing"
)

// TestList: each framework has a name of its own, and what is said of it can be said.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	unique := func(of, name string) {
		if key := of + " " + name; name != "" && seen[key] {
			t.Errorf("two frameworks have the %s %q", of, name)
		} else {
			seen[key] = true
		}
	}
	for _, f := range All() {
		if f.Name == "" || f.Title == "" {
			t.Errorf("%+v lacks a name or a title", f)
		}
		unique("name", f.Name)
		unique("title", f.Title)
		unique("short title", f.Short)
		unique("name in bench", f.Bench)
		for kind, cache := range f.Freed {
			unique("cache", kind)
			if strings.Count(cache.Advice, "%s") != 1 || len(cache.Code) == 0 {
				t.Errorf("the cache %q of %s: %+v", kind, f.Name, cache)
			}
		}
		if f.Launcher != nil && LauncherOf(f.Launcher.Name) != f.Launcher {
			t.Errorf("%q starts another launcher", f.Launcher.Name)
		}
	}
	if f := Of("unheard"); f.Title != "unheard" || f.Imagined != nil || Rank("unheard") <= Rank("deepspeed") {
		t.Errorf("of a framework that nothing is known of: %+v", f)
	}
}

// TestRetraced: what to change depends on why a function was traced again.
func TestRetraced(t *testing.T) {
	for _, c := range []struct {
		framework string
		why       Retracing
		want      string
	}{
		{"jax", Retracing{Anew: true}, "jax.jit once"},
		{"jax", Retracing{After: "float32[3]"}, "Pad inputs"},
		{"jax", Retracing{After: "float32[3]", Padded: true}, ""},
		{"tensorflow", Retracing{After: "float32(3)", Padded: true}, "Or give tf.function an input_signature"},
		{"jax", Retracing{Eager: true}, "NumPy"},
		{"tensorflow", Retracing{Anew: true}, "tf.function once"},
		{"tensorflow", Retracing{After: "3"}, "tf.constant"},
		{"tensorflow", Retracing{After: "TensorSpec(shape=(3,))"}, "input_signature"},
	} {
		if got := Of(c.framework).Retraced(c.why); !strings.Contains(got, c.want) {
			t.Errorf("%s, %+v: %q", c.framework, c.why, got)
		}
	}
}
