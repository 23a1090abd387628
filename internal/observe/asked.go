package observe

import (
	"fmt"
	"maps"
	"strings"
	"unicode"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/shm"
)

// What a process asks of its own recording: a name, tags, alerts. The command line's word stands above it.

// named gives the run the name and the tags that it has not.
func (r *Recorder) named(name string, tags map[string]string) {
	name = strings.TrimSpace(strings.Map(printable, name))
	if r.info.Name == "" && name != "last" {
		r.info.Name = name
	}
	all := maps.Clone(r.info.Tags)
	for key, value := range tags {
		if _, given := all[key]; !given && key != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[strings.Map(printable, key)] = strings.Map(printable, value)
		}
	}
	r.info.Tags = all
	r.emit(r.info)
}

func printable(c rune) rune {
	if unicode.IsControl(c) {
		return -1
	}
	return c
}

// asker is the process that an alert is to be told to besides.
type asker struct {
	channel *channel
	id      shm.Alert
}

// askedFor takes in an alert that a process asks for. The answer lies in its channel.
func (r *Recorder) askedFor(p *process, c *channel, m *message) {
	if c.mapping == nil || m.ID >= shm.MaxAlerts {
		return
	}
	a, err := ParseAlert(m.Text)
	if err == nil && a.Series == mem.SeriesHeapLive && r.opts.NoStacks && !r.opts.Tracemalloc {
		err = fmt.Errorf("alert %q needs the heap to be sampled, and --no-stacks switches that off", m.Text)
	}
	c.reader.Answer(shm.Alert(m.ID), err == nil)
	if err != nil {
		r.opts.Events.Tell(event.Alert{Text: err.Error()})
		r.emit(mem.Event{Time: r.now(), Process: p.ID, Kind: "log", Text: mem.MaskText(err.Error())})
		return
	}
	state := newAlertState(a)
	state.asker = asker{c, shm.Alert(m.ID)}
	r.alerts = append(r.alerts, state)
}

// answer lets the process that asked know.
func (a asker) answer(value int64) {
	if a.channel != nil && a.channel.mapping != nil {
		a.channel.reader.Sound(a.id, value)
	}
}
