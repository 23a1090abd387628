package watch

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fleet"
	"hightide/internal/sampler"
)

// Looker looks at a machine. For one goroutine.
type Looker struct {
	root    string
	machine *sampler.Machine
	people  map[uint32]string
	runs    runs
	started bool
}

const (
	// mostLooked is of how many processes, the largest first, more is looked at than /proc tells of all.
	mostLooked = 50
	// leastLooked is what such a process has resident at least, if it holds nothing of a GPU.
	leastLooked = 256 << 20
	programCut  = 200 // bytes of a command
	driverWaits = 3 * time.Second
)

// Open prepares to look; root is "" for "/".
func Open(root string) *Looker {
	root = cmp.Or(root, "/")
	return &Looker{root: root, machine: sampler.OpenMachine(root), people: map[uint32]string{},
		runs: runs{root: root, all: map[string]*run{}}}
}

// Close ends what asks the drivers.
func (l *Looker) Close() { l.machine.Close() }

// Look looks once.
func (l *Looker) Look(ctx context.Context) fleet.Look {
	wall, mono := now()
	p := l.machine.Read(mono)
	for began := time.Now(); !l.started && len(p.GPUs) == 0 && l.machine.HasVendors() && ctx.Err() == nil &&
		time.Since(began) < driverWaits; { // a driver's first answer is of the look after it was asked
		time.Sleep(20 * time.Millisecond)
		p = l.machine.Read(mono)
	}
	l.started = true
	look := fleet.Look{Wall: wall, Mono: mono, Cores: int64(p.Cores), Memory: p.Total, Available: p.Available,
		Notes: p.Notes}
	for _, c := range p.GPUs {
		look.Cards = append(look.Cards, fleet.Card{Device: c.Device, Name: c.Name, Memory: c.Memory, Used: c.Used,
			Utilisation: c.Utilisation})
	}
	if !l.machine.HasVendors() {
		look.Notes = append(look.Notes, "no driver of a GPU is loaded: GPUs were not looked for")
	}
	l.processes(ctx, &look, p.Processes)
	return look
}

// processes looks at all of them, and closer at the largest.
func (l *Looker) processes(ctx context.Context, look *fleet.Look, all []sampler.Seen) {
	slices.SortFunc(all, func(a, b sampler.Seen) int {
		return cmp.Or(cmp.Compare(b.Device.Or(0), a.Device.Or(0)), cmp.Compare(b.RSS, a.RSS), cmp.Compare(a.PID, b.PID))
	})
	l.runs.begin()
	closed := 0
	for i := range all {
		s := &all[i]
		if s.State == "Z" {
			continue
		}
		p := fleet.Process{PID: int64(s.PID), Start: s.StartTicks, Person: l.person(s.User), Program: program(s), RSS: s.RSS,
			Busy: s.Busy, Device: s.Device}
		for _, on := range s.Devices {
			p.On = append(p.On, fleet.OnCard{Device: on.Device, Bytes: on.Bytes})
		}
		if i < mostLooked && (s.Device.Or(0) > 0 || s.RSS >= leastLooked) && !l.closer(ctx, look, s, &p) {
			closed++
		}
		look.Processes = append(look.Processes, p)
	}
	if closed > 0 {
		look.Notes = append(look.Notes, fmt.Sprintf("of %d large processes PSS, run and job are not known: they are other "+
			"people's, and hightide watch does not run as root", closed))
	}
	l.runs.forget()
}

// closer looks for what only the owner of a process, or root, is told; false: we are not.
func (l *Looker) closer(ctx context.Context, look *fleet.Look, s *sampler.Seen, p *fleet.Process) bool {
	l.group(look, s.PID, p)
	environment, err := sampler.Environ(l.root, s.PID, s.StartTicks)
	if err != nil {
		return err == sampler.ErrGone
	}
	if d, err := sampler.ReadDetails(l.root, s.PID, s.StartTicks); err == nil {
		p.PSS = d.PSS
	}
	of := map[string]string{}
	for _, v := range environment {
		of[v.Name] = v.Value
	}
	p.JobName, p.Project = of["SLURM_JOB_NAME"], of["SLURM_JOB_ACCOUNT"]
	if id := of["HIGHTIDE_RUN_ID"]; id != "" {
		p.Run = id
		project, line := l.runs.see(ctx, id, of["HIGHTIDE_OUT"], s)
		p.Project, p.Line = cmp.Or(project, p.Project), line
	}
	return true
}

// group puts a process down to its job.
func (l *Looker) group(look *fleet.Look, pid int, p *fleet.Process) {
	path, kind, job := sampler.JobGroupPath(l.root, pid)
	if path == "" {
		return
	}
	if at := slices.IndexFunc(look.Groups, func(g fleet.Group) bool { return g.ID == path }); at >= 0 {
		p.Group = path
		l.requested(&look.Groups[at], pid)
		return
	}
	g, ok := sampler.ReadJobGroup(l.root, pid, path)
	if kind == "" && !g.Limit.Known() {
		return
	}
	if !ok {
		g = sampler.JobGroup{}
	}
	p.Group = path
	look.Groups = append(look.Groups, fleet.Group{ID: path, Kind: kind, Job: job, Limit: g.Limit, Used: g.Used,
		Cache: g.Cache, Peak: g.Peak})
	l.requested(&look.Groups[len(look.Groups)-1], pid)
}

// requested takes in what the score of one more process of a group says of its request.
func (l *Looker) requested(g *fleet.Group, pid int) {
	if g.Kind != fleet.Kubernetes {
		return
	}
	if least, most := sampler.Requested(l.root, pid, g.Limit); least.Known() && least.Or(0) > g.Request.Or(0) {
		g.Request, g.RequestMost = least, most
	}
}

// person is who a number belongs to.
func (l *Looker) person(id uint32) string {
	name, known := l.people[id]
	if !known {
		number := strconv.Itoa(int(id))
		name = "uid " + number
		if u, err := user.LookupId(number); err == nil && u.Username != "" {
			name = u.Username
		}
		l.people[id] = name
	}
	return name
}

// program is a command as people know it: secrets are masked, and long ones are cut.
func program(s *sampler.Seen) string {
	text := strings.Join(s.Command, " ")
	if len(s.Command) > 0 && filepath.IsAbs(s.Command[0]) {
		text = strings.Join(append([]string{filepath.Base(s.Command[0])}, s.Command[1:]...), " ")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(cmp.Or(text, s.Name), "\uFFFD")), " ")
	if len(text) > programCut {
		text = strings.ToValidUTF8(text[:programCut], "") + "…"
	}
	return text
}
