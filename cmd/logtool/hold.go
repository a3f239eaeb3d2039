package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

func (a *app) holdCommand() *cobra.Command {
	var reason, by string
	cmd := a.command(&cobra.Command{
		Use:   "hold [SESSION...]",
		Short: "Keep sessions from redact, rm and retire, until store release",
		Long: `Put sessions on hold: redact, rm and retire refuse to erase anything of them, until
logtool store release. A hold outranks every erasure, also those that a copy of the
store brings. It keeps the events that a session shares with its parents too. Forks,
runs and copies of the session are not on hold: name them too.

Without SESSION, list the holds. The session convlog:store notes who placed and released
them, when and why (logtool show convlog:store).`,
		Example: "  logtool store hold order-42 --reason 'case 17/2026'",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && (reason != "" || by != ""):
				return usagef("which sessions? Give their ids: logtool %s", cmd.Use)
			case len(args) == 0:
				return a.reading(func(log *eventlog.Log) error { return a.holds(cmd.Context(), log) })
			case reason == "":
				return usagef("why? Give --reason: everybody who is refused an erasure reads it")
			}
			return a.noteEach(cmd.Context(), args, "on hold", func(ctx context.Context, log *eventlog.Log, session string) error {
				return erase.Hold(ctx, log, session, reason, a.user(by))
			})
		},
	}, traits{verb: "holding", args: []argument{sessionArg, more}})
	cmd.Flags().StringVar(&reason, "reason", "", "why the sessions must stay")
	byFlag(cmd, &by)
	return cmd
}

func (a *app) releaseCommand() *cobra.Command {
	var reason, by string
	cmd := a.command(&cobra.Command{
		Use:     "release SESSION...",
		Short:   "Release the holds on sessions",
		Long:    "Release all holds on sessions (logtool store hold): they can be redacted and removed again.",
		Example: "  logtool store release order-42 --reason 'case 17/2026 is closed'",
		Args:    between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.noteEach(cmd.Context(), args, "released", func(ctx context.Context, log *eventlog.Log, session string) error {
				return erase.Release(ctx, log, session, reason, a.user(by))
			})
		},
	}, traits{verb: "releasing", args: []argument{sessionArg, more}})
	cmd.Flags().StringVar(&reason, "reason", "", "why the holds end")
	byFlag(cmd, &by)
	return cmd
}

// noteEach holds or releases sessions, and says so.
func (a *app) noteEach(ctx context.Context, args []string, done string, note func(context.Context, *eventlog.Log, string) error) error {
	return a.changing(func(log *eventlog.Log) error {
		ids, err := findEach(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
		if err != nil {
			return err
		}
		p := a.printer()
		for _, id := range ids {
			if err = note(ctx, log, id); err != nil {
				break
			}
			if a.json {
				err = p.Value(notedRow{id, done})
			} else {
				p.Printf("%s: %s\n", clean(id), done)
			}
		}
		return errors.Join(err, p.Flush())
	})
}

// notedRow is a session that was held or released, with --json.
type notedRow struct {
	Session string `json:"session"`
	Done    string `json:"done"`
}

// heldRow is a hold with --json.
type heldRow struct {
	Session string    `json:"session,omitzero"`
	Since   time.Time `json:"since"`
	By      string    `json:"by,omitzero"`
	Reason  string    `json:"reason,omitzero"`
}

// holds lists the holds of the store.
func (a *app) holds(ctx context.Context, log *eventlog.Log) error {
	all, err := erase.Holds(ctx, log)
	if err != nil {
		return err
	}
	p := a.printer()
	t := term.Table{Heading: []string{"SESSION", "SINCE", "BY", "REASON"}, Keep: "REASON", Whole: []string{"SESSION"}}
	for _, h := range all {
		if a.json {
			if err := p.Value(heldRow{h.Session, h.Since.UTC(), h.By, h.Reason}); err != nil {
				return err
			}
			continue
		}
		session := clean(h.Session)
		if h.Session == "" {
			session = "(missing)"
		}
		t.Rows = append(t.Rows, []string{session, p.when(h.Since), clean(h.By), clean(h.Reason)})
	}
	switch {
	case a.json:
	case len(all) == 0:
		p.Printf("no session is on hold\n")
	default:
		p.Print(t)
	}
	return p.Flush()
}
