package imagine

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// played is the command that plays some ranks of a larger world, each alone in a process with GPUs and
// device state of its own. Ranks of several nodes would share one device otherwise. A shell starts them with what
// torchrun would have told each, as many at a time as the host's memory allows: one may wait for what
// another one tells it.
func (s *Session) played(t *trial, channels string) (command []string, states []*deviceState) {
	perNode := max(t.count, 1)
	var script strings.Builder
	script.WriteString("status=0\n")
	atOnce := max(2, min(len(s.play), 8, int(freeMemory()/trialMemory)))
	for i, rank := range s.play {
		b := &deviceState{path: filepath.Join(channels, fmt.Sprintf("device-table-rank%d", rank)),
			rank: mem.Some(int64(rank))}
		states = append(states, b)
		fmt.Fprintf(&script, "RANK=%d LOCAL_RANK=%d GROUP_RANK=%d ROLE_RANK=%d HIGHTIDE_IMAGINE_PLAY=%d/%d "+
			"HIGHTIDE_DEVICE_TABLE=%s \"$@\" &\np%d=$!\n",
			rank, rank%perNode, rank/perNode, rank, rank, s.World, quoteShell(b.path), i)
		if i%atOnce == atOnce-1 || i == len(s.play)-1 {
			for j := i - i%atOnce; j <= i; j++ {
				fmt.Fprintf(&script, "wait $p%d || status=$?\n", j)
			}
		}
	}
	script.WriteString("exit $status\n")
	t.env = mergeEnv(t.env, map[string]string{
		"WORLD_SIZE": strconv.Itoa(s.World), "LOCAL_WORLD_SIZE": strconv.Itoa(min(perNode, s.World)),
		"ROLE_WORLD_SIZE": strconv.Itoa(s.World),
		"MASTER_ADDR":     "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "hightide",
		"TORCHELASTIC_RESTART_COUNT": "0",
		"TORCHELASTIC_MAX_RESTARTS":  "0", "OMP_NUM_THREADS": "1",
	})
	return append([]string{"/bin/sh", "-c", script.String(), "hightide-play"}, t.command...), states
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func mergeEnv(sets ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, set := range sets {
		maps.Copy(merged, set)
	}
	return merged
}

// playAll is the largest world of which every rank is played unless --play says otherwise. Stages of a pipeline wait
// for each other, so that none can be left out, and one of them takes the most.
const playAll = 8

// mostPlayed bounds how many ranks of a world are played.
const mostPlayed = 64

// parsePlay reads "0,1,127", also with ranges as "0-15" or "0-120/8" and with "all"; "" means all of a small world,
// and of a larger one the first two, one in the middle and the last. Those are several stages of a pipeline, a root
// of what ranks send each other and one that is none.
func parsePlay(list string, world int) ([]int, error) {
	if list == "" && world <= playAll {
		ranks := make([]int, world)
		for i := range ranks {
			ranks[i] = i
		}
		return ranks, nil
	}
	if list == "" {
		return []int{0, 1, world / 2, world - 1}, nil
	}
	var ranks []int
	seen := map[int]bool{}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		from, to, step, ok := span(word, world)
		if !ok || from < 0 || to >= world {
			return nil, fail.Usage(fmt.Sprintf("ranks run from 0 to %d, as in --play 0,1,8-15", world-1),
				"--play %s: a world of %d has no rank %s", list, world, word)
		}
		for rank := from; rank <= to; rank += step {
			if !seen[rank] {
				seen[rank] = true
				ranks = append(ranks, rank)
			}
		}
	}
	if len(ranks) > mostPlayed {
		return nil, fail.Usage(fmt.Sprintf("%d at most; ranks that do the same take the same: play one of each kind, as "+
			"each stage of a pipeline with --play 0-%d/%d", mostPlayed, world-1, (world+mostPlayed-1)/mostPlayed), "%d ranks to play", len(ranks))
	}
	return ranks, nil
}

// span is the ranks that a word means: "7", "0-15", "0-120/8" (every eighth) or "all".
func span(word string, world int) (from, to, step int, ok bool) {
	if word == "all" {
		return 0, world - 1, 1, true
	}
	if rank, err := strconv.Atoi(word); err == nil {
		return rank, rank, 1, true
	}
	word, every, stepped := strings.Cut(word, "/")
	first, last, ranged := strings.Cut(word, "-")
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	step, err3 := 1, error(nil)
	if stepped {
		step, err3 = strconv.Atoi(every)
	}
	return from, to, step, ranged && err1 == nil && err2 == nil && err3 == nil && from <= to && step > 0
}
