package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

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
	setMemory func(sessions int)
	pager     *pager // shows the output; nil without a pager

	progress *progress // of the command; nil for none

	store  string        // --store
	json   bool          // --json
	wait   time.Duration // --wait
	mask   bool          // --mask-secrets
	screen *screening    // --secrets; nil for none
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := a.closePager(root.ExecuteContext(ctx))
	a.complain(err)
	return exitCode(err)
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
	root := &cobra.Command{
		Use:           "logtool",
		Short:         "Import, read, check, extend and move logs of AI conversations",
		Long:          rootHelp,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkGlobal(cmd); err != nil {
			return err
		}
		a.startProgress(cmd)
		return a.page(cmd)
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&a.store, "store", "", "the store: DIR, FILE.db, jsonl:DIR, sqlite:FILE, postgres://… or nats://…")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one value per line")
	root.PersistentFlags().DurationVar(&a.wait, "wait", 30*time.Second, "how long to wait for a process that has locked the store; 0 is for ever")
	content := []*cobra.Command{
		a.lsCommand(), a.showCommand(), a.tailCommand(), a.searchCommand(), a.exportCommand(), a.treeCommand(), a.diffCommand(), a.historyCommand(),
		a.snapshotsCommand(), a.stateCommand(), a.replayCommand(), a.costCommand(), a.statsCommand(), a.optreeCommand(), a.runlogCommand(),
	}
	a.maskFlag(content...)
	root.AddCommand(content...)
	root.AddCommand(
		a.importCommand(), a.verifyCommand(), a.appendCommand(), a.convertCommand(), a.versionCommand(), a.manCommand(),
		a.redactCommand(), a.gcCommand(), a.backupCommand(), a.repairCommand(), a.scanCommand(), a.retireCommand(),
		a.runsCommand(), a.approveCommand(), a.denyCommand(), a.answerCommand(), a.resolveCommand(), a.reconcileCommand(),
		a.abortCommand(), a.postCommand(), a.tokenCommand(),
		a.forkCommand(), a.copyCommand(), a.rewindCommand(), a.recoverCommand(), a.rmCommand(), a.snapshotCommand(),
	)
	groupCommands(root)
	a.fitHelp(root)
	for _, cmd := range root.Commands() {
		cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + "\n\nExit codes: " + cmp.Or(cmd.Annotations[exitCodes], "0 done, 1 failed, 2 wrong usage.")
	}
	a.complete(root)
	return root
}

// exitCodes is the annotation of a command with its own exit codes.
const exitCodes = "exit codes"

// checkGlobal rejects global flags that a command would have to ignore.
func (a *app) checkGlobal(cmd *cobra.Command) error {
	name := cmd.Name()
	if parent := cmd.Parent(); parent != nil && parent.Name() == "completion" {
		name = parent.Name()
	}
	switch {
	case a.wait < 0:
		return usagef("--wait is not negative; 0 is for ever")
	case a.json && (name == "man" || name == "completion"):
		return usagef("%s prints no JSON: leave out --json", name)
	case a.store != "" && name == "convert":
		return usagef("convert takes both stores as arguments: leave out --store, as in logtool convert %s OTHER", shellWord(shown(a.store)))
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
	return at.progress.run(func() error { return at.run(m, f) })
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
