package allocator

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// oracleTally counts what a stream of programs was made of.
type oracleTally struct {
	programs, events, failed int
	short                    int // programs of fewer than 200 events
	of                       map[string]int
	verified                 verified
}

// playAll plays every program of a stream and counts them; the first failures fail the test.
func playAll(r io.Reader, t testing.TB) *oracleTally {
	sum := &oracleTally{of: map[string]int{}}
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var o oracleProgram
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatalf("line %d: %v", sum.programs+1, err)
			}
			p := &player{oracleProgram: &o}
			p.play()
			sum.add(p)
			if sum.programs%3 == 0 {
				sum.verified.add(&o, t)
			}
			if len(p.failures) > 0 && sum.failed <= 5 {
				t.Errorf("program %d under torch %v, %q: %s", o.Seed, o.Torch, o.Confs, strings.Join(p.failures, "; "))
			}
		}
		if err != nil {
			return sum
		}
	}
}

// add counts a program, and which knobs and conditions it had.
func (s *oracleTally) add(p *player) {
	s.programs++
	s.events += p.count()
	if p.count() < 200 {
		s.short++
	}
	if len(p.failures) > 0 {
		s.failed++
	}
	seen := map[string]bool{"own process": p.Fresh, "torch's retries": p.n.Stats.AllocRetries > 0,
		"oom":              p.n.Stats.OOMs > 0,
		"settings changed": len(p.Confs) > 1, "deferred frees": p.deferred, "rejected": p.n.Stats.OOMRejected > 0}
	for i := 0; i+5 <= len(p.Ops); i += 5 {
		seen[[...]string{"", "", "record_stream", "empty_cache", "", "", "memory fraction", "private pool", "", "", "", "",
			"MemPool", "", "graph capture", ""}[p.Ops[i]]] = true
	}
	for _, pair := range pairs(p.Confs[0]) {
		name, value, _ := strings.Cut(pair, ":")
		if value != "False" && pair != "large_segment_size_mb:20" {
			seen[name] = true
		}
	}
	if seen["expandable_segments"] && seen["private pool"] {
		seen["private pool with expandable segments"] = true
	}
	delete(seen, "")
	for what, is := range seen {
		if is {
			s.of[what]++
		}
	}
}

// String lists all settings that there are, those that no program had as well.
func (s *oracleTally) String() string {
	for _, o := range options {
		s.of[o.name] += 0
	}
	text := fmt.Sprintf("%d programs, %d events, %d mismatches", s.programs, s.events, s.failed)
	for _, what := range slices.Sorted(maps.Keys(s.of)) {
		text += fmt.Sprintf("\n    with %-38s %d", what, s.of[what])
	}
	return text
}

// TestOracle drives the real allocator of every PyTorch at hand on the imaginary GPU, and plays the same
// programs through the model. HIGHTIDE_ORACLE_PROGRAMS says how many for each.
func TestOracle(t *testing.T) {
	library, err := filepath.Abs("../../device/lib/libhightide_device.so")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Skip("the imaginary GPU is not built: make -C device")
	}
	cache := os.Getenv("HIGHTIDE_CACHE")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache", "hightide")
	}
	pythons, _ := filepath.Glob(filepath.Join(cache, "torch-*", "bin", "python"))
	if len(pythons) == 0 {
		t.Skip("no PyTorch is installed: scripts/setup torch")
	}
	programs := os.Getenv("HIGHTIDE_ORACLE_PROGRAMS")
	if programs == "" {
		programs = "150"
	}
	shims := t.TempDir()
	for _, python := range pythons {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) {
			t.Parallel()
			command := exec.Command(python, "../../scripts/oracle.py", "--programs", programs, "--build", shims)
			command.Env = append(os.Environ(), "LD_PRELOAD="+library, "LD_LIBRARY_PATH="+filepath.Dir(library),
				"HIGHTIDE_DEVICE_SPEC=name=NVIDIA A10;slug=a10;memory=23729274880;context=0;cc=8.6;sms=72")
			var problems bytes.Buffer
			command.Stderr = &problems
			out, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			sum := playAll(out, t)
			if err := command.Wait(); err != nil {
				t.Fatalf("%v: %s", err, problems.String())
			}
			if want, _ := strconv.Atoi(programs); sum.programs != want {
				t.Errorf("%d of %d programs ran", sum.programs, want)
			}
			if sum.short > 0 {
				t.Errorf("%d programs have fewer than 200 events", sum.short)
			}
			t.Logf("%s: %v", filepath.Base(t.Name()), sum)
			sum.verified.check(t)
		})
	}
}

