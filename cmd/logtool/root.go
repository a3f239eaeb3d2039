package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// app is one run of logtool: its input and output, and its global flags.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	now    func() time.Time
	// setMemory bounds the memory of the program; nil does not.
	setMemory func(bytes int64)
	pager     *term.Pager // shows the output; nil without a pager

	args     []string                  // the command line
	traits   map[*cobra.Command]traits // of the commands
	declared []*cobra.Command          // all of them, in the order of the help
	progress *term.Progress            // of the command; nil for none

	store  string        // --store
	json   bool          // --json
	wait   time.Duration // --wait
	mask   bool          // --mask-secrets
	screen *screening    // --secrets; nil for none
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	err := a.execute(ctx, args)
	a.complain(err)
	return exitCode(err)
}

// execute executes one command line.
func (a *app) execute(ctx context.Context, args []string) error {
	a.args = args
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.closePager(root.ExecuteContext(ctx))
}

// complain prints an error, if there is something to print.
func (a *app) complain(err error) {
	if line := explain(err); line != "" {
		a.note("logtool: %s", line)
	}
	var several *severalError
	if errors.As(err, &several) {
		for _, title := range several.titles {
			a.note("  %s", title)
		}
	}
}

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "logtool [COMMAND]",
		Short: "Import, read, check, extend and move logs of AI conversations",
		Long:  rootHelp,
		Args:  unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.version()
			}
			return a.start(cmd.Context())
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkGlobal(cmd); err != nil {
			return err
		}
		a.startProgress(a.traitsOf(cmd).verb)
		return a.page(cmd)
	}
	root.SetFlagErrorFunc(a.flagError)
	root.PersistentFlags().StringVar(&a.store, "store", "", "the `place` of the store; see logtool help store")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one value per line")
	root.PersistentFlags().DurationVar(&a.wait, "wait", 30*time.Second, "wait for a locked store; 0: for ever")
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddCommand(a.commands()...)
	root.SetHelpCommand(a.helpCommand())
	root.InitDefaultHelpCmd()
	a.declareCompletion(root)
	a.setHelp(root)
	return root
}

// checkGlobal rejects global flags that a command would have to ignore.
func (a *app) checkGlobal(cmd *cobra.Command) error {
	switch {
	case a.wait < 0:
		return usagef("--wait is not negative; 0 is for ever")
	case a.json && a.traitsOf(cmd).noJSON:
		return usagef("%s prints no JSON: leave out --json", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "))
	case a.store != "" && argumentAt(a.traitsOf(cmd).args, 1) == storeArg:
		return usagef("%s takes both stores as arguments: leave out --store, as in %s %s OTHER", cmd.Name(), cmd.CommandPath(), shellWord(shown(a.store)))
	}
	return nil
}

// between checks the number of arguments; most < 0 is no limit.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("too few arguments: %s", cmd.UseLine())
		case most >= 0 && len(args) > most:
			return usagef("too many arguments: %s", cmd.UseLine())
		}
		return nil
	}
}

// reading runs f on the log of --store, opened read-only.
func (a *app) reading(f func(*eventlog.Log) error) error { return a.with(forReading, f) }

// writing runs f on the log of --store. A missing store is created.
func (a *app) writing(f func(*eventlog.Log) error) error { return a.with(forWriting, f) }

// changing runs f on the log of --store, which must exist.
func (a *app) changing(f func(*eventlog.Log) error) error { return a.with(forChanging, f) }

func (a *app) with(m mode, f func(*eventlog.Log) error) error {
	at, err := a.place()
	if err != nil {
		return err
	}
	at.mask, at.screen = a.mask, a.screen
	return at.with(m, f)
}

// session runs f on the log of --store and on the id of the session called name.
func (a *app) session(ctx context.Context, m mode, name string, f func(log *eventlog.Log, session string) error) error {
	return a.with(m, func(log *eventlog.Log) error {
		session, err := resolve(ctx, log, name)
		if err != nil {
			return err
		}
		return f(log, session)
	})
}

// finishTime bounds how long a command tries to finish an interrupted erasure.
const finishTime = 3 * time.Second

// with runs f on the log at a place. A command that writes first tries to finish an
// interrupted erasure.
func (at place) with(m mode, f func(*eventlog.Log) error) error {
	return at.progress.Run(func() error { return at.run(m, f) })
}

func (at place) run(m mode, f func(*eventlog.Log) error) error {
	log, err := at.open(m)
	if err != nil {
		return err
	}
	if m != forReading && at.exists() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), finishTime)
		_ = erase.Finish(ctx, log) // a failure does not concern the command; verify reports it
		cancel()
	}
	err = f(log)
	if closing := log.Close(); closing != nil {
		err = errors.Join(err, fmt.Errorf("close %s: %w", at, closing))
	}
	return err
}
