package frameworks

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// JAX is how recordings and interpreters call it.
const JAX = "jax"

// FactUnread is the fact of a process in which a call failed, for lack of memory or otherwise, and something that came of
// it was there at the end. JAX raises an error only where that is read, and the program may have caught it.
const FactUnread = "jax.unread_error"

// RematByHand says how layers are computed again by code.
const RematByHand = "nn.remat, nnx.remat, eqx.filter_checkpoint or hk.remat goes around each layer, and " +
	"jax.checkpoint around the body of a scan"

// LinesOfThreads says how to have lines where JAX allocates on threads of its own, which run no Python.
const LinesOfThreads = `with jax.config.update("jax_cpu_enable_async_dispatch", False) before the first computation ` +
	"they are blamed on lines"

var jax = Framework{
	Name: JAX, Title: "JAX", Short: "JAX", Bench: "jax",
	Code:     []string{"/jax/", "libjax", "xla_extension", "_jax.", "_xla.so"},
	Retraced: jaxRetraced,
	Freed: map[string]Cache{"compiled programs": {
		Code: []string{"/jax/", "libjax", "_jax.so", "_xla.so", "libstdc++"}, // compiled on threads without Python
		Advice: "Call %s with few shapes and dtypes, as by padding, and without static arguments that differ: " +
			"each is compiled again. jax.clear_caches() drops them.",
	}},
	Preallocates: "It takes three quarters of a device as it starts, whatever it needs, unless " +
		"XLA_PYTHON_CLIENT_PREALLOCATE=false.",
	Imagined: jaxImagined,
	Changes:  jaxChanges,
	Vary: []Change{kernelsOfXLA, {Kind: "growth", What: "memory taken as it is needed",
		Env: map[string]string{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}}},
	AsNeeded: map[string]string{"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}

// jaxChanges are what asks for no change of the model: more of the device, arguments that are donated as their finding
// says, and activations that are computed again in place of being kept by scans.
func jaxChanges(s Situation) (changes []Change) {
	if fraction, ok := moreOfDevice(s); ok {
		const variable = "XLA_PYTHON_CLIENT_MEM_FRACTION"
		changes = append(changes, Change{Kind: "fraction", What: variable + "=" + fraction,
			Env: map[string]string{variable: fraction}})
	}
	if names, env := missedDonations(s.Run); names != "" {
		changes = append(changes, Change{Kind: "donation", What: names + " donated", Switch: "donation",
			Agent: map[string]string{"HIGHTIDE_IMAGINE_DONATE": env}})
	}
	return append(changes, Change{Kind: "checkpointing", What: "jax.checkpoint", Switch: "checkpointing", Says: true})
}

// moreOfDevice is the share of a device that JAX can take at most where it takes less: what it does not take is for the
// context and the libraries.
func moreOfDevice(s Situation) (fraction string, ok bool) {
	limit, limited := s.Limit.Get()
	if !limited || s.Total <= 0 {
		return "", false
	}
	hundredths := min(95, int64(s.Total-s.Beside)*100/int64(s.Total))
	return fmt.Sprintf("%.2f", float64(hundredths)/100), hundredths*int64(s.Total) > (limit+int64(s.Total)/100)*100
}

// missedDonations are the arguments that could be donated, for people; and for the agent, which applies that
// (docs/formats/imagined.md).
func missedDonations(run *mem.Run) (names, env string) {
	type donation struct {
		Function  string   `json:"function"`
		File      string   `json:"file"`
		Line      int      `json:"line"`
		Arguments []string `json:"arguments"`
	}
	var all []donation
	var told []string
	for _, e := range run.Events {
		if e.Kind != "donation" || e.Where == nil || e.Facts["argument"] == "" {
			continue
		}
		all = append(all, donation{e.Where.Function, e.Where.File, e.Where.Line, strings.Split(e.Facts["argument"], ", ")})
		told = append(told, fmt.Sprintf("%s of %s", e.Facts["argument"], e.Where.Function))
	}
	if len(all) == 0 {
		return "", ""
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", ""
	}
	return strings.Join(told, "; "), string(text)
}

// Donated are functions with the arguments that could be donated, each once: step(params, state) at train.py:18.
func Donated(run *mem.Run) (all []string) {
	for _, e := range run.Events {
		if e.Kind != "donation" || e.Where == nil || e.Facts["argument"] == "" {
			continue
		}
		text := fmt.Sprintf("%s(%s) at %s:%d", e.Where.Function, e.Facts["argument"], path.Base(e.Where.File), e.Where.Line)
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// jaxProbe tells which CUDA JAX's plugin was built for.
const jaxProbe = `
    for major in ("12", "13"):
        if find_spec("jax_cuda%s_plugin" % major):
            out["jax_cuda"] = major
`

func jaxImagined(version string, b Build, path string) (note string, err error) {
	if b.JAXCUDA == "" {
		return "", fail.Environment(`pip install "jax[cuda12]"; it needs no GPU`,
			"jax %s of %s has no plugin for CUDA", version, path)
	}
	return "", nil
}

func jaxRetraced(r Retracing) string {
	switch {
	case r.Eager:
		return padEager
	case r.Anew:
		return "Apply jax.jit once, outside of the loop, to a function that is defined once."
	case r.Padded:
		return ""
	}
	return "Pad inputs to a few shapes. Declare static only those arguments that seldom change."
}

// Donate says how to have a compiled function write its outputs over arguments; their names, as Python has them, are ""
// where they are not known.
func Donate(function, arguments string) string {
	if arguments == "" {
		return "Name it in donate_argnums of jax.jit, and compare what the function needs before and after."
	}
	return fmt.Sprintf("jax.jit(%s, donate_argnames=%s), then compare what %s needs before and after: XLA may want "+
		"the place for temporaries.", function, arguments, function)
}
