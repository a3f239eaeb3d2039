package main

import (
	"fmt"
	"strconv"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/fork"
)

// pointing is which place of a session a command was told.
type pointFlags struct {
	name     string // of the flag for an event, and the beginning of the others
	event    string // --at
	turn     int    // --at-turn
	before   bool   // --before
	snapshot string // --at-snapshot
}

// flags adds --NAME, --NAME-turn, --before and --NAME-snapshot.
func (x *pointFlags) flags(cmd *cobra.Command, name string) {
	x.name = name
	cmd.Flags().StringVar(&x.event, name, "", "the event, by its seq (0 is before all events) or its id")
	cmd.Flags().IntVar(&x.turn, name+"-turn", -1, "the end of this turn, counted from 0")
	cmd.Flags().Lookup(name + "-turn").DefValue = "0" // there is none, so help names none
	cmd.Flags().BoolVar(&x.before, "before", false, "with --"+name+"-turn: before the turn, not behind it")
	cmd.Flags().StringVar(&x.snapshot, name+"-snapshot", "", "the snapshot with this id")
}

// given reports whether a place was named.
func (x *pointFlags) given(cmd *cobra.Command) bool { return x.count(cmd) > 0 }

func (x *pointFlags) count(cmd *cobra.Command) (n int) {
	for _, flag := range []string{x.name, x.name + "-turn", x.name + "-snapshot"} {
		if cmd.Flags().Changed(flag) {
			n++
		}
	}
	return n
}

// point is the place that was named, the head if none was.
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

// eventPoint reads a seq, or the id of an event.
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

// branching is what a new branch is called, and why it was made.
type branchFlags struct{ label, reason string }

func (x *branchFlags) flags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&x.label, "label", "", "a name for "+what)
	cmd.Flags().StringVar(&x.reason, "reason", "", "why")
}

// at names an event for people.
func at(seq int64) string {
	if seq == 0 {
		return "the start"
	}
	return fmt.Sprintf("#%d", seq)
}
