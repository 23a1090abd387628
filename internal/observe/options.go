package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hightide/internal/launch"
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
