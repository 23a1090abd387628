package mem

import (
	"encoding/binary"
	"iter"
	"slices"
)

// SpanLog keeps the spans of a run in about 20 bytes each, where a Span takes 144: an hour of eight ranks has 700,000. Each is
// written as differences from the one before it, so they are read in order, by All. It is only ever appended to.
type SpanLog struct {
	pieces [][]byte // each begins anew, so that none has to be moved when there are more
	names  []spanName
	places map[spanName]uint64 // of names; nil: not made yet
	last   Span                // of the newest piece
	count  int
}

// spanName is what many spans have in common.
type spanName struct {
	phase Phase
	name  string
}

// spanPiece is where a piece is full, in bytes.
const spanPiece = 64 << 10

// Len is how many there are.
func (l *SpanLog) Len() int { return l.count }

// Append adds spans.
func (l *SpanLog) Append(spans ...Span) {
	for i := range spans {
		if n := len(l.pieces); n == 0 || len(l.pieces[n-1]) >= spanPiece {
			l.pieces, l.last = append(l.pieces, nil), Span{}
		}
		s := &spans[i]
		piece := &l.pieces[len(l.pieces)-1]
		*piece = appendSpan(*piece, s, &l.last, l.place(spanName{s.Phase, s.Name}))
		l.last = *s
	}
	l.count += len(spans)
}

// place is the number of a name.
func (l *SpanLog) place(name spanName) uint64 {
	if l.places == nil {
		l.places = map[spanName]uint64{}
		for i, known := range l.names {
			l.places[known] = uint64(i)
		}
	}
	at, ok := l.places[name]
	if !ok {
		at = uint64(len(l.names))
		l.places[name] = at
		l.names = append(l.names, name)
	}
	return at
}

// All are the spans in the order in which they came.
func (l *SpanLog) All() iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for _, piece := range l.pieces {
			var s Span
			for at := spanReader(piece); len(at) > 0; {
				at.next(&s, l.names)
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Chunks are the same, so many at a time.
func (l *SpanLog) Chunks(n int) iter.Seq[Spans] {
	return func(yield func(Spans) bool) {
		var some Spans
		for s := range l.All() {
			if some = append(some, s); len(some) < n {
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
	v := SpanLog{pieces: slices.Clone(l.pieces), names: slices.Clip(l.names), last: l.last, count: l.count}
	for i := range v.pieces {
		v.pieces[i] = slices.Clip(v.pieces[i])
	}
	return v
}

// optionals are the fields of a span that may be absent.
func (s *Span) optionals() [5]*Optional {
	return [...]*Optional{&s.RSSStart, &s.RSSEnd, &s.RSSPeak, &s.DeviceStart, &s.DeviceEnd}
}

func appendSpan(dst []byte, s, last *Span, name uint64) []byte {
	dst = binary.AppendVarint(dst, int64(s.Process)-int64(last.Process))
	dst = binary.AppendVarint(dst, int64(s.Thread)-int64(last.Thread))
	dst = binary.AppendUvarint(dst, name)
	dst = binary.AppendVarint(dst, int64(s.Step-last.Step))
	dst = binary.AppendVarint(dst, s.Start-last.Start)
	dst = binary.AppendVarint(dst, s.End-s.Start)
	known := byte(0)
	fields := s.optionals()
	for i, f := range fields {
		if f.Known() {
			known |= 1 << i
		}
	}
	dst = append(dst, known)
	before := last.optionals()
	for i, f := range fields {
		if value, ok := f.Get(); ok {
			dst = binary.AppendVarint(dst, value-before[i].Or(0))
		}
	}
	return dst
}

// spanReader is what is left of a piece.
type spanReader []byte

// next turns a span into the one behind it.
func (r *spanReader) next(s *Span, names []spanName) {
	s.Process = uint32(int64(s.Process) + r.int())
	s.Thread = uint32(int64(s.Thread) + r.int())
	name := names[r.uint()]
	s.Phase, s.Name = name.phase, name.name
	s.Step += uint64(r.int())
	s.Start += r.int()
	s.End = s.Start + r.int()
	known := (*r)[0]
	*r = (*r)[1:]
	for i, f := range s.optionals() {
		if known&(1<<i) == 0 {
			*f = Optional{}
			continue
		}
		*f = Some(f.Or(0) + r.int())
	}
}

func (r *spanReader) uint() uint64 {
	value, n := binary.Uvarint(*r)
	*r = (*r)[n:]
	return value
}

func (r *spanReader) int() int64 {
	value, n := binary.Varint(*r)
	*r = (*r)[n:]
	return value
}
