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

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// setNamed is the set of projections of that name: what is snapshotted of a
// session together, or one projection.
func setNamed(name string) (projection.Set, error) {
	if name == projection.Session().Name {
		return projection.Session(), nil
	}
	part, err := projection.ByName(name)
	if errors.Is(err, projection.ErrUnknownProjection) {
		return projection.Set{}, usagef("--projection is one of %s, not %q", setNames(), name)
	}
	if err != nil {
		return projection.Set{}, err
	}
	return projection.Of("", part), nil
}

// setNames are the names that setNamed knows.
func setNames() string { return strings.Join(setList(), ", ") }

func setList() []string { return append([]string{projection.Session().Name}, projection.Names()...) }

func (a *app) snapshotCommand() *cobra.Command {
	var name string
	var r projection.Request
	cmd := &cobra.Command{
		Use:   "snapshot SESSION",
		Short: "Append a snapshot, so that views of the session need not read what is before it",
		Long: `Append a snapshot of a projection, with its whole state: whoever wants the state
later reads the snapshot and what came after it. Nothing depends on a snapshot;
the conversation is what it was. The default, session, holds all that a resumed
session needs.

Projections: ` + setNames() + `.`,
		Example: "  logtool snapshot order-42\n  logtool snapshot order-42 --projection history --reason 'before the upgrade'",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := setNamed(name)
			if err != nil {
				return err
			}
			return a.changing(func(log *eventlog.Log) error { return a.snapshot(cmd.Context(), log, args[0], set, r) })
		},
	}
	cmd.Flags().StringVar(&name, "projection", projection.Session().Name, "the projection to take a snapshot of")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why")
	cmd.Flags().BoolVar(&r.Durable, "durable", false, "return only when it is on disk")
	return cmd
}

// snapped is a snapshot as snapshot prints it with --json.
type snapshotResult struct {
	headRow   `json:",inline"`
	SnapshotID string       `json:"snapshot_id"`
	Projection string       `json:"projection"`
	Covers     int64        `json:"covers"`
	Digest     event.Digest `json:"state_digest"`
}

func (a *app) snapshot(ctx context.Context, log *eventlog.Log, name string, set projection.Set, r projection.Request) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	live, err := projection.Resume(ctx, log, session, set)
	if err != nil {
		return err
	}
	r.Trigger, r.Body, r.Force = projection.Manual, true, true
	s, err := snapshotOf(ctx, live, r)
	if err != nil {
		return err
	}
	p := a.printer()
	if a.json {
		return p.last(snapshotResult{newHeadRow(session, live.Head, 1), s.SnapshotID, s.Projection, s.Seq, s.StateDigest})
	}
	p.head(session, live.Head, "snapshot "+s.SnapshotID+" of "+s.Projection+" to "+at(s.Seq))
	return p.flush()
}

// snapshotOf takes a snapshot of a session, and where others append to it
// meanwhile one of what it is then.
func snapshotOf(ctx context.Context, live *projection.Live, r projection.Request) (event.Snapshot, error) {
	for {
		s, _, err := live.Snapshot(ctx, r)
		if !errors.Is(err, eventlog.ErrConflict) {
			return s, err
		}
		if err := live.Follow(ctx); err != nil {
			return s, err
		}
	}
}

func (a *app) snapshotsCommand() *cobra.Command {
	var orphaned bool
	cmd := &cobra.Command{
		Use:   "snapshots SESSION",
		Short: "List the snapshots of a session, oldest first",
		Long: `List the snapshots on the active path, with --orphaned also those on what was
rewound. A mark has no state: it names a place and the digest of the state there.
logtool rewind and fork take the id of a snapshot.`,
		Example: "  logtool snapshots order-42 --orphaned",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(func(log *eventlog.Log) error { return a.snapshots(cmd.Context(), log, args[0], orphaned) })
		},
	}
	cmd.Flags().BoolVar(&orphaned, "orphaned", false, "those that were rewound too")
	return cmd
}

// snapshotJSON is a snapshot as snapshots prints it with --json.
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
	Timestamp  time.Time    `json:"timestamp"`
}

func newSnapshotRow(x *projection.Snapshotted) snapshotRow {
	s := &x.Snapshot
	return snapshotRow{
		Seq: x.Event.Seq, ID: s.SnapshotID, Parent: s.ParentSnapshotID, Projection: s.Projection, Version: s.Version,
		Index: s.Index, TurnIndex: s.TurnIndex, Trigger: s.Trigger, Reason: s.Reason, Covers: s.Seq, Digest: s.StateDigest,
		Mark: s.BodyDigest == "" && s.IsMark(), Redacted: x.Event.Redacted(), Orphaned: x.Orphaned, Timestamp: x.Event.Timestamp,
	}
}

func (a *app) snapshots(ctx context.Context, log *eventlog.Log, name string, orphaned bool) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	var rows []snapshotRow
	for s, err := range projection.Snapshots(ctx, log, session, orphaned) {
		if err != nil {
			return err
		}
		rows = append(rows, newSnapshotRow(&s))
	}
	slices.Reverse(rows)
	return a.printSnapshots(rows)
}

func (a *app) printSnapshots(rows []snapshotRow) error {
	p := a.printer()
	if a.json {
		for _, row := range rows {
			if err := p.value(row); err != nil {
				return err
			}
		}
		return p.flush()
	}
	var cells [][]string
	for i := range rows {
		cells = append(cells, rows[i].cells(p))
	}
	p.table([]string{"SEQ", "PROJECTION", "INDEX", "TURN", "TRIGGER", "COVERS", "STATE", "TIME", "ID"}, cells, 0, 2, 3, 5)
	return p.flush()
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
