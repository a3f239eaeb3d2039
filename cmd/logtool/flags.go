package main

import (
	"context"
	"strconv"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// pointFlags are the flags that choose a place in a session.
type pointFlags struct {
	name     string // of the flag for an event, and the prefix of two others
	event    string // --at
	turn     int    // --at-turn
	before   bool   // --before
	snapshot string // --at-snapshot
}

// flags adds --NAME, --NAME-turn, --before and --NAME-snapshot.
func (x *pointFlags) flags(cmd *cobra.Command, name string) {
	x.name = name
	cmd.Flags().StringVar(&x.event, name, "", "the `event`, a seq (0 is before all events) or an id")
	cmd.Flags().IntVar(&x.turn, name+"-turn", -1, "the end of this turn, counted from 0")
	cmd.Flags().Lookup(name + "-turn").DefValue = "0" // help shows no default
	cmd.Flags().BoolVar(&x.before, "before", false, "with --"+name+"-turn: before the turn, not after it")
	cmd.Flags().StringVar(&x.snapshot, name+"-snapshot", "", "the snapshot with this id")
}

// count is how many places the flags name.
func (x *pointFlags) count(cmd *cobra.Command) (n int) {
	for _, flag := range []string{x.name, x.name + "-turn", x.name + "-snapshot"} {
		if cmd.Flags().Changed(flag) {
			n++
		}
	}
	return n
}

// point is the place that the flags name; the head by default.
func (x *pointFlags) point(cmd *cobra.Command) (fork.Point, error) {
	turn := cmd.Flags().Changed(x.name + "-turn")
	switch {
	case x.count(cmd) > 1:
		return fork.Point{}, usagef("give one of --%[1]s, --%[1]s-turn and --%[1]s-snapshot", x.name)
	case x.before && !turn:
		return fork.Point{}, usagef("--before goes with --%s-turn", x.name)
	case turn && x.turn < 0:
		return fork.Point{}, usagef("turns are counted from 0, not %d", x.turn)
	case turn && x.before:
		return fork.BeforeTurn(x.turn), nil
	case turn:
		return fork.AtTurn(x.turn), nil
	case cmd.Flags().Changed(x.name + "-snapshot"):
		return fork.AtSnapshot(x.snapshot), nil
	case cmd.Flags().Changed(x.name):
		return eventPoint(x.name, x.event)
	}
	return fork.Head(), nil
}

// eventPoint parses the seq or the id of an event.
func eventPoint(flag, text string) (fork.Point, error) {
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil && seq >= 0 {
		return fork.AtSeq(seq), nil
	}
	id, err := ulid.ParseStrict(text)
	if err != nil {
		return fork.Point{}, usagef("--%s is the seq of an event or its id, not %q", flag, text)
	}
	return fork.AtEvent(id), nil
}

// branchFlags are the name of a new branch and the reason for it.
type branchFlags struct{ label, reason string }

func (x *branchFlags) flags(cmd *cobra.Command, branch string) {
	cmd.Flags().StringVar(&x.label, "label", "", "a name for "+branch)
	cmd.Flags().StringVar(&x.reason, "reason", "", "why")
}

// newIDFlag adds --as, the id of a new session.
func newIDFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "as", "", "the id of the new session; a generated id by default")
}

// checkNewID rejects an --as that is not a session id.
func checkNewID(cmd *cobra.Command, id string) error {
	if !cmd.Flags().Changed("as") {
		return nil
	}
	if err := event.CheckSessionID(id); err != nil {
		return usagef("--as: %v", err)
	}
	return nil
}

// The values of --path.
const (
	allPaths   = "all"
	activePath = "active"
)

// selectFlags adds --path and --type, which select events.
func selectFlags(cmd *cobra.Command, path *string, types *[]string) {
	cmd.Flags().StringVar(path, "path", allPaths, "all, or active: without orphaned events")
	cmd.Flags().StringSliceVar(types, "type", nil, "only events of this `type`; repeatable")
	completeFlag(cmd, "path", allPaths, activePath)
	completeFlag(cmd, "type", typeNames()...)
}

func checkPath(path string) error {
	if path != allPaths && path != activePath {
		return usagef("--path is all or active, not %q", path)
	}
	return nil
}

// atUsage is the help of --at in a view.
const atUsage = "the view at this `event`, a seq or an id"

// eventFlag is a flag that names an event, by its seq or its id.
type eventFlag struct {
	name, text string
	given      bool
	point      fork.Point
	number     int64 // the seq, if the flag has one; 0 for an id
}

func (x *eventFlag) flag(cmd *cobra.Command, name, usage string) {
	x.name = name
	cmd.Flags().Var(x, name, usage)
}

// String, Set and Type implement pflag.Value. Set keeps the text for check.
func (x *eventFlag) String() string { return x.text }
func (x *eventFlag) Type() string   { return "event" }
func (x *eventFlag) Set(text string) error {
	x.text, x.given = text, true
	return nil
}

func (x *eventFlag) isSet() bool { return x.given }

// check parses the flag.
func (x *eventFlag) check() (err error) {
	if !x.isSet() {
		return nil
	}
	if x.number, err = strconv.ParseInt(x.text, 10, 64); err == nil {
		if x.number < 1 {
			return usagef("--%s is the seq of an event, from 1, or its id, not %d", x.name, x.number)
		}
		x.point = fork.AtSeq(x.number)
		return nil
	}
	x.number = 0
	x.point, err = eventPoint(x.name, x.text)
	return err
}

// seq is the seq of the event; 0 without the flag.
func (x *eventFlag) seq(ctx context.Context, log *eventlog.Log, session string) (int64, error) {
	if !x.isSet() || x.number > 0 {
		return x.number, nil
	}
	e, err := fork.Resolve(ctx, log, session, x.point)
	return e.Seq, err
}

// limitFlag adds --limit.
func limitFlag(cmd *cobra.Command, limit *int, most int, usage string) {
	cmd.Flags().IntVarP(limit, "limit", "n", most, usage)
}

// intoFlag adds --into, another store.
func intoFlag(cmd *cobra.Command, place *string) {
	cmd.Flags().StringVar(place, "into", "", "write into this store, written as the `place` of --store")
}
