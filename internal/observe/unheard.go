package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/words"
)

// pythonImage is what files of interpreters are called, with the version where it is said.
var pythonImage = words.Lazy(`^(?:python|pypy)([0-9]+)?(?:\.([0-9]+))?[a-z]*$`)

// listen looks, once for each program image, whether a process that has said nothing runs Python, and keeps why it may
// be silent; once it is gone nobody can tell.
func (r *Recorder) listen(p *process) {
	if p.hello || p.gone || p.listened || !r.hasAgent() {
		return
	}
	if p.earlier > 0 { // it ran before the recording: nothing was to be heard from it
		p.listened = true
		return
	}
	proc := fmt.Sprintf("/proc/%d", p.PID)
	image, err := os.Readlink(proc + "/exe")
	if err != nil {
		return
	}
	p.listened, p.silent = true, ""
	m := pythonImage.FindStringSubmatch(filepath.Base(image))
	if m == nil {
		return
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	environ, err := os.ReadFile(proc + "/environ")
	observed := err == nil && strings.Contains(string(environ), "HIGHTIDE_CHANNELS="+r.opts.Channels)
	switch {
	case major == 2 || major == 3 && m[2] != "" && minor < 8:
		p.silent = fmt.Sprintf("Python %d.%d is older than 3.8, the first that the agent runs in", major, minor)
	case !observed:
		p.silent = "it was started without the environment of the run"
	case !r.parentSpoke(p): // else it may be a fork that has had nothing to say
		p.silent = "the agent did not start in it"
	}
}

func (r *Recorder) hasAgent() bool {
	return slices.ContainsFunc(r.opts.Helpers, func(h launch.Helper) bool { return h.PythonPath != "" })
}

func (r *Recorder) parentSpoke(p *process) bool {
	return p.Parent > 0 && int(p.Parent) <= len(r.order) && r.order[p.Parent-1].hello
}

// tellSilent says, at its end, that nothing was heard from inside a process of Python: each reason once.
func (r *Recorder) tellSilent(p *process) {
	if p.silent == "" || p.hello || p.facts["unobserved"] != "" {
		return
	}
	p.fact("unobserved", p.silent)
	if r.silent[p.silent] {
		return
	}
	if r.silent == nil {
		r.silent = map[string]bool{}
	}
	r.silent[p.silent] = true
	r.emit(mem.Event{Time: r.now(), Process: p.ID, Kind: "unobserved",
		Text: fmt.Sprintf("process %d, %s: %s, so there are no steps, phases and lines of Python", p.PID,
			mem.CommandLine(p.Command), p.silent)})
}
