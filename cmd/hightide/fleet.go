package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/fleet"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// fleetOptions of fleet.
type fleetOptions struct{ server, html, json string }

func fleetCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "fleet",
		Short: "What every machine of a team holds: by person and job, who is idle, what leaks, what it costs",
		Long: `Ask a team's server what its machines hold now, as hightide watch told it: GPUs and hosts, by person and job, and
by line where hightide records the program. Named are processes that hold memory and do nothing, jobs that
reserved far more than they ever took, and leaks with the time that is left. What was reserved and not used is shown
by month and project. What is not known is said; a machine that is away is in no sum.

Exit codes: 0 fine, 2 wrong usage, 3 the server refuses, 4 it cannot be asked.`,
		Example: `  hightide fleet --server https://runs.example.org:7333
  hightide fleet --html fleet.html
  hightide fleet --json | jq '.idle[].text'`,
		Args: cobra.NoArgs,
	}, &fleetOptions{})
}

func (o *fleetOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.server, "server", "", "ask the team's server at this `address`, as https://runs.example.org")
	flags.StringVar(&o.html, "html", "", "write the page of it as one HTML `file`")
	jsonFlag(flags, &o.json)
}

func (o *fleetOptions) run(a *app, c *cobra.Command, _ []string) error {
	to, err := a.targetOf(target{server: o.server})
	if err != nil {
		return err
	}
	if to.Server == "" {
		return fail.Usage("hightide fleet --server https://runs.example.org:7333; of this machine: hightide top",
			"no server of a team is named")
	}
	client, err := to.client()
	if err != nil {
		return err
	}
	v, err := client.Fleet(c.Context())
	if err != nil {
		return err
	}
	saved := &report.Saved{Fleet: v, Made: time.Now()}
	return a.showOr(o.html, saved, o.json, v, func() error { return a.printFleet(v) })
}

// fleetTable is a list of the overview.
type fleetTable struct {
	columns []report.ListColumn
	rows    [][]string
	none    string // what is said in place of no rows
}

func (a *app) printFleet(v *fleet.Overview) error {
	options := textOptions(a.stdout)
	for i, t := range []fleetTable{machineTable(v), holdingTable("PERSON", v.People, "No process that is listed holds memory."),
		holdingTable("JOB", v.Jobs, ""), namedTable("IDLE", v.Idle, "No process that holds memory was seen to do nothing for long."),
		namedTable("OVERSIZED", v.Oversized, "No reservation was seen to be far above its peak for an hour."),
		namedTable("LEAK", v.Leaks, "Nothing was seen to grow steadily."), costTable(v)} {
		if len(t.rows) == 0 && t.none == "" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if len(t.rows) == 0 {
			fmt.Fprintln(a.stdout, t.none)
			continue
		}
		if err := report.WriteList(a.stdout, t.columns, t.rows, options.Width, options.Color); err != nil {
			return err
		}
	}
	notes := []string{"Device bytes are as drivers put them down to processes; RSS counts shared pages once for each process. " +
		"? is not known: nobody could look, or no driver tells. Who is idle, peaks and growth are of the time since the " +
		"machine is watched."}
	for _, note := range append(notes, v.Notes...) {
		if _, err := fmt.Fprintf(a.stdout, "\n%s\n", report.Clean(note)); err != nil {
			return err
		}
	}
	return nil
}

func machineTable(v *fleet.Overview) fleetTable {
	t := fleetTable{none: "No machine was ever heard of: hightide watch tells of one.", columns: []report.ListColumn{
		{Title: "MACHINE"}, {Title: "GPU"}, {Title: "USED", Right: true}, {Title: "OF", Right: true}, {Title: "BUSY", Right: true},
		{Title: "HOST FREE", Right: true}, {Title: "OF", Right: true}}}
	for i := range v.Machines {
		m := &v.Machines[i]
		name := report.Clean(m.Name)
		if m.Away {
			name += " (away)"
		}
		free, total := orQuestion(m.State.Available), orQuestion(m.State.Memory)
		if len(m.State.Cards) == 0 {
			t.rows = append(t.rows, []string{name, "none known", "", "", "", free, total})
		}
		for _, c := range m.State.Cards {
			busy := "?"
			if u, known := c.Utilisation.Get(); known {
				busy = fmt.Sprintf("%d %%", u/10)
			}
			t.rows = append(t.rows, []string{name, report.Clean(c.Device + " " + c.Name), orQuestion(c.Used), orQuestion(c.Memory),
				busy, free, total})
		}
	}
	return t
}

