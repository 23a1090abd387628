package imagine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/words"
)

var (
	accumWord  = words.Lazy(`(?i)^-{1,2}(?:[\w.-]*accum[\w-]*|update[_-]freq)$`)
	accumEqual = words.Lazy(`(?i)^((?:-{1,2}|\+{0,2})(?:[\w.-]*accum[\w-]*|update[_-]freq)=)(\d+)$`)
	microWord  = words.Lazy(`(?i)^[+-]{0,2}[\w.-]*micro[\w-]*batch`)
	wholeWord  = words.Lazy(`(?i)^[+-]{0,2}(?:[\w.-]*[._-])?(?:global|total)[_-](?:train[_-])?batch[_-]?(?:size)?(?:=|$)`)
)

// Parted is a command whose batch is cut into parts by its own words: `--batch-size 32 --accumulation-steps 1` becomes
// `--batch-size 16 --accumulation-steps 2`. Where it names the whole batch beside that of one pass, as Megatron does, the
// program counts the passes itself. why: it cannot be; a sentence without a full stop.
func Parted(command []string, parts int) (changed []string, why string) {
	batch, named := findBatch(command)
	if at := slices.IndexFunc(command, microWord.MatchString); at > 0 {
		if micro, is := findBatch(slices.Concat([]string{""}, command[at:])); is {
			batch, named = micro, true
			batch.word += at - 1
		}
	}
	count, counted := findCount(command)
	switch whole := slices.ContainsFunc(command, wholeWord.MatchString); {
	case !named:
		return nil, "the command names no size of a batch"
	case !counted && !whole:
		return nil, "the command names no count of batches that are accumulated"
	case batch.size%parts != 0:
		return nil, fmt.Sprintf("the command's batch of %d is not cut into %d parts", batch.size, parts)
	}
	changed = batch.with(command, batch.size/parts)
	if counted {
		changed = count.with(changed, count.size*parts)
	}
	return changed, ""
}

// findCount finds how many batches a command accumulates.
func findCount(command []string) (batchFlag, bool) {
	for i := 1; i < len(command); i++ {
		value, head, at := "", "", i
		if m := accumEqual.FindStringSubmatch(command[i]); m != nil {
			head, value = m[1], m[2]
		} else if accumWord.MatchString(command[i]) && i+1 < len(command) {
			value, at = command[i+1], i+1
		}
		if size, err := strconv.Atoi(value); err == nil && size > 0 {
			return batchFlag{at, head, size}, true
		}
	}
	return batchFlag{}, false
}

// Accumulated is a command as a plan changes it. One that was changed by that plan already is refused, as is one that
// does not say what the plan changes.
func Accumulated(plan *levers.Plan, command []string) ([]string, error) {
	settings, on := plan.Levers[levers.Words]
	if !on {
		return command, nil
	}
	changed, why := Parted(command, settings.Parts)
	if settings.Command != "" && settings.Command == mem.CommandLine(mem.MaskArgs(command)) {
		why = "the command is the one that the plan makes: give the one before it"
	}
	if why != "" {
		return nil, fail.Input("the plan was made for: "+strings.TrimSpace(plan.Command), "%s cannot be applied: %s: %s",
			plan.Name(), levers.Words, why)
	}
	return changed, nil
}
