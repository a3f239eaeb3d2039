package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/upkeep/retire"
)

// retireOptions are the flags of retire.
type retireOptions struct {
	idle    string
	reason  string
	by      string
	archive string
	yes     bool
	dry     bool
}

func (a *app) retireCommand() *cobra.Command {
	var x retireOptions
	cmd := a.command(&cobra.Command{
		Use:   "retire --idle AGE",
		Short: "Archive and remove the sessions that nobody has used for a time",
		Long: `List the sessions whose newest event is older than AGE (90d, 12w, 36h). With --yes,
remove them for good; with --archive too, copy them to the folder DIR first. Without
--yes nothing changes.

DIR becomes a store: verify checks it, --store reads it, and convert brings sessions
back. It also gets the parents that forks need, and a manifest retired-TIME.json that
says what went. The copies are verified and everything is on disk before the first
session is removed. DIR may be the archive of an earlier retirement.

A session stays if one of its forks stays, if it is damaged or on hold, or if it is used
meanwhile; retire lists it with the reason. Run an interrupted retire again: it
continues. logtool store gc then removes the bodies that no other session needs.`,
		Example: "  logtool store retire --idle 90d --archive ~/logs-archive --yes",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			before, err := x.before(a.now())
			if err != nil {
				return err
			}
			return a.retire(cmd.Context(), before, x)
		},
	}, traits{verb: "retiring"})
	cmd.Flags().StringVar(&x.idle, "idle", "", "the `age` of the newest event, for example 90d")
	cmd.Flags().StringVar(&x.archive, "archive", "", "copy the sessions to this folder before they are removed")
	cmd.Flags().StringVar(&x.reason, "reason", "", "why, for the notes of the store; the age and the archive by default")
	byFlag(cmd, &x.by)
	cmd.Flags().BoolVarP(&x.yes, "yes", "y", false, "archive and remove; without it, retire only lists")
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "list the sessions, and change nothing (the default)")
	return cmd
}

// before is the time before which a session was used last.
func (x *retireOptions) before(now time.Time) (time.Time, error) {
	idle, ok := listing.ParseAgo(x.idle)
	switch {
	case x.idle == "":
		return time.Time{}, usagef("how long must a session be idle? Give --idle, as in --idle 90d")
	case !ok:
		return time.Time{}, usagef("--idle is an age (36h, 90d, 12w), not %q", x.idle)
	case x.yes && x.dry:
		return time.Time{}, usagef("--yes removes and --dry-run does not: give one of them")
	}
	return now.Add(-idle), nil
}

func (a *app) retire(ctx context.Context, before time.Time, x retireOptions) error {
	src, err := a.place()
	if err != nil {
		return err
	}
	r := retireRun{app: a, printer: a.printer(), options: x}
	if x.archive != "" {
		if r.archive, err = a.archivePlace(src, x.archive); err != nil {
			return err
		}
	}
	m := forChanging
	if !x.yes {
		m = forReading
	}
	return src.with(m, func(log *eventlog.Log) error { return errors.Join(r.run(ctx, log, before), r.Flush()) })
}

// archivePlace is the folder of an archive. It rejects the store itself.
func (a *app) archivePlace(src place, text string) (place, error) {
	at, err := a.placeNamed(text)
	switch {
	case err != nil:
		return at, err
	case at.kind != kindJSONL || isFile(at.path):
		return at, usagef("the archive is a folder: %s is not", shown(text))
	}
	return at, target{at, at.path}.checkApart(src)
}

// retireRun is one run of retire.
type retireRun struct {
	app *app
	*printer
	options retireOptions
	archive place
}

func (r *retireRun) run(ctx context.Context, log *eventlog.Log, before time.Time) error {
	plan, err := retire.NewPlan(ctx, log, before)
	if err != nil || !r.options.yes {
		return errors.Join(err, r.list(plan))
	}
	plan.By, plan.Reason = r.app.user(r.options.by), r.reason()
	for _, step := range r.steps(log, plan) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return r.list(plan)
}

