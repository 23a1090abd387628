package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// channelVars are the variables that every helper reads.
func (o *Options) channelVars(channels string) map[string]string {
	vars := map[string]string{
		"HIGHTIDE_CHANNELS":    channels,
		"HIGHTIDE_RUN_ID":      o.ID,
		"HIGHTIDE_OUT":         o.OutDir,
		"HIGHTIDE_INTERVAL_NS": strconv.FormatInt(int64(o.interval()/time.Nanosecond), 10),
	}
	if o.Steps > 0 {
		vars["HIGHTIDE_STEPS"] = strconv.FormatUint(o.Steps, 10)
	}
	if o.SnapshotOn != "" {
		vars["HIGHTIDE_SNAPSHOT_ON"] = o.SnapshotOn
	}
	if o.NoStacks {
		vars["HIGHTIDE_STACKS"] = "0"
	}
	if o.Tracemalloc {
		vars["HIGHTIDE_TRACEMALLOC"] = strconv.Itoa(tracedFrames)
	}
	if data := launch.Lookup(o.Env, "HIGHTIDE_DATA"); data != "" {
		vars["HIGHTIDE_DATA"] = data
	}
	return vars
}

// CheckSnapshotOn says what is wrong with a list of oom, exit, step:N and never.
func CheckSnapshotOn(list string) error {
	if list == "" {
		return nil
	}
	for word := range strings.SplitSeq(list, ",") {
		if word == "never" && list != word {
			return fmt.Errorf("--snapshot-on %s: never stands alone", list)
		}
		step, isStep := strings.CutPrefix(word, "step:")
		if isStep {
			if n, err := strconv.ParseUint(step, 10, 64); err != nil || n == 0 {
				return fmt.Errorf("--snapshot-on step:%s: it takes the number of a step, from 1 on", step)
			}
			continue
		}
		if word != "oom" && word != "exit" && word != "never" {
			return fmt.Errorf("--snapshot-on %s: it takes oom, exit, step:N or never", word)
		}
	}
	return nil
}

// identify says which run this is, on which machine. The state of git comes later: it
// can take long.
func identify(o *Options, vendors []sampler.Vendor) mem.RunInfo {
	cwd, _ := os.Getwd()
	command, env, leader := o.Command, o.Env, 0
	if t := o.Target; t != nil {
		cwd, command, env, leader = t.Cwd, t.Command, t.Env, t.PID
	}
	if o.Shown != nil {
		command = o.Shown
	}
	return mem.RunInfo{
		ID: o.ID, Name: o.Name, Tags: o.Tags, Verb: o.Verb, Label: o.Label, Command: mem.MaskArgs(command), Cwd: cwd,
		Env: mem.AllowedEnv(env), Version: o.Version, Host: sampler.Host("/", leader, vendors), Options: o.Settings,
		StartMono: system.Monotonic(), StartWall: o.Runtime.Time().UnixNano(),
	}
}

// blind notes what cannot be seen of a process from inside, going by its command line: Python that
// was told to leave out the hook.
func (r *Recorder) blind(p *process, command []string) {
	if len(command) < 2 || !strings.HasPrefix(filepath.Base(command[0]), "python") {
		return
	}
	for _, arg := range command[1:] {
		if !strings.HasPrefix(arg, "-") || arg == "-" || strings.HasPrefix(arg, "--") {
			return
		}
		for i, flag := range arg[1:] {
			if strings.ContainsRune("cmWX", flag) {
				return // the rest is its argument, or the program's
			}
			if strings.ContainsRune("ISE", flag) {
				why := "python -" + string(arg[i+1]) +
					": it leaves out start-up hooks, so there are no steps, phases and frameworks"
				if p.facts["unobserved"] != why {
					p.fact("unobserved", why)
					r.emit(mem.Event{Time: r.now(), Process: p.ID, Kind: "unobserved",
						Text: fmt.Sprintf("process %d, %s", p.PID, why)})
				}
				return
			}
		}
	}
}
