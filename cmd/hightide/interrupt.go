package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"hightide/internal/launch"
)

// interrupted is why a context was cancelled: somebody wants this process to end.
type interrupted syscall.Signal

func (i interrupted) Error() string { return syscall.Signal(i).String() }

// interruptible returns a context that the first signal to end cancels, so that work of several parts
// leaves nothing behind. The second one ends this process, as does the first one after release.
func interruptible(parent context.Context) (ctx context.Context, release, cancel func()) {
	ctx, because := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 1)
	for _, ending := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(ending) { // as under nohup
			signal.Notify(caught, ending)
		}
	}
	go func() {
		select {
		case s := <-caught:
			because(interrupted(s.(syscall.Signal)))
		case <-ctx.Done():
		}
		signal.Stop(caught)
	}()
	return ctx, func() { signal.Stop(caught) }, func() { because(context.Canceled) }
}

// dieOfSignal ends this process by the signal that cancelled the context, as it would have ended had we not caught it.
func dieOfSignal(ctx context.Context) {
	var signal interrupted
	if errors.As(context.Cause(ctx), &signal) {
		launch.Die(syscall.Signal(signal))
	}
}

// isInterrupted says whether Ctrl-C cancelled the context, and no other signal.
func isInterrupted(ctx context.Context) bool {
	var signal interrupted
	return errors.As(context.Cause(ctx), &signal) && syscall.Signal(signal) == syscall.SIGINT
}

// outliveReader has a report that nobody reads fail as other writing does, and not end this process by
// SIGPIPE: it ends as the program ended that it ran.
func outliveReader() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
