package tui

import (
	"maps"
	"slices"
	"time"

	"hightide/internal/live"
	"hightide/internal/store"

	tea "charm.land/bubbletea/v2"
)

// update takes in a message and says what is to be asked for. It reads no clock and asks nobody: times are in the
// messages.
func update(s *State, message any) []ask {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		s.Width, s.Height = m.Width, m.Height
	case tea.KeyPressMsg:
		return s.key(m.String(), m.Text)
	case tea.MouseClickMsg:
		return s.clicked(m.Mouse())
	case tea.MouseWheelMsg:
		return s.wheeled(m.Mouse())
	case tea.PasteMsg:
		if s.Typing {
			s.Filter += m.Content
		}
	case Looked:
		return s.looked(m)
	case Listed:
		return s.listed(m)
	case Followed:
		return s.followed(m)
	case Reported:
		s.reported(m)
	case Environ:
		s.environ(m)
	case Detailed:
		s.detailed(m)
	case Sent:
		s.Message = sentText(m)
	case Explained:
		return s.Heap.explained(m)
	case Quoted:
		s.Heap.quoted(m)
	case Began:
		s.Started = m.ID
		return s.follow(m.ID)
	case Said:
		s.Message = m.Text
	case Wrote:
		s.Output.write(m.Text)
	case Stopping:
		return []ask{askAway{m}}
	case stopWanted:
		return []ask{askStopSelf{}}
	case continued:
		return []ask{askTerminal{}}
	}
	return nil
}

// looked takes in a picture of the machine.
func (s *State) looked(m Looked) []ask {
	s.Now = m.Now
	maps.Copy(s.Users, m.Users)
	if s.Paused {
		return nil
	}
	s.Machine = m.Picture
	if used, ok := usedMemory(&m.Picture).Get(); ok {
		s.Memory.Add(m.Picture.Time, used)
	}
	if busy, ok := m.Picture.Busy.Get(); ok {
		s.Busy.Add(m.Picture.Time, busy)
	}
	for i := range m.Picture.GPUs {
		card := &m.Picture.GPUs[i]
		if s.Cards[card.Index] == nil {
			s.Cards[card.Index] = &live.Curve{}
		}
		if used, ok := card.Used.Get(); ok {
			s.Cards[card.Index].Add(m.Picture.Time, used)
		}
	}
	alive := map[procKey]bool{}
	for i := range m.Picture.Processes {
		p := &m.Picture.Processes[i]
		key := procKey{p.PID, p.StartTicks}
		alive[key] = true
		if s.History[key] == nil {
			s.History[key] = &live.Curve{}
		}
		s.History[key].Add(m.Picture.Time, p.RSS)
	}
	for key := range s.History {
		if !alive[key] {
			delete(s.History, key)
		}
	}
	return append(s.watchProcess(), s.refresh()...)
}

// listed takes in the runs, and has those followed that run or are shown.
func (s *State) listed(m Listed) (asks []ask) {
	s.Listed = true
	if s.RunsErr = ""; m.Err != nil {
		s.RunsErr = m.Err.Error()
		return nil
	}
	s.Runs = m.Runs
	there := map[string]bool{s.Started: true}
	for i := range s.Runs {
		r := &s.Runs[i]
		there[r.ID] = true
		if r.State == store.Running {
			asks = append(asks, s.follow(r.ID)...)
		}
	}
	for id := range s.Live {
		if !there[id] {
			s.forget(id)
		}
	}
	if r, view := s.shownRun(); r != nil && view == nil {
		asks = append(asks, s.follow(r.ID)...)
	}
	return asks
}

// follow asks for the frames of a run, once.
func (s *State) follow(id string) []ask {
	if s.Live[id] != nil || s.Follows[id] || s.Gone[id] || id == "" {
		return nil
	}
	s.Live[id], s.Follows[id] = live.New(), true
	return []ask{askFollow{id}}
}

// forget drops a run that is no more.
func (s *State) forget(id string) {
	if r, _ := s.shownRun(); s.Run == id || r != nil && r.ID == id {
		s.Message = "run " + id + " was removed"
	}
	delete(s.Live, id)
	delete(s.Reports, id)
	s.Gone[id] = true
	s.Runs = slices.DeleteFunc(s.Runs, func(r store.Run) bool { return r.ID == id })
	if s.Run == id {
		s.Run = ""
	}
}

func (s *State) followed(m Followed) []ask {
	if m.Gone {
		s.forget(m.ID)
	}
	run := s.Live[m.ID]
	if m.Done {
		delete(s.Follows, m.ID)
	}
	if run == nil {
		return nil
	}
	for _, frame := range m.Frames {
		run.Add(frame)
	}
	run.Damage = append(run.Damage, m.Damage...)
	if m.Err != nil && !m.Gone {
		s.Message = "run " + m.ID + ": " + m.Err.Error()
	}
	return s.refresh()
}

// reportEvery is how old a report of a run that goes on may be. One that takes long is made less often, so that all
// take 1 % of a core.
const reportEvery = 10 * time.Second

// refresh asks for what the tab in front shows and is not there, or too old.
func (s *State) refresh() []ask {
	switch s.tab().title {
	case "Analysis":
		return s.refreshReport()
	case "Heap":
		return s.refreshHeap()
	}
	return nil
}

func (s *State) refreshReport() []ask {
	r, view := s.shownRun()
	if r == nil {
		return nil
	}
	a := s.Reports[r.ID]
	if a == nil {
		a = &analysis{}
		s.Reports[r.ID] = a
	}
	finished := view != nil && view.End != nil
	switch {
	case !a.asked.IsZero():
		return nil
	case a.report == nil && a.err == "":
	case finished && a.report != nil && a.report.Headline.Complete:
		return nil
	case s.Now.Sub(a.made) < max(reportEvery, 100*a.took):
		return nil
	}
	a.asked = s.Now.Add(1) // never zero
	return []ask{askReport{r.ID}}
}

func (s *State) reported(m Reported) {
	a := s.Reports[m.ID]
	if a == nil {
		return
	}
	a.asked, a.made, a.took, a.err = time.Time{}, m.Now, m.Took, ""
	if m.Err != nil {
		a.err = m.Err.Error()
		return
	}
	a.report = m.Report
}

func (s *State) environ(m Environ) {
	if s.Env.pid != m.PID {
		return
	}
	s.Env.ready, s.Env.values = true, m.Values
	if m.Err != nil {
		s.Env.err = m.Err.Error()
	}
}
