package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/projection"
)

// setNamed is the set of projections of --projection.
func setNamed(name string) (projection.Set, error) {
	set, err := answers.StateSet(name)
	if errors.Is(err, projection.ErrUnknownProjection) {
		return set, usagef("--projection is one of %s, not %q", setNames(), name)
	}
	return set, err
}

// setNames are the names of --projection, separated by commas.
func setNames() string { return strings.Join(answers.StateNames(), ", ") }

// projectionFlag adds --projection.
func projectionFlag(cmd *cobra.Command, name *string, usage string) {
	cmd.Flags().StringVar(name, "projection", projection.Session().Name, usage)
	completeFlag(cmd, "projection", answers.StateNames()...)
}

func (a *app) snapshotCommand() *cobra.Command {
	var name string
	var r projection.Request
	cmd := a.command(&cobra.Command{
		Use:   "snapshot SESSION",
		Short: "Append a snapshot, so that views read fewer events",
		Long: `Append a snapshot of a projection with its whole state. A view then reads the
snapshot and the events after it. The conversation does not change, and no event
depends on a snapshot. The default, session, has everything that a resumed session
needs.

Projections: ` + setNames() + `.`,
		Example: "  logtool state snapshot order-42 --projection history --reason 'before the upgrade'",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := setNamed(name)
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				return a.snapshot(cmd.Context(), log, session, set, r)
			})
		},
	}, traits{verb: "reading", args: []argument{sessionArg}})
	projectionFlag(cmd, &name, "the projection to take a snapshot of")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why")
	cmd.Flags().BoolVar(&r.Durable, "durable", false, "return only when the snapshot is on disk")
	return cmd
}

// snapshotResult is the new snapshot with --json.
type snapshotResult struct {
	answers.Head `json:",inline"`
	SnapshotID   string       `json:"snapshot_id"`
	Projection   string       `json:"projection"`
	Covers       int64        `json:"covers"`
	Digest       event.Digest `json:"state_digest"`
}

func (a *app) snapshot(ctx context.Context, log *eventlog.Log, session string, set projection.Set, r projection.Request) error {
	live, err := projection.Resume(ctx, log, session, set)
	if err != nil {
		return err
	}
	r.Trigger, r.Body, r.Force = projection.Manual, true, true
	s, _, err := live.Snapshot(ctx, r)
	for errors.Is(err, eventlog.ErrConflict) { // another writer was first
		if err = live.Follow(ctx); err == nil {
			s, _, err = live.Snapshot(ctx, r)
		}
	}
	if err != nil {
		return err
	}
	return a.answer(snapshotResult{answers.NewHead(session, live.Head, 1), s.SnapshotID, s.Projection, s.Seq, s.StateDigest}, func(p *printer) {
		p.head(session, live.Head, "snapshot "+s.SnapshotID+", projection "+s.Projection+" up to "+at(s.Seq))
	})
}

func (a *app) snapshotsCommand() *cobra.Command {
	var orphaned bool
	cmd := a.command(&cobra.Command{
		Use:   "list SESSION",
		Short: "List the snapshots of a session, oldest first",
		Long: `List the snapshots on the active path. --orphaned lists the orphaned (rewound)
snapshots too. A mark has no state: it names a place and the digest of the state
there. logtool rewind and fork accept the id of a snapshot.`,
		Example: "  logtool state list order-42 --orphaned",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				return a.snapshots(cmd.Context(), log, session, orphaned)
			})
		},
	}, traits{verb: "reading", content: true, args: []argument{sessionArg}})
	cmd.Flags().BoolVar(&orphaned, "orphaned", false, "list orphaned snapshots too")
	return cmd
}

// snapshotRow is a snapshot with --json.
type snapshotRow struct {
	Seq        int64        `json:"seq"`
	ID         string       `json:"snapshot_id"`
	Parent     string       `json:"parent_snapshot_id,omitzero"`
	Projection string       `json:"projection"`
	Version    int          `json:"version"`
	Index      int          `json:"index"`
	TurnIndex  int          `json:"turn_index"`
	Trigger    string       `json:"trigger,omitzero"`
	Reason     string       `json:"reason,omitzero"`
	Covers     int64        `json:"covers"`
	Digest     event.Digest `json:"state_digest,omitzero"`
	Mark       bool         `json:"mark,omitzero"`
	Redacted   bool         `json:"redacted,omitzero"`
	Orphaned   bool         `json:"orphaned,omitzero"`
	Timestamp  time.Time    `json:"time"`
}

func newSnapshotRow(x *projection.Snapshotted) snapshotRow {
	s := &x.Snapshot
	return snapshotRow{
		Seq: x.Event.Seq, ID: s.SnapshotID, Parent: s.ParentSnapshotID, Projection: s.Projection, Version: s.Version,
		Index: s.Index, TurnIndex: s.TurnIndex, Trigger: s.Trigger, Reason: s.Reason, Covers: s.Seq, Digest: s.StateDigest,
		Mark: s.BodyDigest == "" && s.IsMark(), Redacted: x.Event.Redacted(), Orphaned: x.Orphaned, Timestamp: x.Event.Timestamp,
	}
}

func (a *app) snapshots(ctx context.Context, log *eventlog.Log, session string, orphaned bool) error {
	var rows []snapshotRow
	for s, err := range projection.Snapshots(ctx, log, session, orphaned) {
		if err != nil {
			return err
		}
		rows = append(rows, newSnapshotRow(&s))
	}
	slices.Reverse(rows)
	return printRows(a, rows, func(p *printer) {
		if len(rows) == 0 && p.Terminal {
			p.Printf("no snapshots\n")
			return
		}
		var cells [][]string
		for i := range rows {
			cells = append(cells, rows[i].cells(p))
		}
		p.Print(term.Table{Heading: []string{"SEQ", "PROJECTION", "INDEX", "TURN", "TRIGGER", "COVERS", "STATE", "TIME", "ID"}, Rows: cells,
			Right: []int{0, 2, 3, 5}, Whole: []string{"ID"}})
	})
}

func (s *snapshotRow) cells(p *printer) []string {
	state := "body"
	switch {
	case s.Redacted:
		state = "redacted"
	case s.Mark:
		state = "mark"
	}
	if s.Orphaned {
		state += ", " + orphanedMark
	}
	return []string{
		strconv.FormatInt(s.Seq, 10), clean(s.Projection), strconv.Itoa(s.Index), strconv.Itoa(s.TurnIndex),
		cmp.Or(clean(s.Trigger), "-"), at(s.Covers), state, p.when(s.Timestamp), clean(s.ID),
	}
}
