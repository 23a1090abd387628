package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/fleet"
)

// holding is a program that holds 300 MiB of one line, until it is killed.
const holding = `import time
held = [bytearray(b"x") * (50 << 20) for _ in range(6)]
print("holds", flush=True)
time.sleep(3600)
`

// fleetFile serves one project and one machine.
const fleetFile = `
address = "127.0.0.1:0"
admins = ["root"]
[projects.ranker]
members = ["anna", "bob"]
[fleet]
machines = ["gpu-1"]
viewers = ["anna"]
memory-price = 0.01
currency = "EUR"
`

// exitCodeOf is that of a command that ended.
func exitCodeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// TestFleet: what this machine holds is seen by who may see machines, with the run and its line; a machine tells of
// itself alone; when the server is killed and comes back, the watch goes on.
func TestFleet(t *testing.T) {
	s := startTeam(t, fleetFile)
	at := s.served.at("")
	write(t, s.dir, "team.toml", strings.Replace(fleetFile, "127.0.0.1:0", strings.TrimPrefix(at, "http://"), 1))
	keys := map[string]string{"gpu-1": s.key("gpu-1", "--may", "push"), "anna": s.key("anna", "--may", "read"),
		"bob": s.key("bob", "--may", "push")}
	as := func(who string, args ...string) *exec.Cmd {
		c := s.command(args...)
		c.Env = append(c.Env, "HIGHTIDE_STORE=", "HIGHTIDE_SERVER="+at, "HIGHTIDE_KEY="+keys[who])
		return c
	}
	seen := func() (v fleet.Overview) {
		out, err := as("anna", "fleet", "--json").Output()
		if err == nil {
			err = json.Unmarshal(out, &v)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return v
	}
	if v := seen(); len(v.Machines) != 0 || !strings.Contains(strings.Join(v.Notes, ""), "gpu-1 was never heard of") {
		t.Errorf("before the first report: %+v", v)
	}
	for who, args := range map[string][]string{"bob": {"fleet"}, "anna": {"watch", "--machine", "gpu-1"},
		"gpu-1": {"watch", "--machine", "gpu-2"}} {
		out, err := as(who, args...).CombinedOutput()
		if code := exitCodeOf(err); code != 3 || !strings.Contains(string(out), "[fleet]") && who != "anna" {
			t.Errorf("%q by %s: exit %d, %s", args, who, code, out)
		}
	}
	write(t, s.dir, "hold.py", holding)
	run := as("bob", "run", "--quiet", "--tag", "project=ranker", "--", "python3", "hold.py")
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL); _ = run.Wait() }()
	w := as("gpu-1", "watch", "--machine", "gpu-1", "--interval", "200ms", "--look", "100ms")
	said := new(sentences)
	w.Stderr = said
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	}()
	job := func(v fleet.Overview) *fleet.Holding {
		for i := range v.Jobs {
			if v.Jobs[i].Project == "ranker" && strings.HasPrefix(v.Jobs[i].Name, "run ") {
				return &v.Jobs[i]
			}
		}
		return nil
	}
	waitFor(t, func() bool {
		h := job(seen())
		return h != nil && h.RSS > 300<<20 && h.PSS.Known() && h.Line != nil && strings.HasPrefix(h.Line.Place, "hold.py:2")
	})
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	waitFor(t, func() bool { return strings.Contains(said.String(), "kept and sent later") })
	s.start()
	waitFor(t, func() bool { return strings.Contains(said.String(), "the server answers again") })
	before := seen().Machines[0].Heard
	waitFor(t, func() bool { v := seen(); return v.Machines[0].Heard > before && !v.Machines[0].Away && job(v) != nil })
	text, err := as("anna", "fleet").CombinedOutput()
	if err != nil || !strings.Contains(string(text), "gpu-1") || !strings.Contains(string(text), "PERSON") ||
		!strings.Contains(string(text), "RSS counts shared pages") {
		t.Errorf("%v %s", err, text)
	}
	if told := s.must("audit", "--json"); strings.Contains(told, `PUT \"/api/v1/fleet/machines/gpu-1\"`) &&
		strings.Contains(told, `"status": 200`) {
		t.Errorf("the log has every report: %s", told)
	}
	_ = w.Process.Signal(syscall.SIGINT)
	err = w.Wait()
	if ended = true; exitCodeOf(err) != 0 {
		t.Errorf("Ctrl-C: %v, %s", err, said)
	}
}

// TestWatchOnce: what would be sent is printed, without a server; and that no GPU was looked for is said.
func TestWatchOnce(t *testing.T) {
	s := newSession(t)
	out, err := s.command("watch", "--once", "--json").Output()
	var state fleet.State
	if err != nil || json.Unmarshal(out, &state) != nil || state.Memory.Or(0) <= 0 || state.Since == 0 {
		t.Fatalf("%v %s", err, out)
	}
	if len(state.Cards) == 0 && !strings.Contains(strings.Join(state.Notes, ""), "GPUs were not looked for") {
		t.Errorf("notes %q", state.Notes)
	}
	if out, err := s.command("watch", "--json").CombinedOutput(); exitCodeOf(err) != 2 || !strings.Contains(string(out), "--once") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := s.command("fleet").CombinedOutput(); exitCodeOf(err) != 2 || !strings.Contains(string(out), "--server") {
		t.Errorf("%v %s", err, out)
	}
}
