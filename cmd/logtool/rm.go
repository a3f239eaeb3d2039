package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/erase"
)

func (a *app) rmCommand() *cobra.Command {
	var x rmOptions
	cmd := &cobra.Command{
		Use:   "rm SESSION...",
		Short: "Remove sessions for good; refused while forks need them",
		Long: `Remove sessions with all their events, for good and without asking. They are
named by their full ids. A session that forks read their past through is refused,
and the forks are named: remove them first, or copy them (logtool copy), which
makes them independent. Bodies that no other session needs go with logtool gc.

A damaged session is removed as any other. Where another session is so damaged
that its parent cannot be read, it may be a fork, and nothing is removed unless
--force is given.`,
		Example: "  logtool rm order-42 --dry-run\n  logtool rm order-42-again order-42",
		Args:    between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(func(log *eventlog.Log) error { return a.rm(cmd.Context(), log, args, x) })
		},
	}
	cmd.Flags().BoolVarP(&x.dry, "dry-run", "n", false, "only say what would be removed")
	cmd.Flags().BoolVar(&x.force, "force", false, "remove also what damaged sessions may be forks of")
	return cmd
}

// removing is what the rm command was told.
type rmOptions struct{ dry, force bool }

// removed is a session as rm prints it with --json.
type removalRow struct {
	Session string `json:"session"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
	DryRun  bool   `json:"dry_run,omitzero"`
}

// rm removes the sessions named, each after its forks. All are checked first.
func (a *app) rm(ctx context.Context, log *eventlog.Log, args []string, x rmOptions) error {
	ids, err := named(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
	if err != nil {
		return err
	}
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return err
	}
	order, err := removable(forest, ids, x.force)
	if err != nil {
		return err
	}
	p := a.printer()
	for _, n := range order {
		if !x.dry {
			// What may be a fork is known by now, or is to be removed too.
			if err := erase.Remove(ctx, log, n.ID, erase.RemoveOptions{DespiteUnreadable: true}); err != nil {
				return errors.Join(err, p.flush())
			}
		}
		if err := a.removed(p, n, x.dry); err != nil {
			return err
		}
	}
	return p.flush()
}

func (a *app) removed(p *printer, n *fork.Node, dry bool) error {
	events, bytes := n.Info.Events(), n.Info.Bytes
	if a.json {
		return p.value(removalRow{n.ID, events, bytes, dry})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	what := count(events, "event")
	if n.Info.Err != nil {
		what = "damaged"
	}
	p.printf("%s %s: %s, %s\n", verb, clean(n.ID), what, size(bytes))
	return nil
}

// removable orders sessions so that each comes after its forks. One that others
// need, or may need, is refused, and those are named.
func removable(forest *fork.Forest, ids []string, force bool) (order []*fork.Node, err error) {
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	var unread []string
	for _, n := range forest.All() {
		switch {
		case chosen[n.ID]:
			order = append([]*fork.Node{n}, order...)
		case n.Info.First.Seq == 0:
			unread = append(unread, n.ID)
		}
	}
	for _, id := range ids {
		n := forest.Node(id)
		if n == nil {
			return nil, fmt.Errorf("session %q: %w", id, eventlog.ErrNotFound)
		}
		var need []string
		for _, f := range n.Forks() {
			if !chosen[f.ID] {
				need = append(need, f.ID)
			}
		}
		if len(need) > 0 {
			return nil, fmt.Errorf("remove session %q: %w: forked by %s", id, eventlog.ErrInUse, someOf(need))
		}
	}
	if len(unread) > 0 && !force {
		return nil, fmt.Errorf("remove session %q: %w: %s may be forks of it", ids[0], eventlog.ErrLineage, someOf(unread))
	}
	return order, nil
}

// someOf names some sessions, and says how many more there are.
func someOf(sessions []string) string {
	const most = 10
	var names []string
	for _, id := range sessions[:min(len(sessions), most)] {
		names = append(names, fmt.Sprintf("%q", id))
	}
	if n := len(sessions) - len(names); n > 0 {
		names = append(names, thousands(int64(n))+" more")
	}
	return strings.Join(names, ", ")
}
