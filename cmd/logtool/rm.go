package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/upkeep/erase"
)

func (a *app) rmCommand() *cobra.Command {
	var x rmOptions
	cmd := a.command(&cobra.Command{
		Use:        "rm SESSION...",
		SuggestFor: []string{"delete", "remove"},
		Short:      "Remove sessions for good; refused while forks need them",
		Long: `Remove sessions with all their events, for good and without a question. Full ids are
required. A session with forks is rejected, with the names of the forks: remove the
forks first, or copy them (logtool copy), which makes them independent. logtool store gc
then removes the bodies that no other session needs.

A damaged session is removed like any other. If the parent of a damaged session
cannot be read, that session may be a fork, and nothing is removed without --force.

A session on hold (logtool store hold) stays, and then none of the others is removed. The
session convlog:store notes who removed sessions, when and why, without their ids.`,
		Example: "  logtool rm order-42-again order-42 --dry-run",
		Args:    between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changing(func(log *eventlog.Log) error { return a.rm(cmd.Context(), log, args, x) })
		},
	}, traits{section: secErase, verb: "removing", args: []argument{sessionArg, more}})
	cmd.Flags().StringVar(&x.reason, "reason", "", "why, for the notes of the store")
	byFlag(cmd, &x.by)
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "list the sessions, and remove nothing")
	cmd.Flags().BoolVar(&x.force, "force", false, "remove possible parents of damaged sessions too")
	return cmd
}

// rmOptions are the flags of rm.
type rmOptions struct {
	dry, force bool
	reason, by string
}

// removalRow is a removed session with --json.
type removalRow struct {
	Session string `json:"session"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
	DryRun  bool   `json:"dry_run,omitzero"`
}

// rm removes sessions, each after its forks. It checks all of them first.
func (a *app) rm(ctx context.Context, log *eventlog.Log, args []string, x rmOptions) error {
	ids, err := findEach(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
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
	if x.dry {
		if err := noneHeld(ctx, log, order); err != nil {
			return err
		}
		for _, n := range order {
			if err := a.removed(p, n, true); err != nil {
				return err
			}
		}
		return p.Flush()
	}
	ordered := make([]string, len(order))
	for i, n := range order {
		ordered[i] = n.ID
	}
	files, err := a.transcripts(ctx, log, ordered) // before the forks that name them are removed
	if err != nil {
		return err
	}
	// Possible forks were checked above.
	err = erase.RemoveEach(ctx, log, ordered, func(id string) error { return a.removed(p, forest.Node(id), false) },
		erase.RemoveOptions{DespiteUnreadable: true, Reason: x.reason, By: a.user(x.by)})
	for _, path := range files {
		if a.json {
			err = errors.Join(err, p.Value(retained{path, transcriptRemedy}))
		} else {
			p.Printf("%s %s: %s\n", p.Paint(term.Yellow, "not touched:"), clean(path), transcriptRemedy)
		}
	}
	return errors.Join(err, p.Flush())
}

func (a *app) removed(p *printer, n *fork.Node, dry bool) error {
	events, bytes := n.Events(), n.Bytes
	if a.json {
		return p.Value(removalRow{n.ID, events, bytes, dry})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	content := count(events, "event")
	if n.Err != nil {
		content = "damaged"
	}
	p.Printf("%s %s: %s, %s\n", verb, clean(n.ID), content, size(bytes))
	return nil
}

// removable orders sessions so that each comes after its forks. It rejects a session
// that has other forks, or may have.
func removable(forest *fork.Forest, ids []string, force bool) (order []*fork.Node, err error) {
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	var unread []string
	for _, n := range forest.All() {
		switch {
		case chosen[n.ID]:
			order = append(order, n)
		case n.First == 0:
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
			return nil, fmt.Errorf("remove session %q: %w: forked by %s", id, eventlog.ErrInUse, someOf(need, 10))
		}
	}
	if len(unread) > 0 && !force {
		return nil, fmt.Errorf("remove session %q: %w: %w: %s may be forks of it", ids[0], eventlog.ErrInUse, engine.ErrLineage, someOf(unread, 10))
	}
	slices.Reverse(order) // children before their parents
	return order, nil
}

// noneHeld returns an error if one of the sessions is on hold.
func noneHeld(ctx context.Context, log *eventlog.Log, sessions []*fork.Node) error {
	holds, err := erase.Holds(ctx, log)
	for i, h := range holds {
		if h.Session == engine.StoreSession || slices.ContainsFunc(sessions, func(n *fork.Node) bool { return n.ID == h.Session }) {
			return fmt.Errorf("remove: %w", &holds[i])
		}
	}
	return err
}
