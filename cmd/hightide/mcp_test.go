package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/testkit"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const onImaginaryGPU = `import sys
print("this is not a message of the protocol")
import torch
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    model(torch.zeros(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
`

const neverEnds = `import os, time
with open("pid.part", "w") as f:
    f.write(str(os.getpid()))
os.rename("pid.part", "pid")
while True:
    time.sleep(0.05)
`

// TestAssistantOverStdio: the program itself as an assistant starts it. What a command prints does not disturb the
// protocol, progress is told, a call that is given up ends its program, and the end of the input ends the server.
func TestAssistantOverStdio(t *testing.T) {
	python := testkit.TorchPath(t)
	if python == "" || !engine.CanImagine() {
		t.Skip("no PyTorch, or a build without the imaginary GPU: scripts/setup torch, make device")
	}
	s := newSession(t)
	write(t, s.dir, "train.py", onImaginaryGPU)
	write(t, s.dir, "endless.py", neverEnds)
	told := make(chan string, 1000)
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context,
			n *sdk.ProgressNotificationClientRequest) {
			told <- n.Params.Message
		},
	})
	server := s.command("mcp", "--allow-exec")
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	imagine := func(ctx context.Context, script string) (*sdk.CallToolResult, error) {
		call := &sdk.CallToolParams{Name: "imagine", Arguments: map[string]any{"command": []string{python, script},
			"gpu": "a10"}}
		call.Meta = sdk.Meta{"progressToken": script}
		return session.CallTool(ctx, call)
	}
	result, err := imagine(t.Context(), "train.py")
	if err != nil || result.IsError {
		t.Fatalf("error %v, said %+v", err, result)
	}
	answer := result.StructuredContent.(map[string]any)
	if answer["verdict"] != "fits" || answer["gpu"] != "a10" || answer["peak_allocated_bytes"].(float64) < 4<<20 {
		t.Errorf("verdict %v on %v with %v bytes", answer["verdict"], answer["gpu"], answer["peak_allocated_bytes"])
	}
	if len(told) == 0 {
		t.Error("no progress was told")
	}
	checkReported(t, session, answer["run"].(string))

	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := imagine(ctx, "endless.py"); ended <- err }()
	waitFor(t, func() bool { _, err := os.Stat(s.dir + "/pid"); return err == nil })
	giveUp()
	if err := <-ended; err == nil {
		t.Error("a call that was given up has an answer")
	}
	pid, err := strconv.Atoi(readFile(t, s.dir+"/pid"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	checkReported(t, session, answer["run"].(string))
	if err := session.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func checkReported(t *testing.T, session *sdk.ClientSession, run string) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "report",
		Arguments: map[string]any{"run": run}})
	if err != nil || result.IsError {
		t.Fatalf("report of %s: error %v, said %+v", run, err, result)
	}
}

// TestAssistantThatGoes: an assistant that ends in the middle of a call takes the server and its program along.
func TestAssistantThatGoes(t *testing.T) {
	python := testkit.TorchPath(t)
	if python == "" || !engine.CanImagine() {
		t.Skip("no PyTorch, or a build without the imaginary GPU: scripts/setup torch, make device")
	}
	s := newSession(t)
	write(t, s.dir, "endless.py", neverEnds)
	c := s.command("mcp", "--allow-exec")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"imagine","arguments":{"command":[%q,"endless.py"],"gpu":"a10"}}}
`, python)
	waitFor(t, func() bool { _, err := os.Stat(s.dir + "/pid"); return err == nil })
	pid, err := strconv.Atoi(readFile(t, s.dir+"/pid"))
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	waitFor(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

// TestAssistantThatMakesNoSense: what is not a message ends the server with one line, and nothing is on stdout but
// messages.
func TestAssistantThatMakesNoSense(t *testing.T) {
	c := newSession(t).command("mcp")
	c.Stdin = strings.NewReader("this is not JSON\n")
	var out, said strings.Builder
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	if lines := strings.Count(said.String(), "\n"); err == nil || lines > 2 || !strings.HasPrefix(said.String(), "hightide: ") {
		t.Errorf("%v, said %q", err, said.String())
	}
	if out.Len() > 0 && !strings.HasPrefix(out.String(), "{") {
		t.Errorf("on stdout: %q", out.String())
	}
}
