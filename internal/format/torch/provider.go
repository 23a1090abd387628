package torch

// provider gets the memory of rows shortly before they are written, on another core.
type provider struct {
	wanted chan int // rows whose memory is to be there soon
	asked  int      // the last of them
}

const (
	providedRows = 32 << 10
	providedMost = 4 * providedRows // rows ahead of what is written
)

// provide starts a provider for columns with room for many rows, of which n are filled.
func (r *rows) provide() {
	r.provider.end()
	if r.room < 1<<20 {
		return
	}
	wanted := make(chan int, 2*providedMost/providedRows)
	r.provider = provider{wanted: wanted, asked: r.n}
	columns, time := r.Trace, r.Time
	go func(at int) {
		for to := range wanted {
			populate(columns.Action, at, to)
			populate(columns.Address, at, to)
			populate(columns.Size, at, to)
			populate(columns.Stack, at, to)
			populate(time, at, to)
			at = to
		}
	}(r.n)
	r.provider.reach(r.n)
}

// reach asks for the memory of rows after n.
func (p *provider) reach(n int) {
	if p.wanted == nil {
		return
	}
	for p.asked < n+providedMost {
		select {
		case p.wanted <- p.asked + providedRows:
			p.asked += providedRows
		default: // it does not keep up: then pages come as they are written
			return
		}
	}
}

func (p *provider) end() {
	if p.wanted != nil {
		close(p.wanted)
		*p = provider{}
	}
}