// reason is the value of --reason, else the age and the archive.
func (r *retireRun) reason() string {
	text := "idle for " + r.options.idle
	if r.options.archive != "" {
		text += ", archived in " + r.options.archive
	}
	return cmp.Or(r.options.reason, text)
}

// steps are the steps of a retirement, in order. After any of them the process may be
// killed.
func (r *retireRun) steps(log *eventlog.Log, plan *retire.Plan) (steps []func(context.Context) error) {
	if r.options.archive != "" && len(plan.Sessions) > 0 {
		steps = append(steps,
			func(ctx context.Context) error {
				return r.archive.with(forWriting, func(dst *eventlog.Log) error { return plan.Archive(ctx, dst, log) })
			},
			func(context.Context) error {
				path, err := plan.WriteManifest(r.archive.path, r.app.now())
				if err == nil && !r.app.json {
					r.Printf("archived %s in %s, as %s says\n", count(len(plan.Sessions), "session"), clean(r.archive.path), clean(path))
				}
				return err
			})
	}
	return append(steps, func(ctx context.Context) error { return plan.Remove(ctx, log) })
}

// retiredRow is a session with --json.
type retiredRow struct {
	Session string    `json:"session"`
	Events  int64     `json:"events,omitzero"`
	Bytes   int64     `json:"bytes,omitzero"`
	Last    time.Time `json:"last"`
	Kept    string    `json:"kept,omitzero"`
	DryRun  bool      `json:"dry_run,omitzero"`
}

// mostAlike is how many sessions that stay for one reason are listed one by one.
const mostAlike = 5

// list prints the sessions that were retired, or would be, and the sessions that stay.
func (r *retireRun) list(plan *retire.Plan) error {
	if plan == nil {
		return nil
	}
	verb, gone := "removed", plan.Removed
	if !r.options.yes {
		verb, gone = "would remove", plan.Sessions
	}
	var rows []retiredRow
	events, bytes := int64(0), int64(0)
	for _, s := range gone {
		rows = append(rows, retiredRow{Session: s.ID, Events: s.Events, Bytes: s.Bytes, Last: s.Last.UTC(), DryRun: !r.options.yes})
		events, bytes = events+s.Events, bytes+s.Bytes
	}
	for _, k := range plan.Kept {
		rows = append(rows, retiredRow{Session: k.ID, Last: k.Last.UTC(), Kept: k.Reason, DryRun: !r.options.yes})
	}
	alike := map[string]int{}
	for _, row := range rows {
		alike[row.Kept]++
	}
	for _, row := range rows {
		switch n := alike[row.Kept]; {
		case r.app.json:
			if err := r.Value(row); err != nil {
				return err
			}
		case row.Kept != "" && n > mostAlike:
			r.Printf("%s %s: %s; --json lists them\n", r.Paint(term.Yellow, "stay"), count(n, "session"), clean(row.Kept))
			alike[row.Kept] = 0
		case row.Kept != "" && n == 0: // counted
		case row.Kept != "":
			r.Printf("%s %s: %s\n", r.Paint(term.Yellow, "stays"), clean(row.Session), clean(row.Kept))
		default:
			r.Printf("%s %s: %s, %s, last used %s\n", verb, clean(row.Session), count(row.Events, "event"), size(row.Bytes), r.when(row.Last))
		}
	}
	if !r.app.json {
		r.Printf("%s, %s, %s %s%s\n", count(len(gone), "session"), count(events, "event"), size(bytes), r.sum(), r.hint(len(gone)))
	}
	return nil
}

func (r *retireRun) sum() string {
	if r.options.yes {
		return "removed"
	}
	return "to remove"
}

// hint is the next command.
func (r *retireRun) hint(gone int) string {
	switch {
	case gone == 0:
		return ""
	case r.options.yes:
		return "; logtool store gc removes the bodies that no other session needs"
	case r.options.archive == "":
		return "; --yes removes them, and --archive DIR keeps copies"
	}
	return fmt.Sprintf("; --yes archives them in %s and removes them", clean(r.archive.path))
}
