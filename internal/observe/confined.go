package observe

import (
	"fmt"
	"syscall"

	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// confined is a limit on what the command may have of host memory: the kernel holds it to that in a control group, or
// where none can be made, we look and end it. nil: there is no limit.
type confined struct {
	limit    int64
	group    *sampler.OwnedGroup // nil: it is watched
	why      string              // there is no group
	highest  int64               // that was seen, watched
	counted  int64               // when pages were last counted that processes share
	counting int64               // how long that took, ns
	ended    bool                // by us
}

// confine makes the group that a command is to begin in.
func confine(limit mem.Bytes) *confined {
	if limit == 0 {
		return nil
	}
	group, err := sampler.NewOwnedGroup("/", int64(limit))
	if err != nil {
		return &confined{limit: int64(limit), why: err.Error()}
	}
	return &confined{limit: int64(limit), group: group}
}

// by is the group that holds the command to the limit; nil: none does.
func (c *confined) by() *sampler.Group {
	if c == nil || c.group == nil {
		return nil
	}
	return &c.group.Group
}

// within is where a program begins.
func (c *confined) within() launch.Group {
	if g := c.by(); g != nil {
		return launch.Group{Version: g.Version, Folder: g.Folder}
	}
	return launch.Group{}
}

// release removes the group.
func (c *confined) release() error {
	if c.by() == nil {
		return nil
	}
	return c.group.Close()
}

// look ends processes that nobody else holds to the limit, and tells of it. What counts is what the kernel could not
// take back. Pages that processes share are counted once: where that decides for a quarter of the time at most, else, for
// the highest that is told, for a twentieth.
func (c *confined) look(s sampler.Watch, now int64) *mem.Event {
	if c == nil || c.group != nil || c.ended {
		return nil
	}
	keeps, most := s.Keeps()
	if keeps <= c.highest {
		return nil
	}
	if len(s.Processes()) > 1 && most <= c.limit {
		wait := c.counting * 20
		if keeps > c.limit {
			wait = c.counting * 3
		}
		if now < c.counted+wait {
			return nil
		}
		keeps = s.KeepsTogether()
		c.counted = system.Monotonic()
		c.counting = c.counted - now
	} else if keeps > c.limit {
		keeps = max(most, c.highest) // what they share is not known; no less than this
	}
	c.highest = max(c.highest, keeps)
	if keeps <= c.limit {
		return nil
	}
	c.ended = true
	for _, p := range s.Processes() {
		_ = system.Kill(p.PID, syscall.SIGKILL)
	}
	return &mem.Event{Time: now, Kind: "kill", Bytes: mem.Some(keeps), Facts: map[string]string{"source": "hightide"},
		Text: fmt.Sprintf("ended by hightide: it held %v that the kernel cannot take back, and --memory allows %v",
			mem.Bytes(keeps), mem.Bytes(c.limit))}
}

// outcome says how it went with the limit.
func (c *confined) outcome(now int64) mem.Event {
	e := mem.Event{Time: now, Kind: mem.EventConfined, Bytes: mem.Some(c.limit), Numbers: map[string]int64{},
		Facts: map[string]string{"by": mem.ByWatching}}
	if c.group == nil {
		e.Facts["why"] = c.why
		e.Numbers["highest"] = c.highest
		return e
	}
	e.Facts["by"] = mem.ByKernel
	if reached, ok := c.group.Reached().Get(); ok {
		e.Numbers["reached"] = reached
	}
	return e
}