func orQuestion(v mem.Optional) string {
	if bytes, known := v.Get(); known {
		return mem.Bytes(bytes).String()
	}
	return "?"
}

func holdingTable(what string, all []fleet.Holding, none string) fleetTable {
	t := fleetTable{none: none, columns: []report.ListColumn{{Title: what}, {Title: "OF"}, {Title: "MACHINES"},
		{Title: "GPU", Right: true}, {Title: "RSS", Right: true}, {Title: "PSS", Right: true}, {Title: "LINE", Spare: 1}}}
	for _, h := range all {
		line := ""
		if h.Line != nil {
			line = fmt.Sprintf("%s %v ± %v", h.Line.Place, mem.Bytes(h.Line.Bytes), mem.Bytes(h.Line.Error))
		}
		t.rows = append(t.rows, []string{report.Clean(h.Name), report.Clean(strings.TrimSpace(h.Person + " " + h.Project)),
			report.Clean(strings.Join(h.Machines, ", ")), orQuestion(h.Device), mem.Bytes(h.RSS).String(),
			orQuestion(h.PSS), report.Clean(line)})
	}
	if what == "PERSON" {
		t.columns = append(t.columns[:1:1], t.columns[2:6]...)
		for i, row := range t.rows {
			t.rows[i] = append(row[:1:1], row[2:6]...)
		}
	}
	return t
}

func namedTable(what string, all []fleet.Named, none string) fleetTable {
	t := fleetTable{none: none, columns: []report.ListColumn{{Title: what}, {Title: "PID", Right: true}, {Title: "PERSON"},
		{Title: "PROGRAM", Spare: 1}, {Title: "WHAT"}}}
	for _, n := range all {
		pid, program := "", n.Program
		if n.PID != 0 {
			pid = strconv.FormatInt(n.PID, 10)
		}
		if n.Job != "" {
			program = n.Job + ": " + program
		}
		t.rows = append(t.rows, []string{report.Clean(n.Machine), pid, report.Clean(n.Person), report.Clean(program),
			report.Clean(n.Text)})
	}
	return t
}

func costTable(v *fleet.Overview) fleetTable {
	t := fleetTable{columns: []report.ListColumn{{Title: "MONTH"}, {Title: "PROJECT"}, {Title: "OF"},
		{Title: "RESERVED", Right: true}, {Title: "NOT USED", Right: true}, {Title: "COST OF THAT", Right: true}}}
	for _, c := range v.Costs {
		project, of := c.Project, c.GPU
		if project == "" {
			project = "not known"
		}
		reserved, unused := cardHours(c.Held), cardHours(c.Idle)
		if of == "" {
			of, reserved, unused = "memory of hosts", gibHours(c.Reserved), gibHours(c.Unused)
		}
		cost := "no price"
		if cents, known := c.Cents.Get(); known {
			cost = strings.TrimSpace(fmt.Sprintf("%d.%02d %s", cents/100, cents%100, c.Currency))
		}
		t.rows = append(t.rows, []string{c.Month, report.Clean(project), report.Clean(of), reserved, unused, report.Clean(cost)})
	}
	return t
}

func cardHours(ms int64) string {
	return fmt.Sprintf("%.1f h", float64(ms)/float64(time.Hour.Milliseconds()))
}

func gibHours(mibSeconds int64) string {
	return fmt.Sprintf("%.1f GiB h", float64(mibSeconds)/1024/time.Hour.Seconds())
}
