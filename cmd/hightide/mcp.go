package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mcp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mcpOptions of mcp.
type mcpOptions struct {
	mcp.Options
}

func mcpCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "mcp [--allow-exec] [--folder DIR...]",
		Short: "Answer a coding assistant: hightide as tools of the Model Context Protocol",
		Long: `Answer a coding assistant on stdin and stdout: hightide as tools of the Model Context Protocol.

The assistant starts this command itself; hightide about mcp has the lines for its configuration. Its tools
are list, report, curves, explain, diff, replay, check, trend, comment, imagine, fit, tune, plan and gpus.

Tools read runs, and files that the assistant names in the folder in which it started this command, in
that of the recordings, and in those of --folder. Without --allow-exec none runs a command, so
imagine is refused, and fit takes only models that hightide builds itself. With it the assistant runs
commands with your rights.

Exit codes: 0 the assistant is done, 2 wrong usage, 3 what came on stdin is not a message.`,
		Example: `  hightide mcp
  hightide mcp --folder /scratch/snapshots
  hightide mcp --allow-exec
  claude mcp add hightide -- hightide mcp`,
		Args: cobra.NoArgs,
	}, &mcpOptions{})
}

func (o *mcpOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.Folders, "folder", nil, "files in this `folder` may be read too; may be given several times")
	flags.BoolVar(&o.AllowExec, "allow-exec", false, "let the assistant run commands, on imaginary GPUs or for fit")
}

func (o *mcpOptions) run(a *app, c *cobra.Command, _ []string) error {
	if a.canAsk() {
		fmt.Fprintln(a.stderr,
			"hightide: waiting for an assistant on stdin, which starts this command itself; Ctrl-C ends it (hightide about mcp)")
	}
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	o.Env = os.Environ()
	// stdout belongs to the protocol: what programs print goes to stderr, which assistants keep as a log.
	e := &engine.Engine{DataDir: a.dataDir, Runtime: launch.Runtime{Stdout: os.Stderr, Stderr: os.Stderr, Own: true,
		Cores: runtime.GOMAXPROCS(0)}}
	err := mcp.Serve(ctx, e, o.Options, io.NopCloser(a.stdin), unclosed{a.stdout})
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fail.Input("an assistant starts this command: hightide about mcp has the lines for its configuration",
		"what came on stdin is not a message of the protocol: %w", err)
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
