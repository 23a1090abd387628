package tune

import (
	"context"

	"hightide/internal/levers"
)

// Find runs the program with plans until the cheapest that reaches the goal is known. What ran before an error is in
// the result, which is then not nil.
func Find(ctx context.Context, o Options, host Host) (*Result, error) {
	s := newSearch(o, host)
	return s.find(ctx, s.begin(ctx))
}

// find goes on where a search has begun, and how that went.
func (s *search) find(ctx context.Context, err error) (*Result, error) {
	if err == nil && !s.spared() {
		s.deeper(ctx)
		s.smallest(ctx)
	}
	if err == nil && s.Host > 0 {
		s.ofHost(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	s.conclude()
	if err != nil {
		return s.result, err
	}
	if s.result.Recommended == nil && s.apart == nil {
		s.result.Notes = append(s.result.Notes, s.roomy.left(s.usable(levers.Hosted))...)
	}
	s.result.Answer = s.result.sentence()
	if s.Patch {
		s.result.asCode(ctx, s.host, s.code)
	}
	return s.result, nil
}
