package server

import (
	"context"
	"errors"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/mem"
)

// TestWaitingForAReportEndsWithTheRequest: who has gone does not wait for the report that another has made.
func TestWaitingForAReportEndsWithTheRequest(t *testing.T) {
	h := &hub{reporting: make(chan struct{}, 1), run: mem.NewRun()}
	h.reporting <- struct{}{} // another's is being made
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := h.report(ctx, &engine.Engine{})
		left <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	<-h.reporting
	if _, _, err := h.report(ctx, &engine.Engine{}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that nobody waits for was made: %v", err)
	}
	if _, _, err := h.report(t.Context(), &engine.Engine{}); err != nil {
		t.Errorf("the next: %v", err)
	}
}
