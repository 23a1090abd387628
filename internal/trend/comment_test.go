package trend

import (
	"errors"
	"strings"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

func runOf(id, commit string, start, mib int64) store.Run {
	return store.Run{ID: id, GitCommit: commit, Start: start, Ended: mem.Ending{Kind: mem.EndDone},
		Figure: mem.Figure{What: "PSS", Label: mem.Measured, Bytes: mib << 20}}
}

// told is what a comment says, or the error. Runs of commit c hold 110 MiB in train.py:4, others 10.
func told(t *Trend, runs []store.Run, now, base string) (string, error) {
	c, err := t.Comment(now, base, Sources{Server: "https://runs.example.org",
		Of: store.Filter{Tags: map[string]string{"project": "ranker"}},
		Run: func(ref string) (store.Run, error) {
			for _, r := range runs {
				if r.ID == ref {
					return r, nil
				}
			}
			return store.Run{}, &store.Error{Kind: store.ErrNotFound, Text: "there is no such run"}
		},
		Report: func(run string) (*report.Report, error) {
			held := int64(10)
			if strings.HasPrefix(run, "c") {
				held = 110
			}
			r := &report.Report{}
			r.Lines = &report.HoldingLines{Lines: []report.Holding{{Name: "train.py:4", Function: "load", Bytes: held << 20},
				{Name: "train.py:9", Function: "step", Bytes: 5 << 20}}}
			return r, nil
		}})
	if err != nil {
		return "", err
	}
	return c.Text, nil
}

// TestComment: what a pull request is told, of a commit that changed the peak, of one that did not, of the first, and
// where the noise is not known.
func TestComment(t *testing.T) {
	runs := []store.Run{runOf("a1", "aaaaaaaaaaaa", 1, 100), runOf("a2", "aaaaaaaaaaaa", 2, 101),
		runOf("b1", "bbbbbbbbbbbb", 3, 100), runOf("b2", "bbbbbbbbbbbb", 4, 101), runOf("c1", "cccc`|cccc", 5, 200),
		runOf("c2", "cccc`|cccc", 6, 201)}
	all := Of(runs, Peak)
	for commit, want := range map[string]string{
		"": "**Memory: +100 MiB** with `cccc??cccc`, to 200 MiB (peak PSS, measured, of 2 runs). It was 100 MiB with " +
			"`bbbbbbbbbb` (2 runs). That is more than the noise of ±",
		"BBBB": "**Memory: no change above the noise** with `bbbbbbbbbb`: 100 MiB (peak PSS, measured, of 2 runs).",
		"aaaa": "**Memory: 100 MiB** with `aaaaaaaaaa` (peak PSS, measured, of 2 runs). It is the first commit",
	} {
		text, err := told(&all, runs, commit, "")
		if err != nil || !strings.HasPrefix(text, want) || !strings.Contains(text, "`▅▅█` 3 commits") ||
			!strings.Contains(text, "](https://runs.example.org/trend?tag=project%3Dranker)") {
			t.Errorf("%s: %s %v", commit, text, err)
		}
		moved := "| `train.py:4` | `load` | 10.0 MiB | 110 MiB |"
		if strings.Contains(text, moved) != (commit == "") || strings.Contains(text, "train.py:9") {
			t.Errorf("%s, lines: %s", commit, text)
		}
		if commit == "" && !strings.Contains(text, "/diff?a=b2&b=c1)") {
			t.Error(text)
		}
	}
	once := Of([]store.Run{runs[0], runs[2]}, Peak)
	c, err := once.Comment("", "", Sources{Report: func(string) (*report.Report, error) { return &report.Report{}, nil }})
	if err != nil || !strings.Contains(c.Text, "which may be noise** with") ||
		!strings.Contains(c.Text, "no commit without changed files was run twice") || !strings.Contains(c.Text, "`hightide diff a1 b1`") {
		t.Error(c, err)
	}
}

// TestCode: a text of a stranger's stays the text that it is, and turns no others around.
func TestCode(t *testing.T) {
	if got := code("a`|b\x1b[1m\u202ec\x00\nd"); got != "`a??b?[1m?c??d`" {
		t.Errorf("%q", got)
	}
}

// TestCommentAgainstABase: a commit against another than the one before, and two runs by name, each with the noise of the
// trend. The commit before, named, has the very figures that it has unnamed.
func TestCommentAgainstABase(t *testing.T) {
	runs := []store.Run{runOf("a1", "aaaaaaaaaaaa", 1, 100), runOf("a2", "aaaaaaaaaaaa", 2, 101),
		runOf("b1", "bbbbbbbbbbbb", 3, 150), runOf("b2", "bbbbbbbbbbbb", 4, 151), runOf("c1", "cccccccccccc", 5, 200),
		runOf("c2", "cccccccccccc", 6, 201), runOf("bare", "", 7, 300), runOf("failed", "dddddddddddd", 8, 1),
		runOf("imagined", "eeeeeeeeeeee", 9, 900), runOf("dirty", "bbbbbbbbbbbb", 10, 400)}
	runs[7].Ended.Kind, runs[8].Figure.Label, runs[9].GitDirty = mem.EndFailed, mem.Imagined, true
	all := Of(runs, Peak)
	for _, test := range []struct{ now, base, want string }{
		{"cccc", "aaaa", "**Memory: +100 MiB** with `cccccccccc`, to 200 MiB (peak PSS, measured, of 2 runs). " +
			"The base has 100 MiB with `aaaaaaaaaa` (2 runs). That is more than the noise of ±"},
		{"cccc", "bbbb", "**Memory: +50.0 MiB** with `cccccccccc`, to 200 MiB"}, // not the one with changed files
		{"aaaa", "cccc", "**Memory: -100 MiB** with `aaaaaaaaaa`, to 100 MiB"},
		{"c2", "a1", "**Memory: +101 MiB** with run `c2` of `cccccccccc`, to 201 MiB (peak PSS, measured, of 1 run). " +
			"The base has 100 MiB with run `a1` of `aaaaaaaaaa` (1 run). That is more than the noise of ±"},
		{"c2", "c1", "**Memory: no change above the noise** with run `c2` of `cccccccccc`: 201 MiB"},
		{"bare", "aaaa", "**Memory: +200 MiB** with run `bare`, to 300 MiB"},
	} {
		text, err := told(&all, runs, test.now, test.base)
		if err != nil || !strings.HasPrefix(text, test.want) {
			t.Errorf("%s against %s: %s %v", test.now, test.base, text, err)
		}
		if test.now == "c2" && test.base == "a1" && (!strings.Contains(text, "/diff?a=a1&b=c2)") ||
			!strings.Contains(text, "| `train.py:4` | `load` | 10.0 MiB | 110 MiB |")) {
			t.Error(text)
		}
	}
	plain, _ := all.Comment("cccc", "", Sources{Report: func(string) (*report.Report, error) { return &report.Report{}, nil }})
	named, _ := all.Comment("cccc", "bbbb", Sources{Report: func(string) (*report.Report, error) { return &report.Report{}, nil }})
	if plain.Now.Change != named.Now.Change || plain.Now.Noise != named.Now.Noise || plain.Now.Before != named.Now.Before {
		t.Errorf("unnamed %+v\nnamed %+v", plain.Now, named.Now)
	}
	for _, test := range []struct {
		now, base, want string
		code            int
	}{
		{"dddd", "", "no run of commit dddd can be compared, and no run is called so", fail.ExitBadInput},
		{"cccc", "n\x1bone", "no run of commit n", fail.ExitBadInput},
		{"cccc", "failed", "run failed failed, or did not end by itself", fail.ExitBadInput},
		{"cccc", "imagined", "different kinds of figure", fail.ExitBadInput},
		{"cccc", "CCCC", "held against itself", fail.ExitUsage},
		{"c1", "", "what run c1 is held against is not said", fail.ExitUsage},
	} {
		_, err := told(&all, runs, test.now, test.base)
		var known *fail.Error
		if !errors.As(err, &known) || known.Code != test.code || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s against %q: %v", test.now, test.base, err)
		}
	}
}