// TestOracleReleases plays programs that releases recorded which the tests do not install, so that their rules stay
// held. Each file: scripts/oracle.py --programs 12 --seed N, where a rule is met.
func TestOracleReleases(t *testing.T) {
	files, _ := filepath.Glob("testdata/oracle/*.jsonl.gz")
	if len(files) == 0 {
		t.Fatal("no recorded programs")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), func(t *testing.T) {
			t.Parallel()
			in, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			lines, err := gzip.NewReader(in)
			if err != nil {
				t.Fatal(err)
			}
			sum := playAll(lines, t)
			if sum.programs != 12 {
				t.Errorf("%d programs", sum.programs)
			}
			sum.verified.check(t)
		})
	}
}

// TestOracleFile plays recorded programs: HIGHTIDE_ORACLE names a file that scripts/oracle.py wrote.
func TestOracleFile(t *testing.T) {
	name := os.Getenv("HIGHTIDE_ORACLE")
	if name == "" {
		t.Skip("HIGHTIDE_ORACLE names no file of programs")
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	sum := playAll(in, t)
	if sum.programs == 0 {
		t.Error("it holds no program")
	}
	t.Log(sum)
	sum.verified.check(t)
}

// verified counts what Verify says of recorded traces: whole ones, and such whose first half is lost.
type verified struct {
	exact, differ, refused [2]int
	open                   int // exact only with the device's memory told
}

// add verifies a program's trace as a snapshot would hold it, and compiles and runs it again.
func (v *verified) add(o *oracleProgram, t testing.TB) {
	if len(o.Confs) > 1 || len(o.Pools) > 0 && len(o.Owners) == 0 {
		return // a file holds the last settings only, and up to 2.9 not whose pool an event belongs to
	}
	settings, err := RulesOf(o.version()).Parse(o.Confs[0])
	if err != nil {
		t.Fatal(err)
	}
	for half := range 2 {
		s := o.snapshot(half == 1)
		switch got, err := Verify(s, &s.Traces[0], settings, 0); {
		case err != nil:
			v.refused[half]++
		case got.Exact() && got.First == "":
			v.exact[half]++
		case settings.Expandable: // where their address space ends goes by the device's memory
			v.open++
			if got, err := Verify(s, &s.Traces[0], settings, o.Total); half == 0 && (err != nil || !got.Exact()) {
				t.Errorf("program %d %q on a device of %d bytes: %+v, %v", o.Seed, o.Confs, o.Total, got, err)
			}
		default:
			if v.differ[half]++; half == 0 && v.differ[half] < 6 {
				t.Logf("program %d %q: %+v", o.Seed, o.Confs, got)
			}
		}
		if p, err := Compile(s, &s.Traces[0], settings); err == nil {
			Variants(p, Setup{Settings: settings, Rules: RulesOf(o.version()), Memory: o.Total})
		}
	}
}

// check demands that all whole traces come out. Of a lost first half, the sizes of blocks are open.
func (v *verified) check(t testing.TB) {
	t.Logf("verified: whole traces %d exact, %d not, %d refused; half ones %d, %d, %d; open %d", v.exact[0], v.differ[0],
		v.refused[0], v.exact[1], v.differ[1], v.refused[1], v.open)
	if v.differ[0]+v.refused[0] > 0 {
		t.Errorf("of %d whole traces %d differ and %d are refused", v.exact[0]+v.differ[0]+v.refused[0], v.differ[0],
			v.refused[0])
	}
}

// snapshot is what the program would have dumped; with half, its ring lost the first half of the trace.
func (o *oracleProgram) snapshot(half bool) *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Versions: only(o.version()), Traces: make([]mem.Trace, 1),
		Segments: o.segments()}
	p := player{oracleProgram: o}
	first := 0
	if half {
		first = p.count() / 2
	}
	t := &s.Traces[0]
	for i := first; i < p.count(); i++ {
		e := p.recorded(i)
		t.Action, t.Address, t.Size, t.Stream = append(t.Action, e.Action), append(t.Address, e.Address),
			append(t.Size, e.Size), append(t.Stream, e.Stream)
		t.Stack = append(t.Stack, 0)
		if len(o.Owners) > 0 {
			t.Pool = append(t.Pool, mem.PoolID{o.Owners[2*i], o.Owners[2*i+1]})
		}
	}
	return s
}
