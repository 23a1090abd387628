// Package mcp is the front door for coding assistants: hightide's use cases as tools of the Model Context Protocol.
//
//	assistant ──▶ a tool (the list below, one file each) ──▶ engine ──▶ typed answer, and the text that a person reads
//	          ──▶ a resource (resources.go): the report of a run
//
// It has no logic of its own: a tool translates its input, calls one method of the engine and translates the result. To
// add a tool: a file with a value of type tool, and a line in tools. Read answer.go next, which all of them go through.
package mcp

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hightide/internal/engine"
)

// tools lists what an assistant can ask, in the order in which it is told.
var tools = []func(*sdk.Server, *door){
	list.add,
	showReport.add,
	showCurves.add,
	explain.add,
	diff.add,
	replayTrace.add,
	check.add,
	showTrend.add,
	pullComment.add,
	imagineRun.add,
	fitBatch.add,
	tuneRun.add,
	planModel.add,
	listGPUs.add,
}

// instructions tell an assistant when to ask.
const instructions = `hightide tells how much memory a machine-learning job takes, who holds it, and what to change.
Sizes are integers in bytes, times in nanoseconds; an absent field was not observed. "label" says how a figure was obtained:
measured, imagined, replayed or estimated. A run is named by its id, a unique beginning of it, its name, or "last".
Which GPU is large enough, or why it ran out of memory: explain a snapshot, imagine a command, or fit a batch.`

// New is a server with all tools. The engine's streams must not be those of the protocol.
func New(e *engine.Engine, o Options) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "hightide", Title: "hightide", Version: engine.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}})
	own := *e
	own.NoPrograms = !o.AllowExec
	d := &door{Options: o, engine: &own, inputs: map[string]parameters{}}
	own.MayRead = d.inPlaces
	for _, add := range tools {
		add(server, d)
	}
	server.AddReceivingMiddleware(d.checkNames)
	d.addResources(server)
	return server
}

// Serve answers one assistant, a message a line, until its input ends or the context does. Calls that still run are
// then cancelled.
func Serve(ctx context.Context, e *engine.Engine, o Options, in io.ReadCloser, out io.WriteCloser) error {
	return New(e, o).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
}
