package imagined

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// failure says how a program ended that gave no verdict: by a signal, an exception, an exit code.
func failure(run *mem.Run) string {
	end := run.End
	if end == nil {
		return "the recording ends before the program did"
	}
	e, told := run.Uncaught()
	if number, ok := end.Signal.Get(); ok && !(told && run.ServesIn(e.Process)) { // which its parent kills, and itself
		return "a signal ended the program, " + report.SignalText(number)
	}
	code := end.ExitCode.Or(0)
	text := fmt.Sprintf("exit code %d", code)
	if told {
		text = strings.TrimSuffix(e.Facts["class"]+": "+begun(e.Text, 160), ": ")
		if e.Facts["class"] == "KeyboardInterrupt" {
			return "the program was interrupted"
		}
		place := ""
		if e.Where != nil && e.Where.File != "" {
			place = mem.LineName(*e.Where)
			text += " at " + place
		}
		// what cannot be imagined is not a fault of the program
		if told, ours := strings.CutPrefix(e.Text, "hightide imagine: "); ours {
			return strings.TrimPrefix(place+": ", ": ") + begun(told, 400)
		}
		if rank := rankOf(run, e.Process); rank != "" {
			text += " in " + rank
		}
	} else if report.KnownSignal(code - 128) {
		text += ", as shells say of a child that a signal ended, " + report.SignalText(code-128)
	}
	return ofItsOwn + text
}

// unanswered is why a server that started did not answer a request: by the exception of a process of the engine, if one
// ended by it. Of a helper's, as a compiler that was tried, the server did not fail.
func unanswered(run *mem.Run, s *report.Serving) string {
	if e, ok := run.Uncaught(); ok && run.ServesIn(e.Process) {
		return failure(run) + ", while it answered a request"
	}
	return "it started, and did not answer a request: " + report.FirstLine(s.LoadRefused, 300)
}

// RefusedNumber says whether the program ended by an exception of a kind that numbers are refused with. It may be over
// one that no kernel computed: the logarithm of a loss of zero.
func RefusedNumber(run *mem.Run) bool {
	e, ok := run.Uncaught()
	if !ok || strings.HasPrefix(e.Text, "hightide imagine: ") {
		return false
	}
	class := e.Facts["class"]
	return slices.Contains([]string{"ZeroDivisionError", "ValueError", "RuntimeError", "AssertionError",
		"FloatingPointError", "OverflowError", "LinAlgError"}, class[strings.LastIndex(class, ".")+1:])
}

// noModel is what Hugging Face's libraries say of a model that is not on the machine and cannot be downloaded.
var noModel = regexp.MustCompile(`couldn't connect to '.*' to load the files|is not a valid model identifier|` +
	`OfflineModeIsEnabled|LocalEntryNotFoundError|RepositoryNotFoundError|GatedRepoError`)

// notHere says what is enough of a model that the program looked for in vain; "" where it did not.
func notHere(v *report.Imagined) string {
	if !noModel.MatchString(v.How) {
		return ""
	}
	return "a folder with its config.json is enough in place of the model's name: an LLM server makes up weights with " +
		"--load-format dummy, and needs no tokenizer with --skip-tokenizer-init; of other programs --fake-weights makes them up"
}

// OfItsOwn says whether the reason of a failure is an exception or an exit code of the program: not a signal, also where
// one of its processes ended the others by one.
func OfItsOwn(v *report.Imagined) bool { return strings.HasPrefix(v.How, ofItsOwn) }

const ofItsOwn = "the program failed for a reason of its own, "

// withOnes judges a program that failed over zeros, by the run that read ones instead.
func withOnes(v *report.Imagined) {
	failed := strings.TrimPrefix(v.How, ofItsOwn)
	switch other := v.Other; {
	case other.Fits():
		v.Verdict, v.How = mem.VerdictConditional, failed
		v.Used, v.Allocated, v.Reserved, v.Headroom = other.Used, other.Allocated, other.Reserved, other.Headroom
		for _, b := range v.ReadBacks {
			v.Undecided = append(v.Undecided, report.Undecided{File: b.File, Line: b.Line, Function: b.Function,
				Number: "float", Use: report.UseFailed, UseLine: b.Line, Value: "0.0", Other: "1.0", Count: b.Count})
		}
		v.ReadBacks = nil
	case other.Verdict == mem.VerdictOOM:
		v.How = fmt.Sprintf("the program failed, %s; with ones in place of the zeros that it read as no kernel computed "+
			"them it runs out of memory", failed)
	case other.Verdict == mem.VerdictFailed:
		v.How = fmt.Sprintf("the program failed, %s; it fails with zeros as with ones (rows that sum to one) in place of "+
			"the numbers that it read and no kernel computed%s", failed, readAt(v))
	}
}

