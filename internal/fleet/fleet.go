// Package fleet says what the machines of a team hold now: by person, by job and, where hightide runs there, by line.
//
//	hightide watch on a machine: Look ──▶ Watcher ──▶ Report ──▶ the server ──▶ Of ──▶ Overview: page, command, API
//
// A Watcher keeps what takes more than one look: since when a process does nothing, how high it was, whether it grows.
// Everything here is pure. Read watcher.go for a machine, overview.go for all of them.
package fleet

import (
	"fmt"

	"hightide/internal/mem"
)

// Report is what a machine sends. Session and Number say which of its reports it is: one that is sent again, as its
// answer was lost, counts once.
type Report struct {
	Session string `json:"session" minLength:"1" maxLength:"64" doc:"Of one start of hightide watch; with number it names a report."`
	Number  int64  `json:"number" minimum:"1" doc:"Of the report in its session; a report that was taken already is not counted again."`
	State   State  `json:"state" doc:"What the machine holds."`
	Used    []Used `json:"used" maxItems:"1000" doc:"What was reserved since the report before."`
}

// State is what a machine holds at a moment.
type State struct {
	Version string `json:"version" maxLength:"100" doc:"Of hightide there."`
	Time    int64  `json:"time_unix_ns" doc:"When it was looked at, by its own clock."`
	Since   int64  `json:"since_unix_ns" doc:"Since when it has been looked at without a break."`
	Every   int64  `json:"every_ns" minimum:"1" doc:"The time between two reports."`
	Cores   int64  `json:"cores" doc:"Processors."`

	Memory    mem.Optional `json:"memory_bytes,omitzero" doc:"Of the host."`
	Available mem.Optional `json:"available_bytes,omitzero" doc:"What programs can still take of it, as the kernel says."`

	Cards   []Card   `json:"gpus" maxItems:"1000" doc:"The GPUs."`
	Groups  []Group  `json:"groups" maxItems:"1000" doc:"Control groups of jobs and containers that holders are in."`
	Holders []Holder `json:"holders" maxItems:"1000" doc:"Processes that hold memory, the largest first."`

	Others    int64    `json:"others" doc:"Processes that hold less than those that are listed."`
	OthersRSS int64    `json:"others_rss_bytes" doc:"What they have resident, summed: shared pages count once for each."`
	Notes     []string `json:"notes,omitempty" maxItems:"100" doc:"What could not be looked at, and why."`
}

// Card is a GPU.
type Card struct {
	Device      string       `json:"device" maxLength:"100" doc:"As nvidia:0."`
	Name        string       `json:"name" maxLength:"200" doc:"Its model."`
	Memory      mem.Optional `json:"memory_bytes,omitzero" doc:"What it has."`
	Used        mem.Optional `json:"used_bytes,omitzero" doc:"What is taken of it, with what its driver takes."`
	Utilisation mem.Optional `json:"utilisation_milli,omitzero" doc:"How busy it was in the driver's last sample."`
}

// Kinds of groups.
const (
	Slurm      = "slurm"
	Kubernetes = "kubernetes"
	Container  = "container"
)

// Group is a control group whose memory is limited, or that belongs to a job.
type Group struct {
	ID          string       `json:"id" maxLength:"500" doc:"By which holders name it; on one machine."`
	Kind        string       `json:"kind" enum:"slurm,kubernetes,container," doc:"What made it; empty: not known."`
	Job         string       `json:"job" maxLength:"200" doc:"The number of the job, or of the pod or container."`
	Limit       mem.Optional `json:"limit_bytes,omitzero" doc:"What it may take; absent: as much as there is."`
	Request     mem.Optional `json:"request_bytes,omitzero" doc:"What was requested of Kubernetes for it, at least, by the OOM score that its processes have (estimated); absent: not known, or nothing."`
	RequestMost mem.Optional `json:"request_most_bytes,omitzero" doc:"The same, at most."`

	Used  mem.Optional `json:"used_bytes,omitzero" doc:"What it is charged with, the cache of files included."`
	Cache mem.Optional `json:"cache_bytes,omitzero" doc:"Of that, pages of files that the kernel can take back."`
	Peak  mem.Optional `json:"peak_bytes,omitzero" doc:"The most that it was charged with since it was made, the cache of files included; absent: the kernel does not tell."`
}

// reserved is what a group keeps from others, in bytes: what was requested of Kubernetes for it, at least; else its limit.
func (g *Group) reserved() (bytes int64, said string, known bool) {
	limit, limited := g.Limit.Get()
	least, requested := g.Request.Get()
	most := g.RequestMost.Or(least)
	switch {
	case !requested:
		return limit, fmt.Sprintf("may take %v", mem.Bytes(limit)), limited
	case least == most:
		return least, fmt.Sprintf("has %v requested (estimated)", mem.Bytes(least)), true
	}
	return least, fmt.Sprintf("has between %v and %v requested (estimated)", mem.Bytes(least), mem.Bytes(most)), true
}

