// Command hightide tells how much memory a machine-learning job takes.
//
//	main.go: the table of commands, the exit codes ──▶ one file per command: options that add their
//	flags, one engine call, print ──▶ internal/engine
//
// flags.go and output.go have what commands share. To add a command: a file with a
// func(*app) *cobra.Command, and a line in commands below.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/words"
)

// commands lists every command in the order that help shows them.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		runCommand(a),
		attachCommand(a),
		monitorCommand(a),
		trackCommand(a),
		fitCommand(a),
		imagineCommand(a),
		tuneCommand(a),
		planCommand(a),
		benchCommand(a),
		benchTrialCommand(a),
		explainCommand(a),
		analyzeCommand(a),
		replayCommand(a),
		diffCommand(a),
		checkCommand(a),
		showCommand(a),
		reportCommand(a),
		aboutCommand(a),
		uiCommand(a),
		checkUploadCommand(a),
		exportCommand(a),
		topCommand(a),
		lsCommand(a),
		trendCommand(a),
		tagCommand(a),
		pushCommand(a),
		loginCommand(a),
		allowCommand(a),
		serveCommand(a),
		accountCommand(a),
		keyCommand(a),
		auditCommand(a),
		shareCommand(a),
		personCommand(a),
		commentCommand(a),
		watchCommand(a),
		fleetCommand(a),
		rmCommand(a),
		pruneCommand(a),
		reindexCommand(a),
		mcpCommand(a),
		gpusCommand(a),
		infoCommand(a),
		diagnoseCommand(a),
		versionCommand(a),
		manCommand(a),
	}
}

func main() {
	a := &app{stdin: os.Stdin, stdout: &printed{file: os.Stdout}, stderr: os.Stderr, runtime: launch.Runtime{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, PassSignals: true, Cores: runtime.GOMAXPROCS(0),
		Tune: newTuning().tune,
	}}
	os.Exit(a.exitCode(a.run(os.Args[1:])))
}

// run executes one command line.
func (a *app) run(args []string) error {
	root := a.root()
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsages(root)
	}
	root.SetArgs(args)
	return root.ExecuteContext(context.Background())
}

// exitCode is the one place where an error becomes a message and an exit code.
func (a *app) exitCode(err error) int {
	var status exitStatus
	result := err == nil || errors.As(err, &status)
	if out, ok := a.stdout.(*printed); ok && out.failed != nil && (result || errors.Is(err, out.failed)) {
		err, result = out.error(), false // half a result is none
	}
	if result {
		return int(status)
	}
	fmt.Fprintf(a.stderr, "hightide: %s\n", harmless(err.Error()))
	if hint := fail.Hint(err); hint != "" {
		fmt.Fprintf(a.stderr, "  hint: %s\n", harmless(hint))
	}
	return fail.Code(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hightide",
		Short: "How much memory a machine-learning job takes, who holds it, and what to change",
		Long: `hightide tells how much memory a machine-learning job takes, who holds it, and what to change.

  hightide run -- python train.py                  record a training, then report
  hightide attach 4711                             record one that already runs
  hightide show last                               the report again
  hightide top                                     watch runs, processes and GPUs
  hightide imagine --gpu all -- python train.py    would it fit, on GPUs that are not there
  hightide fit --gpu a10 --model bert              the largest batch that fits
  hightide plan ./Llama-3.1-8B --users 20          which GPU serves or trains it, from its files
  hightide bench matrix.yaml                       measure every combination, compare
  hightide explain snapshot.pickle                 who holds a GPU's memory, and what to change
  hightide replay snapshot.pickle --search         the allocator setting that would have served best

Exit codes: 0 fine, 1 the answer is no: it does not fit (imagine, fit), is over budget (check), runs out
of memory or differs (replay), failed or is worse (bench); 2 wrong usage; 3 bad input; 4 the environment
lacks something, or the output cannot be written; 5 the imagined program failed by itself; 6 imagine: it
fits only if a value that was assumed is right; 125 hightide itself failed. run ends with the exit code
of the command it ran.`,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,

		PersistentPreRunE: applyDefaults,
		Args:              noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if version, _ := c.Flags().GetBool("version"); version {
				_, err := fmt.Fprintln(a.stdout, versionLine())
				return err
			}
			return c.Help()
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.PersistentFlags().StringVar(&a.dataDir, "data-dir", "",
		"folder of the recordings (default $HIGHTIDE_DATA, else ~/.local/share/hightide)")
	root.PersistentFlags().StringVar(&a.store, "store", "",
		"keep recordings in a team's PostgreSQL instead, as postgres://USER@HOST/DATABASE (default $HIGHTIDE_STORE)")
	root.PersistentFlags().StringVar(&a.objects, "objects", "",
		"with --store: where their files are, as s3://BUCKET, azblob://CONTAINER or file:///FOLDER (default $HIGHTIDE_OBJECTS)")
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolP("version", "v", false, "version for hightide")
	root.SetHelpCommand(helpCommand())
	root.SetUsageFunc(usage(root.UsageFunc()))
	cobra.EnableCommandSorting = false // the table's order is the one people need
	root.AddCommand(commands(a)...)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		c.Args = usageArgs(c.Args)
		a.completeArguments(c)
		if c.HasSubCommands() { // completion SHELL
			c.RunE, c.Args = choose, nil
		}
	}
	return root
}

// usage is cobra's own, with flags of fileFlag as they are typed. No template says so: who executes one brings every
// exported method of every type into the program, 5 MB of them.
func usage(own func(*cobra.Command) error) func(*cobra.Command) error {
	return func(c *cobra.Command) error {
		var text bytes.Buffer
		out := c.OutOrStderr()
		c.SetOut(&text)
		err := own(c)
		c.SetOut(out)
		_, failed := io.WriteString(out, optionalFile(text.String()))
		return errors.Join(err, failed)
	}
}

// optionalFile shows flags of fileFlag as they are typed, --json[=FILE]; pflag writes --json FILE[="-"].
func optionalFile(flags string) string {
	pflags := fmt.Sprintf(" FILE[=%q]", toStdout)
	typed := "[=FILE]"
	return strings.ReplaceAll(flags, pflags, typed+strings.Repeat(" ", len(pflags)-len(typed)))
}

// helpCommand shows a command's help, and knows which commands there are.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || about == c.Root() && len(rest) > 0 {
				return noSuchCommand(c.Root(), args)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// choose helps with a command that is nothing without one of its own.
func choose(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return fail.Choice(c.Name(), args[0], names)
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "hightide --help lists the commands"
	if near := nearCommand(c, args[0]); near != "" {
		hint = "did you mean " + near + "? To run a program: hightide run -- " + args[0]
	}
	return fail.Usage(hint, "unknown command %q", args[0])
}

// nearCommand is the command that an unknown one most likely meant: one that begins with it, or is spelt much like
// it; "" for none.
func nearCommand(c *cobra.Command, word string) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), strings.ToLower(word)) {
			return sub.Name()
		}
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return words.Near(strings.ToLower(word), names)
}
