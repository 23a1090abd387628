package trend

import (
	"net/url"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestComment: what a pull request is told, of a commit that changed the peak, of one that did not, of the first, and
// where the noise is not known.
func TestComment(t *testing.T) {
	run := func(id, commit string, start, mib int64) store.Run {
		return store.Run{ID: id, GitCommit: commit, Start: start, Ended: mem.Ending{Kind: mem.EndDone},
			Figure: mem.Figure{What: "PSS", Label: mem.Measured, Bytes: mib << 20}}
	}
	runs := []store.Run{run("a1", "aaaaaaaaaaaa", 1, 100), run("a2", "aaaaaaaaaaaa", 2, 101), run("b1", "bbbbbbbbbbbb", 3, 100),
		run("b2", "bbbbbbbbbbbb", 4, 101), run("c1", "cccc`|cccc", 5, 200), run("c2", "cccc`|cccc", 6, 201)}
	all := Of(runs)
	lines := func(mib int64) []Line {
		return []Line{{Name: "train.py:4", Function: "load", Bytes: mib << 20}, {Name: "train.py:9", Function: "step", Bytes: 5 << 20}}
	}
	for commit, want := range map[string]string{
		"": "**Memory: +100 MiB** with `cccc??cccc`, to 200 MiB (peak PSS, measured, of 2 runs). It was 100 MiB with " +
			"`bbbbbbbbbb` (2 runs). That is more than the noise of ±",
		"BBBB": "**Memory: no change above the noise** with `bbbbbbbbbb`: 100 MiB (peak PSS, measured, of 2 runs).",
		"aaaa": "**Memory: 100 MiB** with `aaaaaaaaaa` (peak PSS, measured, of 2 runs). It is the first commit",
	} {
		c := Comment{Trend: &all, Commit: all.Find(commit), Of: url.Values{"tag": {"project=ranker"}}, Spark: "▄▄█",
			Server: "https://runs.example.org", Before: lines(10), After: lines(110)}
		text := c.Markdown()
		if !strings.HasPrefix(text, want) || !strings.Contains(text, "`▄▄█` 3 commits") ||
			!strings.Contains(text, "](https://runs.example.org/trend?tag=project%3Dranker)") {
			t.Errorf("%s: %s", commit, text)
		}
		moved := "| `train.py:4` | `load` | 10.0 MiB | 110 MiB |"
		if strings.Contains(text, moved) != (commit == "") || strings.Contains(text, "train.py:9") {
			t.Errorf("%s, lines: %s", commit, text)
		}
		if commit == "" && !strings.Contains(text, "/diff?a=b2&b=c1)") {
			t.Error(text)
		}
	}
	once := Of([]store.Run{runs[0], runs[2]})
	c := Comment{Trend: &once, Commit: once.Find("")}
	if text := c.Markdown(); !strings.Contains(text, "which may be noise** with") ||
		!strings.Contains(text, "no commit without changed files was run twice") || !strings.Contains(text, "`hightide diff a1 b1`") {
		t.Error(text)
	}
	if once.Find("dddd") != nil {
		t.Error("a commit without runs is found")
	}
}
