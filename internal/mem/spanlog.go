package mem

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// SpanLog keeps the spans of a run in about 20 bytes each, where a Span takes 144: an hour of eight ranks has
// 700,000. It is only ever appended to.
type SpanLog struct {
	pieces []*spanPiece // each of pieceSpans
	newest []Span       // not packed yet
	names  []spanName
	places map[spanName]int64 // of names; nil: not made yet
}

// spanName is what many spans have in common.
type spanName struct {
	phase Phase
	name  string
}

const (
	pieceSpans = 512
	spanFields = 12
)

// spanPiece is a stretch of spans in rows. A field takes as many bytes as its values differ within the piece, none if
// they do not.
type spanPiece struct {
	rows        []byte
	width       int // of a row
	at          [spanFields]int
	mask        [spanFields]uint64 // of the field in the 8 bytes from there
	base        [spanFields]int64  // what to add to it
	first, last int64              // the earliest start and the latest end
	user        bool               // some of them were named by the program
}

// Len is how many there are.
func (l *SpanLog) Len() int { return len(l.pieces)*pieceSpans + len(l.newest) }

// Append adds spans.
func (l *SpanLog) Append(spans ...Span) {
	for len(spans) > 0 {
		n := min(len(spans), pieceSpans-len(l.newest))
		l.newest = append(l.newest, spans[:n]...)
		if spans = spans[n:]; len(l.newest) == pieceSpans {
			l.pieces = append(l.pieces, l.pack(l.newest))
			l.newest = l.newest[:0]
		}
	}
}

// All are the spans in the order in which they came. Each stands in the same place: copy what is to be kept.
func (l *SpanLog) All() iter.Seq[*Span] {
	return l.in(func(*spanPiece) bool { return true }, func(*Span) bool { return true })
}

// User are those that the program named.
func (l *SpanLog) User() iter.Seq[*Span] {
	return l.in(func(p *spanPiece) bool { return p.user }, func(s *Span) bool { return s.Phase == PhaseUser })
}

// Around are those within which a moment lies.
func (l *SpanLog) Around(at int64) iter.Seq[*Span] {
	return l.in(func(p *spanPiece) bool { return p.first <= at && at <= p.last },
		func(s *Span) bool { return s.Start <= at && at <= s.End })
}

// in are the spans that are wanted, of pieces in which there may be some.
func (l *SpanLog) in(piece func(*spanPiece) bool, wanted func(*Span) bool) iter.Seq[*Span] {
	return func(yield func(*Span) bool) {
		var s Span
		for _, p := range l.pieces {
			if !piece(p) {
				continue
			}
			for i := range pieceSpans {
				p.unpack(p.rows[i*p.width:], &s, l.names)
				if wanted(&s) && !yield(&s) {
					return
				}
			}
		}
		for i := range l.newest {
			if s = l.newest[i]; wanted(&s) && !yield(&s) {
				return
			}
		}
	}
}

// Chunks are all of them, so many at a time.
func (l *SpanLog) Chunks(n int) iter.Seq[Spans] {
	return func(yield func(Spans) bool) {
		var some Spans
		for s := range l.All() {
			if some = append(some, *s); len(some) < n {
				continue
			}
			if !yield(some) {
				return
			}
			some = nil
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

func (l *SpanLog) view() SpanLog {
	return SpanLog{pieces: slices.Clip(l.pieces), newest: slices.Clone(l.newest), names: slices.Clip(l.names)}
}

// place is the number of a name.
func (l *SpanLog) place(name spanName) int64 {
	if l.places == nil {
		l.places = map[spanName]int64{}
		for i, known := range l.names {
			l.places[known] = int64(i)
		}
	}
	at, ok := l.places[name]
	if !ok {
		at = int64(len(l.names))
		l.places[name] = at
		l.names = append(l.names, name)
	}
	return at
}

// optionals are the fields of a span that may be absent.
func (s *Span) optionals() [5]*Optional {
	return [...]*Optional{&s.RSSStart, &s.RSSEnd, &s.RSSPeak, &s.DeviceStart, &s.DeviceEnd}
}

// fields of a span as numbers; bits of known say which of them are there.
func (l *SpanLog) fields(s *Span) (values [spanFields]int64, known uint64) {
	values = [spanFields]int64{int64(s.Process), int64(s.Thread), l.place(spanName{s.Phase, s.Name}), int64(s.Step),
		s.Start, s.End - s.Start}
	known = 1<<7 - 1
	for i, f := range s.optionals() {
		if value, ok := f.Get(); ok {
			values[7+i] = value
			known |= 1 << (7 + i)
		}
	}
	values[6] = int64(known >> 7)
	return values, known
}

// rowSlack lets the last field of the last row be read as 8 bytes.
const rowSlack = 8

func (l *SpanLog) pack(spans []Span) *spanPiece {
	p := &spanPiece{first: math.MaxInt64, last: math.MinInt64}
	var high [spanFields]int64
	var seen uint64
	for i := range spans {
		s := &spans[i]
		p.first, p.last, p.user = min(p.first, s.Start), max(p.last, s.End), p.user || s.Phase == PhaseUser
		values, known := l.fields(s)
		for f, v := range values {
			switch bit := uint64(1) << f; {
			case known&bit == 0:
			case seen&bit == 0:
				p.base[f], high[f] = v, v
			default:
				p.base[f], high[f] = min(p.base[f], v), max(high[f], v)
			}
		}
		seen |= known
	}
	for f := range high {
		bytes := (bits.Len64(uint64(high[f]-p.base[f])) + 7) / 8
		p.at[f], p.mask[f] = p.width, 1<<(8*bytes)-1
		p.width += bytes
	}
	p.rows = make([]byte, len(spans)*p.width+rowSlack)
	for i := range spans {
		values, known := l.fields(&spans[i])
		row := p.rows[i*p.width:]
		for f, v := range values {
			if known&(1<<f) != 0 {
				at := row[p.at[f]:]
				binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)|uint64(v-p.base[f]))
			}
		}
	}
	return p
}

func (p *spanPiece) unpack(row []byte, s *Span, names []spanName) {
	field := func(f int) int64 {
		return int64(binary.LittleEndian.Uint64(row[p.at[f]:])&p.mask[f]) + p.base[f]
	}
	s.Process, s.Thread = uint32(field(0)), uint32(field(1))
	name := &names[field(2)]
	s.Phase, s.Name = name.phase, name.name
	s.Step, s.Start = uint64(field(3)), field(4)
	s.End = s.Start + field(5)
	known := field(6)
	s.RSSStart, s.RSSEnd, s.RSSPeak, s.DeviceStart, s.DeviceEnd = Optional{}, Optional{}, Optional{}, Optional{},
		Optional{}
	for i, f := range s.optionals() {
		if known&(1<<i) != 0 {
			*f = Some(field(7 + i))
		}
	}
}
