package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/remote"
	"hightide/internal/store"
	"hightide/internal/testkit"
)

// teamMachines record and send; teamViewers look at their runs, each at one.
const (
	teamMachines = 50
	teamViewers  = 200
)

// teamServer is hightide serve in a process of its own, whose use of the machine the kernel knows.
type teamServer struct {
	t       *testing.T
	env     []string
	process *exec.Cmd
	at      string
}

func startTeamServer(t *testing.T, database *testkit.Postgres) *teamServer {
	t.Helper()
	dir := t.TempDir()
	s := &teamServer{t: t, env: append(os.Environ(), "HIGHTIDE_STORE="+database.New(t), "HIGHTIDE_OBJECTS=file://"+t.TempDir(),
		"HIGHTIDE_DATA="+dir)}
	config := filepath.Join(dir, "team.toml")
	var members []string
	for i := range teamMachines {
		members = append(members, fmt.Sprintf("%q", machineName(i)))
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, "address = \"127.0.0.1:0\"\n[projects.ranker]\nmembers = [%s]\n",
		strings.Join(members, ", ")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.process = s.command("serve", "--config", config)
	said, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.process.Process.Kill(); _ = s.process.Wait() })
	lines, listening := bufio.NewScanner(said), regexp.MustCompile(`^hightide serve: (http://[^/ ]+)`)
	for s.at == "" && lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			s.at = found[1]
		}
	}
	if s.at == "" {
		t.Fatal("the server did not begin")
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	return s
}

func machineName(i int) string { return fmt.Sprintf("machine-%02d", i) }

func (s *teamServer) command(args ...string) *exec.Cmd {
	c := exec.Command("../bin/hightide", args...)
	c.Env = s.env
	return c
}

func (s *teamServer) key(name string) string {
	s.t.Helper()
	out, err := s.command("key", name, "--may", "push").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// cpu is the processor time that the server has used, to 10 ms.
func (s *teamServer) cpu() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	ticks := 0
	for _, field := range strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[11:13] {
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// peak is the most memory that it has held, in bytes: its RSS.
func (s *teamServer) peak() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	n, _ := strconv.ParseInt(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(text))[1], 10, 64)
	return n << 10
}

// record writes a run at 10 Hz until the context ends, as the recorder does while somebody looks.
func record(ctx context.Context, w store.Writer) error {
	if err := w.Write(mem.Process{ID: 1, PID: 1, Role: "main", Start: 1}); err != nil {
		return err
	}
	for i, c := range curves {
		if err := w.Write(mem.SeriesDef{ID: uint32(i + 1), Process: 1, Name: c.name, Unit: c.unit, Label: mem.Measured}); err != nil {
			return err
		}
	}
	began, ticks := time.Now(), time.NewTicker(time.Duration(interval))
	defer ticks.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		now := int64(time.Since(began)) + 1
		for i := range curves {
			if err := w.Write(mem.Samples{Series: uint32(i + 1), Times: []int64{now}, Values: []int64{now % (1 << 30)}}); err != nil {
				return err
			}
		}
		if n%2 == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		<-ticks.C
	}
	if err := w.Write(mem.End{Time: int64(time.Since(began)) + 1, ExitCode: mem.Some(0), Reason: "exit"}); err != nil {
		return err
	}
	return w.Close()
}

// teamWatch counts the readings that a viewer of a run gets.
func teamWatch(ctx context.Context, at, key string, got *atomic.Int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", at, answer.Status)
	}
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "event: samples") {
			got.Add(1)
		}
	}
}

// TestTeamLoad has 50 machines send what they record at 10 Hz, by the client's own code, and 200 look at it. It says what
// the server takes of the machine, for as many seconds as HIGHTIDE_TEAM_SECONDS says.
func TestTeamLoad(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("HIGHTIDE_TEAM_SECONDS"))
	if err != nil {
		t.Skip("HIGHTIDE_TEAM_SECONDS says not how long; bench/team.py does")
	}
	database := testkit.StartPostgres(t)
	s := startTeamServer(t, database)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	recording, end := context.WithCancel(ctx)
	got := make([]atomic.Int64, teamViewers)
	watching := sync.WaitGroup{}
	for i := range teamMachines {
		key, files := s.key(machineName(i)), store.OpenFiles(t.TempDir())
		client, err := remote.NewClient(s.at, key)
		if err != nil {
			t.Fatal(err)
		}
		w, err := files.Create(mem.RunInfo{Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"}, StartMono: 1,
			StartWall: time.Now().UnixNano()})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if err := record(recording, w); err != nil {
				t.Error(err)
			}
		})
		watching.Add(teamViewers / teamMachines)
		l := &remote.Live{Client: client, Project: "ranker", Folder: t.TempDir(), Shown: func(run string) {
			for n := range teamViewers / teamMachines {
				group.Go(func() {
					watching.Done()
					if err := teamWatch(ctx, s.at+"/api/v1/runs/"+run+"/live", key, &got[i*teamViewers/teamMachines+n]); ctx.Err() == nil {
						t.Error(err)
					}
				})
			}
		}}
		group.Go(func() {
			if err := l.Run(ctx, files, w.ID()); ctx.Err() == nil && err != nil {
				t.Error(err)
			}
		})
	}
	watching.Wait()
	time.Sleep(5 * time.Second)
	before, began, used, rows := make([]int64, teamViewers), time.Now(), s.cpu(), database.CPU(t)
	for i := range got {
		before[i] = got[i].Load()
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	wall := time.Since(began)
	for i := range got {
		before[i] = got[i].Load() - before[i]
	}
	text, err := json.Marshal(map[string]float64{
		"cores": float64(s.cpu()-used) / float64(wall), "peak_bytes": float64(s.peak()),
		"database_cores": float64(database.CPU(t)-rows) / float64(wall),
		"slowest":        float64(slices.Min(before)) / wall.Seconds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("team", string(text))
	end()
	stop()
}
