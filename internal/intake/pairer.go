package intake

import "hightide/internal/mem"

// pairer pairs the events of a large file on another core while the rest of it is decoded.
type pairer struct {
	pairs  mem.Pairs
	filled chan rows     // as far as they are
	ended  chan struct{} // the pairs are nobody else's any more
	asked  int           // rows handed over
}

const pairedRows = 16 << 10

// reach hands over the rows so far, once they are worth it.
func (p *pairer) reach(r *rows) {
	if r.n < p.asked+pairedRows {
		return
	}
	if p.filled == nil {
		p.filled, p.ended = make(chan rows, 1), make(chan struct{})
		go p.follow()
	}
	select {
	case p.filled <- rows{Trace: mem.Trace{Action: r.Action[:r.n], Address: r.Address[:r.n]}, room: r.room}:
		p.asked = r.n
	default: // it has enough to do
	}
}

func (p *pairer) follow() {
	for r := range p.filled {
		p.pairs.Extend(r.Action, r.Address, r.room)
	}
	close(p.ended)
}

func (p *pairer) end() {
	if p.filled != nil {
		close(p.filled)
		<-p.ended
		p.filled = nil
	}
}
