package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
)

// argument is the kind of an argument. It decides how shells complete the argument.
type argument int

const (
	textArg     argument = iota // nothing completes it
	sessionArg                  // the id of a session, or the beginning of one
	seqArg                      // the seq of an event
	snapshotArg                 // a snapshot of the session before it
	reviewArg                   // an open review of the session before it
	waitArg                     // an open wait of the session before it
	outcomeArg                  // an effect without a result of the session before it
	storeArg                    // a store, written as the value of --store
	fileArg                     // a file or a folder
	folderArg                   // a folder
	more                        // repeats the kind before it
)

// argumentAt returns the kind of argument n; textArg for an argument too many.
func argumentAt(kinds []argument, n int) argument {
	last := len(kinds) - 1
	switch {
	case n < len(kinds) && kinds[n] != more:
		return kinds[n]
	case last > 0 && kinds[last] == more:
		return kinds[last-1]
	}
	return textArg
}

// completeArgs completes arguments by their kinds. It is silent about an unreadable store:
// the command reports it.
func (a *app) completeArgs(kinds []argument) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if argumentAt(kinds, 0) == storeArg && len(args) > 0 {
			a.store = args[0] // the command reads the sessions of this store
		}
		var found []cobra.Completion
		var err error
		switch kind := argumentAt(kinds, len(args)); kind {
		case sessionArg:
			found, err = a.sessionsFrom(cmd.Context(), typed)
		case snapshotArg:
			found, err = a.snapshotsFrom(cmd.Context(), args[0], typed)
		case reviewArg:
			found, err = a.openFrom(cmd.Context(), args[0], answers.OpenReview, typed)
		case waitArg:
			found, err = a.openFrom(cmd.Context(), args[0], answers.OpenWait, typed)
		case outcomeArg:
			found, err = a.openFrom(cmd.Context(), args[0], answers.OpenOutcome, typed)
		case storeArg, fileArg:
			return nil, cobra.ShellCompDirectiveDefault
		case folderArg:
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// sessionsFrom are the sessions whose ids begin with typed, with their titles.
func (a *app) sessionsFrom(ctx context.Context, typed string) (found []cobra.Completion, err error) {
	var rows []*sessionRow
	shared := listing.Programs{}
	err = a.reading(func(log *eventlog.Log) error {
		for info, err := range log.List(ctx, eventlog.Part{Prefix: typed}) {
			if err != nil {
				return err
			}
			if info.Err == nil {
				rows = append(rows, listing.NewRow(info, shared))
			}
		}
		x := a.reader(log, nil)
		return x.Names(ctx, rows)
	})
	for _, row := range rows {
		found = append(found, cobra.CompletionWithDesc(row.ID, nameOf(row)))
	}
	return found, err
}

// openFrom are the ids of the open work of a kind that begin with typed.
func (a *app) openFrom(ctx context.Context, name, kind, typed string) (found []cobra.Completion, err error) {
	err = a.session(ctx, forReading, name, func(log *eventlog.Log, session string) error {
		info, err := flow.Info(ctx, log, session)
		for _, row := range answers.OpenOf(&info) {
			if row.Kind == kind && strings.HasPrefix(row.ID, typed) {
				found = append(found, cobra.CompletionWithDesc(row.ID, clean(row.Name)))
			}
		}
		return err
	})
	return found, err
}

// snapshotsFrom are the ids of the snapshots that begin with typed, newest first.
func (a *app) snapshotsFrom(ctx context.Context, name, typed string) (found []cobra.Completion, err error) {
	err = a.session(ctx, forReading, name, func(log *eventlog.Log, session string) error {
		for s, err := range projection.Snapshots(ctx, log, session, false) {
			if err != nil {
				return err
			}
			if id := s.Snapshot.SnapshotID; strings.HasPrefix(id, typed) {
				found = append(found, cobra.CompletionWithDesc(id, s.Snapshot.Projection+" up to "+at(s.Snapshot.Seq)))
			}
		}
		return nil
	})
	return found, err
}

// completeFlag makes shells complete the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// typeNames are the types of events, for completion.
func typeNames() (names []string) {
	for _, t := range event.Types() {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}
