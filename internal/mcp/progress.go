package mcp

import (
	"context"
	"fmt"
	"time"

	"hightide/internal/event"
	"hightide/internal/fit"
	"hightide/internal/mem"
	"hightide/internal/observe"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progress tells the assistant of events, where it asked to be told. The protocol wants numbers that grow: they count
// what was told. What a use case does not wait for is not told, so a slow assistant holds up nothing for long.
func progress(ctx context.Context, request *sdk.CallToolRequest) event.Sink {
	token := request.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	told, next := 0.0, int64(0)
	return func(e event.Event) {
		said := sentence(e, &next)
		if said == "" {
			return
		}
		told++
		// An assistant that no longer listens ends the call, which ends the context: nothing else is to be done.
		_ = request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: told,
			Message: said})
	}
}

// sentence is an event in words; "" for one that is not worth any. Of a running program there is one every few seconds.
func sentence(e event.Event, next *int64) string {
	switch e := e.(type) {
	case fit.Ready:
		return "started " + e.Model
	case fit.Trial:
		if !e.OK {
			return fmt.Sprintf("batch %d does not fit", e.Batch)
		}
		return fmt.Sprintf("batch %d fits", e.Batch)
	case observe.Status:
		if e.Elapsed < *next {
			return ""
		}
		*next = e.Elapsed + int64(2*time.Second)
		line := fmt.Sprintf("%v, %d steps", time.Duration(e.Elapsed).Round(time.Second), e.Steps)
		if used, ok := e.Device.Get(); ok {
			line += fmt.Sprintf(", %v on the device", mem.Bytes(used))
		}
		return line
	case event.Progress:
		return fmt.Sprintf("%d of %d %s", e.Done, e.All, e.Text)
	case event.Alert:
		return e.Text
	case event.Reporting:
		return "making the report"
	}
	return ""
}
