package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
)

// flagError explains a wrong flag and suggests a similar one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := nearFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			return usagef("%v (did you mean --%s? see %s --help)", err, near, cmd.CommandPath())
		}
	}
	if _, args, _ := strings.Cut(cmd.Use, " "); strings.HasPrefix(args, "TEXT") {
		return usagef("%v (put -- before a text that begins with -, as in %s -- -x; see %s --help)", err, cmd.CommandPath(), cmd.CommandPath())
	}
	return usagef("%v (see %s --help)", err, cmd.CommandPath())
}

// nearFlag is the flag of a command that name probably means: the flag that has
// this role in another command, or a flag with a similar name; else empty.
func nearFlag(cmd *cobra.Command, name string) string {
	for _, pair := range [][2]string{{"at", "to"}, {"to", "at"}, {"last", "limit"}, {"limit", "last"}} {
		if rest, ok := strings.CutPrefix(name, pair[0]); ok && cmd.Flags().Lookup(pair[1]+rest) != nil {
			return pair[1] + rest
		}
	}
	var flags cobra.Command // the flags as its subcommands: cobra finds similar names
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	for flags.SuggestionsMinimumDistance < min(2, len(name)-1) {
		flags.SuggestionsMinimumDistance++
		if near := flags.SuggestionsFor(name); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}

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
	cmd.Flags().StringVar(&x.event, name, "", "the event, by its seq (0 is before all events) or its id")
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
	cmd.Flags().StringVar(path, "path", allPaths, "all, which marks orphaned events, or active, which leaves them out")
	cmd.Flags().StringSliceVar(types, "type", nil, "only events of these types, for example message_added")
}

func checkPath(path string) error {
	if path != allPaths && path != activePath {
		return usagef("--path is all or active, not %q", path)
	}
	return nil
}

// atFlag adds --at, the newest event that a view covers.
func atFlag(cmd *cobra.Command, seq *int64) {
	cmd.Flags().Int64Var(seq, "at", 0, "the view at this event, by its seq")
}

func checkAt(cmd *cobra.Command, seq int64) error {
	if seq < 0 || seq == 0 && cmd.Flags().Changed("at") {
		return usagef("--at is the seq of an event, from 1, not %d", seq)
	}
	return nil
}