// readAt says where a program that failed read numbers which no kernel computed, and how to answer them: first those
// that a check of the program's rests on.
func readAt(v *report.Imagined) string {
	reads := slices.Clone(v.ReadBacks)
	slices.SortStableFunc(reads, func(a, b report.ReadBack) int {
		return cmp.Compare(min(1, b.Check), min(1, a.Check))
	})
	if len(reads) == 0 {
		return ""
	}
	text := ", at " + reads[0].Place()
	if more := len(reads) - 1; more > 0 {
		text += fmt.Sprintf(" and %s more", report.Counted(int64(more), "line"))
	}
	return fmt.Sprintf("%s: --read-value %s=VALUE answers it", text, reads[0].Place())
}

// onesSentence is the verdict of such a program.
func onesSentence(v *report.Imagined, on string) []string {
	which := fmt.Sprintf("the number read at %s is not zero", v.Undecided[0].Place())
	if n := len(v.Undecided) - 1; n > 0 {
		which = fmt.Sprintf("the numbers read at %s and %s more are not zero", v.Undecided[0].Place(),
			report.Counted(int64(n), "line"))
	}
	tightly := ""
	if v.Other.Verdict == mem.VerdictTight {
		tightly = ", tightly"
	}
	return []string{fmt.Sprintf("Fits on %s if %s: with ones (rows that sum to one) it takes %v of %v%s, with zeros it "+
		"fails, %s (%s)", on, which, mem.Bytes(v.Used.Or(0)), v.Total, tightly, v.How, v.Label),
		"the tables below are of the run that failed"}
}

// begun is the first line of what an exception says; that more follows is marked, as it is where that line is cut. Where
// that line only says where, what was wrong follows it: the exception that is quoted below, else the next line.
func begun(text string, limit int) string {
	lines := strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' })
	if len(lines) < 2 {
		return report.FirstLine(text, limit)
	}
	first, more := lines[0], lines[1:]
	if header, ok := strings.CutSuffix(strings.TrimSpace(first), ":"); ok {
		at := max(0, slices.IndexFunc(more, exceptionLine.MatchString))
		first, more = header+": "+strings.TrimSpace(more[at]), more[at+1:]
	}
	if first = report.FirstLine(first, limit); len(more) > 0 && !strings.HasSuffix(first, "…") {
		first += " …"
	}
	return first
}

// exceptionLine is one that names an exception: `ValueError("type fp8e4nv not supported")`, `torch.Error: why`.
var exceptionLine = regexp.MustCompile(`^\s*[\w.]*(Error|Exception)[:(]`)

// rankOf names a process that is one rank of several, "" for another.
func rankOf(run *mem.Run, process uint32) string {
	p := run.Process(process)
	if p == nil || p.WorldSize.Or(1) < 2 {
		return ""
	}
	return p.RankName()
}

// tooManyRanks says so where more ranks were started than there are GPUs, "" where there were not.
func tooManyRanks(run *mem.Run, v *report.Imagined) string {
	var ranks int64
	if v.Verdict != mem.VerdictFailed && v.Verdict != mem.VerdictOOM ||
		slices.ContainsFunc(v.Ranks, func(r report.RankUse) bool { return r.Played }) {
		return ""
	}
	for _, p := range run.Processes {
		if local, ok := p.LocalRank.Get(); ok && p.WorldSize.Or(1) > 1 {
			ranks = max(ranks, local+1)
		}
	}
	if ranks <= int64(v.GPUs) {
		return ""
	}
	return fmt.Sprintf("%d ranks had %d GPU%s: --gpus %d gives each its own.", ranks, v.GPUs,
		strings.Repeat("s", min(1, v.GPUs-1)), ranks)
}

func isMain(run *mem.Run, process uint32) bool {
	p := run.Process(process)
	return p != nil && p.Role == "main"
}

// usedServed says whether any process imported a framework whose programs can be imagined.
func usedServed(run *mem.Run) bool {
	return slices.ContainsFunc(run.Processes, func(p *mem.Process) bool {
		for name := range p.Frameworks {
			if frameworks.Of(name).Imagined != nil {
				return true
			}
		}
		return false
	})
}

// cancelled says how far a program had come that somebody stopped before its peak was known.
func cancelled(run *mem.Run, v *report.Imagined) string {
	text := "it was cancelled before its first step"
	switch steps := run.StepCount(); {
	case v.Serving != nil && v.Serving.Ready:
		text = "it was cancelled after " + v.Serving.Engine + " was ready"
	case v.Serving != nil:
		text = fmt.Sprintf("it was cancelled before %s was ready, %s", v.Serving.Engine, while[v.Serving.Step])
	case steps > 0:
		text = "it was cancelled after " + report.Counted(int64(steps), "step")
	}
	if used, ok := v.Used.Get(); ok {
		text += fmt.Sprintf(", with %v in use at most by then", mem.Bytes(used))
	}
	return text
}
