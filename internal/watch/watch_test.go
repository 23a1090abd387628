package watch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hightide/internal/fleet"
	"hightide/internal/mem"
	"hightide/internal/sampler/nvml"
	"hightide/internal/testkit"
)

// withGPUs is the root of a machine that is this one, and has the driver of two GPUs.
func withGPUs(t *testing.T) (root string) {
	t.Helper()
	if _, ok := nvml.Program(); !ok {
		t.Skip("the NVML helper is not built: make -C internal/sampler/nvml")
	}
	testkit.FakeNVML(t)
	root = t.TempDir()
	for _, name := range []string{"proc", "sys"} {
		if err := os.Symlink("/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/nvidiactl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestLook: this process is put down to us with what the driver says that it holds, its PSS and its command.
func TestLook(t *testing.T) {
	l := Open(withGPUs(t))
	defer l.Close()
	var look fleet.Look
	var us fleet.Process
	for deadline := time.Now().Add(time.Minute); !us.Device.Known() && time.Now().Before(deadline); {
		look = l.Look(t.Context())
		at := slices.IndexFunc(look.Processes, func(p fleet.Process) bool { return p.PID == int64(os.Getpid()) })
		if at < 0 {
			t.Fatal("we are not among the processes")
		}
		us = look.Processes[at]
	}
	pss, known := us.PSS.Get()
	if us.Device.Or(0) < 1500<<20 || len(us.On) != 1 || us.On[0].Device != "nvidia:0" || !known || pss <= 0 || pss > us.RSS*11/10 ||
		us.Person == "" || strings.HasPrefix(us.Program, "/") || !strings.Contains(us.Program, "watch.test") {
		t.Errorf("we are %+v", us)
	}
	if len(look.Cards) != 2 || look.Cards[0].Name != "NVIDIA Test A" || look.Cards[0].Memory != mem.Some(80<<30) {
		t.Errorf("GPUs %+v", look.Cards)
	}
	for _, note := range look.Notes {
		if strings.Contains(note, "no driver") {
			t.Error(note)
		}
	}
}

// TestLookWithoutGPUs: that nobody looked for GPUs is said.
func TestLookWithoutGPUs(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	l := Open(root)
	defer l.Close()
	look := l.Look(t.Context())
	if len(look.Cards) != 0 || !slices.ContainsFunc(look.Notes, func(n string) bool {
		return strings.Contains(n, "GPUs were not looked for")
	}) {
		t.Errorf("%+v %q", look.Cards, look.Notes)
	}
}

// TestSecretsStay: what follows --api-key and who has a token in the environment is not told.
func TestSecretsStay(t *testing.T) {
	c := exec.Command("sleep", "1000")
	c.Args = []string{"sleep", "1000"}
	c.Env = []string{"HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "SLURM_JOB_NAME=night", "SLURM_JOB_ACCOUNT=ranker"}
	script := exec.Command("sh", "-c", "sleep 1000; true", "--api-key", "geheim7391")
	for _, one := range []*exec.Cmd{c, script} {
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = one.Process.Kill(); _ = one.Wait() }()
	}
	l := Open("")
	defer l.Close()
	text, err := json.Marshal(l.Look(t.Context()))
	if err != nil || strings.Contains(string(text), "geheim7391") || strings.Contains(string(text), "hf_abc") {
		t.Errorf("told, or %v", err)
	}
	if !strings.Contains(string(text), "--api-key ***") {
		t.Error("the command is not told")
	}
}

// server takes reports as the real one does.
type server struct {
	down   bool
	silent bool // it takes a report, and its answer is lost
	last   map[string]int64
	used   []fleet.Used
	state  fleet.State
	taken  int
}

var errAway = errors.New("the server is away")

func (s *server) take(_ context.Context, r fleet.Report) error {
	if s.down {
		return errAway
	}
	if s.last == nil {
		s.last = map[string]int64{}
	}
	s.state = r.State
	if r.Number > s.last[r.Session] {
		s.last[r.Session], s.taken = r.Number, s.taken+1
		s.used = append(s.used, r.Used...)
	}
	if s.silent {
		return errAway
	}
	return nil
}

func (s *server) held() (sum int64) {
	for _, u := range s.used {
		sum += u.Held
	}
	return sum
}

// TestOutbox: what is reserved while the server is away is told once, whatever was lost on the way and however often
// hightide watch was started anew.
func TestOutbox(t *testing.T) {
	folder, s := t.TempDir(), &server{}
	want := int64(0)
	for i := range int64(60) {
		s.down, s.silent = i%7 < 3, i%5 == 4
		b, err := OpenOutbox(folder) // as after a kill
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.Add(fleet.State{Time: i}, []fleet.Used{{Month: "2026-11", Person: "anna", GPU: "A10", Held: i}})
			want += i
			if err := b.Save(); err != nil {
				t.Fatal(err)
			}
			if err := b.Send(t.Context(), s.take); (err != nil) != (s.down || s.silent) {
				t.Fatal(err)
			}
			if err := b.Save(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.down, s.silent = false, false
	b, err := OpenOutbox(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Send(t.Context(), s.take); err != nil || s.held() != want || s.state.Time != 59 {
		t.Errorf("error %v; %d held, want %d; state of %d", err, s.held(), want, s.state.Time)
	}
	if s.taken < 60 {
		t.Errorf("only %d reports", s.taken)
	}
}

// TestRun: the server hears at once and then at the interval; it goes away and comes back, which is said once; what it
// refuses ends the watch.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said []string
	states := 0
	refused := errors.New("this key may not")
	err := Run(ctx, Options{Look: time.Millisecond, Every: 5 * time.Millisecond, Folder: t.TempDir(),
		Say: func(line string) { said = append(said, line) }, Lost: func(err error) bool { return err == refused },
		Send: func(_ context.Context, r fleet.Report) error {
			states++
			switch {
			case states == 1 && len(r.Used) > 0:
				t.Errorf("at the first look: %+v", r.Used)
			case states > 2 && states < 6:
				return errAway
			case states == 9:
				return refused
			}
			return nil
		}})
	if !errors.Is(err, refused) || len(said) != 2 || !strings.Contains(said[0], "away") || !strings.Contains(said[1], "again") {
		t.Errorf("error %v, said %q", err, said)
	}
}