// Holder is a process that holds memory.
type Holder struct {
	PID     int64  `json:"pid" doc:"Its number."`
	Began   int64  `json:"began_unix_ns" doc:"When it was first seen: it may be older."`
	Person  string `json:"person" maxLength:"200" doc:"Whose it is."`
	Program string `json:"program" maxLength:"300" doc:"Its command, secrets masked, cut."`
	Group   string `json:"group,omitempty" maxLength:"500" doc:"Which of the groups it is in; absent: none of them."`
	JobName string `json:"job_name,omitempty" maxLength:"200" doc:"What the scheduler calls its job; absent: not known."`
	Project string `json:"project,omitempty" maxLength:"200" doc:"Of its run, or its account with the scheduler; absent: not known."`
	Run     string `json:"run,omitempty" maxLength:"200" doc:"The run that hightide records of it; absent: none, or it could not be looked at."`
	Line    *Line  `json:"line,omitempty" doc:"The line whose allocations hold most of its host's heap now; absent: not known."`

	RSS    int64        `json:"rss_bytes" doc:"Resident memory: shared pages count in each process that has them."`
	PSS    mem.Optional `json:"pss_bytes,omitzero" doc:"The same, shared pages divided by their users; absent: not looked for, or not allowed."`
	Device mem.Optional `json:"device_bytes,omitzero" doc:"What it holds of all GPUs; absent: no driver says that it holds any."`
	On     []OnCard     `json:"on_gpus,omitempty" maxItems:"100" doc:"The same, by GPU."`

	PeakRSS    int64        `json:"peak_rss_bytes" doc:"The highest that was seen."`
	PeakDevice mem.Optional `json:"peak_device_bytes,omitzero" doc:"The highest that was seen."`

	Busy      mem.Optional `json:"cpu_milli,omitzero" doc:"Of one processor, since the look before."`
	IdleSince mem.Optional `json:"idle_since_unix_ns,omitzero" doc:"Since when it does nothing; absent: it works."`
	IdleBy    string       `json:"idle_by,omitempty" maxLength:"100" doc:"What tells that it does nothing."`

	Grows []Growth `json:"grows,omitempty" maxItems:"10" doc:"What has grown steadily since it was seen."`
}

// OnCard is what a process holds of one GPU.
type OnCard struct {
	Device string `json:"device" maxLength:"100" doc:"As nvidia:0."`
	Bytes  int64  `json:"bytes" doc:"What it holds."`
}

// Line is a place in code with what it holds.
type Line struct {
	Place string `json:"place" maxLength:"500" doc:"FILE:LINE."`
	Bytes int64  `json:"bytes" doc:"Of the host's heap that was allocated there and is held."`
	Error int64  `json:"error_bytes" doc:"Half the 95 % interval of that."`
}

// What grows.
const (
	HostMemory   = "rss"
	DeviceMemory = "device"
)

// Growth is memory that grows steadily.
type Growth struct {
	What    string `json:"what" enum:"rss,device" doc:"Resident memory, or memory of GPUs."`
	PerHour int64  `json:"bytes_per_hour" doc:"Its slope."`
	Error   int64  `json:"error_bytes_per_hour" doc:"Half the 95 % interval of that."`
	Over    int64  `json:"over_ns" doc:"The time over which it was seen to grow."`
}

// Used is what somebody reserved in a month, and how much of that was not used.
type Used struct {
	Month    string `json:"month" maxLength:"7" pattern:"^\\d{4}-\\d{2}$" doc:"YYYY-MM, of UTC."`
	Project  string `json:"project" maxLength:"200" doc:"Empty: not known."`
	Person   string `json:"person" maxLength:"200" doc:"Whose processes they were."`
	GPU      string `json:"gpu" maxLength:"200" doc:"The model of the GPU; empty: memory of hosts."`
	Held     int64  `json:"held_ms" minimum:"0" doc:"Time of GPUs on which memory was held; of a shared one the share by bytes."`
	Idle     int64  `json:"idle_ms" minimum:"0" doc:"Of that, time in which the holder did nothing."`
	Reserved int64  `json:"reserved_mib_s" minimum:"0" doc:"Limits of control groups of jobs, times seconds."`
	Unused   int64  `json:"unused_mib_s" minimum:"0" doc:"Of that, what they were not charged with at the time."`
}
