package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func (a *app) rmCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "rm SESSION...",
		Short: "Remove sessions for good; refused while forks need them",
		Long: `Remove sessions with all their events, for good and without asking. They are
named by their full ids. A session that forks read their past through is refused,
and the forks are named: remove them first, or copy them (logtool copy), which
makes them independent. Bodies that no other session needs go with logtool gc.`,
		Args: between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(func(log *eventlog.Log) error { return a.rm(cmd.Context(), log, args, dry) })
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

// removed is a session as rm prints it with --json.
type removed struct {
	Session string `json:"session"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
	DryRun  bool   `json:"dry_run,omitzero"`
}

// rm removes the sessions named, each after its forks. All are checked first.
func (a *app) rm(ctx context.Context, log *eventlog.Log, args []string, dry bool) error {
	ids, err := named(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
	if err != nil {
		return err
	}
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return err
	}
	order, err := removable(forest, ids)
	if err != nil {
		return err
	}
	p := a.printer()
	for _, n := range order {
		if !dry {
			if err := fork.Remove(ctx, log, n.ID); err != nil {
				return errors.Join(err, p.flush())
			}
		}
		if err := a.removed(p, n, dry); err != nil {
			return err
		}
	}
	return p.flush()
}

func (a *app) removed(p *printer, n *fork.Node, dry bool) error {
	events, bytes := n.Info.Events(), n.Info.Bytes
	if a.json {
		return p.value(removed{n.ID, events, bytes, dry})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	p.printf("%s %s: %s, %s\n", verb, clean(n.ID), count(events, "event"), size(bytes))
	return nil
}

// removable orders sessions so that each comes after its forks. One that others
// need is refused, and those are named.
func removable(forest *fork.Forest, ids []string) (order []*fork.Node, err error) {
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	for _, id := range ids {
		n := forest.Node(id)
		if n == nil {
			return nil, fmt.Errorf("session %q: %w", id, eventlog.ErrNotFound)
		}
		var need []string
		for _, f := range n.Forks() {
			if !chosen[f.ID] {
				need = append(need, fmt.Sprintf("%q", f.ID))
			}
		}
		if len(need) > 0 {
			return nil, fmt.Errorf("remove session %q: %w: forked by %s", id, eventlog.ErrInUse, strings.Join(need, ", "))
		}
	}
	for _, n := range forest.All() {
		if chosen[n.ID] {
			order = append([]*fork.Node{n}, order...)
		}
	}
	return order, nil
}
