package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/system"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What reading a stranger's file may take: memory is that of a snapshot of 2 GB and some, time that of one on a busy
// machine.
const (
	checkMemory  = 4 << 30
	checkCPU     = 5 * 60 // seconds
	checkPatient = 10 * time.Minute
)

// checkUploadOptions of check-upload.
type checkUploadOptions struct{ memory, cpu uint64 }

// checkUploadCommand reads an upload in a process of its own; hightide ui starts it, nobody types it.
func checkUploadCommand(a *app) *cobra.Command {
	c := a.command(&cobra.Command{
		Use:   "check-upload FILE",
		Short: "Read a file that was uploaded to hightide ui, within limits",
		Long: "Read a file that was uploaded to hightide ui, within limits of memory and time, and print what it is. " +
			"hightide ui runs this.",
		Example: "  hightide check-upload snapshot.pickle",
		Args:    cobra.ExactArgs(1),
	}, &checkUploadOptions{})
	c.Hidden = true
	return c
}

func (o *checkUploadOptions) AddFlags(flags *pflag.FlagSet) {
	flags.Uint64Var(&o.memory, "memory", checkMemory, "`bytes` that it may take")
	flags.Uint64Var(&o.cpu, "cpu", checkCPU, "`seconds` of a processor that it may take")
}

func (o *checkUploadOptions) run(a *app, c *cobra.Command, args []string) error {
	if err := system.Confine(system.Limits{Memory: o.memory, CPU: o.cpu, Files: 64}); err != nil {
		return fail.Environment("", "limit the resources of the reader: %w", err)
	}
	facts, err := a.engine().CheckFile(c.Context(), args[0])
	if err != nil {
		return err
	}
	return json.NewEncoder(a.stdout).Encode(facts)
}

// checkUpload has a process of its own read a file.
func (a *app) checkUpload(ctx context.Context, path string) (*engine.FileFacts, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fail.Environment("", "check the upload: %w", err)
	}
	ctx, done := context.WithTimeout(ctx, checkPatient)
	defer done()
	child := exec.CommandContext(ctx, self, "check-upload", path)
	child.Env = []string{"PATH=/nowhere", "GOMEMLIMIT=" + fmt.Sprint(checkMemory/4*3), "GOTRACEBACK=none"}
	child.SysProcAttr = system.OwnSession() // Ctrl-C is for the server, which then ends this
	var told bytes.Buffer
	complaint := &firstBytes{most: 4 << 10}
	child.Stdout, child.Stderr = &told, complaint
	err = child.Run()
	var facts engine.FileFacts
	switch {
	case ctx.Err() != nil:
		return nil, fail.Input("hightide ui FILE opens it without this limit",
			"reading the file takes more than %v, or was given up", checkPatient)
	case err == nil:
		return &facts, json.Unmarshal(told.Bytes(), &facts)
	}
	return nil, refusal(err, string(complaint.text))
}

// refusal says why a file was not taken: in the child's own line where it ended by itself.
func refusal(err error, said string) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return fail.Environment("", "check the upload: %w", err)
	}
	if line, ok := strings.CutPrefix(said, "hightide: "); ok && ended.ExitCode() == fail.ExitBadInput {
		line, hint, _ := strings.Cut(line, "\n")
		return fail.Input(strings.TrimPrefix(strings.TrimSpace(hint), "hint: "), "%s", line)
	}
	return fail.Input("hightide ui FILE opens it without these limits, if you trust it",
		"the file cannot be read with %d GiB of memory and %d s of a processor", checkMemory>>30, checkCPU)
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	text []byte
	most int
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), b.most-len(b.text))]...)
	return len(p), nil
}
