package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

// app is one run of logtool: its surroundings and its global flags.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	now    func() time.Time
	pager  *pager // that prints out; nil if none does

	store string        // --store
	json  bool          // --json
	wait  time.Duration // --wait
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := a.closePager(root.ExecuteContext(ctx))
	if line := explain(err); line != "" {
		fmt.Fprintf(a.err, "logtool: %s\n", line)
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "logtool",
		Short:         "Import, look at, check, extend and move logs of AI conversations",
		Long:          rootHelp,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkGlobal(cmd); err != nil {
			return err
		}
		return a.page(cmd)
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&a.store, "store", "", "where the log is: DIR, FILE.db, jsonl:DIR or sqlite:FILE")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one value per line")
	root.PersistentFlags().DurationVar(&a.wait, "wait", 30*time.Second, "how long to wait for another process that has locked the store; 0 is for ever")
	root.AddCommand(
		a.importCommand(), a.lsCommand(), a.showCommand(), a.tailCommand(), a.verifyCommand(),
		a.searchCommand(), a.appendCommand(), a.exportCommand(), a.convertCommand(), a.versionCommand(), a.manCommand(),
		a.redactCommand(), a.gcCommand(), a.backupCommand(), a.repairCommand(),
		a.forkCommand(), a.copyCommand(), a.rewindCommand(), a.recoverCommand(), a.rmCommand(), a.treeCommand(), a.diffCommand(), a.historyCommand(),
		a.snapshotCommand(), a.snapshotsCommand(), a.stateCommand(), a.costCommand(), a.statsCommand(), a.optreeCommand(), a.runlogCommand(),
	)
	a.complete(root)
	return root
}

// checkGlobal refuses global flags that a command would have to ignore.
func (a *app) checkGlobal(cmd *cobra.Command) error {
	name := cmd.Name()
	if above := cmd.Parent(); above != nil && above.Name() == "completion" {
		name = above.Name()
	}
	switch {
	case a.wait < 0:
		return usagef("--wait is not negative; 0 is for ever")
	case a.json && (name == "man" || name == "completion"):
		return usagef("%s prints no JSON: leave out --json", name)
	case a.store != "" && name == "convert":
		return usagef("convert is told both stores: leave out --store, as in logtool convert %s OTHER", shellWord(a.store))
	}
	return nil
}

const rootHelp = `Import, look at, check, extend and move logs of AI conversations.

The log is where --store says: a folder (one JSONL file per session) or a
sqlite file. A prefix decides ("jsonl:DIR", "sqlite:FILE"); without one, an
existing file or a name ending in .db, .sqlite or .sqlite3 is sqlite, anything
else a folder. The default is $CONVLOG_STORE, else convlog in $XDG_DATA_HOME
(~/.local/share).

Sessions are named by their id or the beginning of it, if that is unique;
append and rm want all of it.

Long output goes through $PAGER (less by default) when a person is looking.

Exit codes: 0 done, 1 failed or found damage, 2 wrong usage.`

// noCommand refuses words that are no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see logtool --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	return usagef("unknown command %q (%s)", args[0], hint)
}

// between checks the number of arguments; most < 0 is no bound.
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

// reading runs f on the log that --store names, opened for reading only.
func (a *app) reading(f func(*eventlog.Log) error) error { return a.with(forReading, f) }

// writing runs f on the log that --store names; the store is made if need be.
func (a *app) writing(f func(*eventlog.Log) error) error { return a.with(forWriting, f) }

// changing runs f on the log that --store names, which must exist.
func (a *app) changing(f func(*eventlog.Log) error) error { return a.with(forChanging, f) }

func (a *app) with(m mode, f func(*eventlog.Log) error) error {
	at, err := a.place()
	if err != nil {
		return err
	}
	return at.with(m, f)
}

func (at place) with(m mode, f func(*eventlog.Log) error) error {
	log, err := at.open(m)
	if err != nil {
		return err
	}
	err = f(log)
	if closing := log.Close(); closing != nil {
		err = errors.Join(err, fmt.Errorf("close %s: %w", at, closing))
	}
	return err
}
