package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) repairCommand() *cobra.Command {
	r := repairRun{app: a}
	cmd := a.command(&cobra.Command{
		Use:   "repair [SESSION...]",
		Short: "Salvage readable events of damaged sessions; truncate torn tails",
		Long: `Repair the sessions named, or all damaged sessions. The torn tail of an interrupted
write is truncated, in the same way as by the next append, and saved in a file beside
the session. Of a damaged session, every readable event is copied to a new session
(its id ends in -salvaged) at the same seq, with a lost event for each unreadable
one. The damaged session does not change.

With --in-place the repaired session replaces the damaged one, after a copy of it.
With --into it goes to another store, under its own id. That also saves the sessions
of a sqlite file whose first page is lost ("not a database").

With --backup, events that cannot be read, and those after the last event, are taken from
an older copy of the store. If the copy has all of them, the session is as it was.

A second repair finishes an interrupted one; after a complete repair it changes
nothing.`,
		Example: "  logtool --store damaged.db store repair --into rescued.db",
		Args:    between(0, -1),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.open(cmd.Context(), args) },
	}, traits{verb: "repairing", args: []argument{sessionArg, more}, exits: "0 done, 1 failed, or a defect remains, 2 wrong usage."})
	newIDFlag(cmd, &r.as)
	intoFlag(cmd, &r.into)
	cmd.Flags().StringVar(&r.backup, "backup", "", "take unreadable events from this copy of the store")
	cmd.Flags().BoolVar(&r.inPlace, "in-place", false, "replace the damaged session, and keep a copy")
	cmd.Flags().BoolVar(&r.dry, "dry-run", false, "list the repairs, and change nothing")
	return cmd
}

// repairRun is one run of repair.
type repairRun struct {
	*app
	*printer
	as, into     string
	backup       string
	inPlace, dry bool

	opts repair.Options
	sum  repairSum

	all      bool     // no session is named
	lostPage bool     // the store is a copy of a database whose first page is lost
	sound    []string // the sessions of the copy without damage
}

// repairSum is the sum of a run of repair, with --json.
type repairSum struct {
	Sessions int64 `json:"sessions"`
	Sound    int64 `json:"sound"`
	Cut      int64 `json:"cut"`
	Salvaged int64 `json:"salvaged"`
	Failed   int64 `json:"failed"`
	// Unmended counts the sessions with defects that remain.
	Unmended int64 `json:"unmended"`
}

// open opens the stores and repairs.
func (r *repairRun) open(ctx context.Context, args []string) error {
	switch {
	case r.as != "" && len(args) != 1:
		return usagef("--as is for one session: name the session to repair")
	case r.inPlace && (r.as != "" || r.into != ""):
		return usagef("--in-place goes without --as and --into")
	}
	r.printer = r.app.printer()
	r.all = len(args) == 0
	r.opts = repair.Options{As: r.as, InPlace: r.inPlace, DryRun: r.dry}
	from, err := r.place()
	if err != nil {
		return err
	}
	run := func(log *eventlog.Log) error { return r.run(ctx, log, args) }
	if r.backup != "" {
		backup, err := r.otherPlace(from, r.backup)
		if err != nil {
			return err
		}
		repairs := run
		run = func(log *eventlog.Log) error {
			return backup.with(forReading, func(copied *eventlog.Log) error {
				r.opts.Backup = copied
				return repairs(log)
			})
		}
	}
	switch {
	case r.into != "":
		return r.withFirstPage(ctx, from, func(from place) error { return r.openBoth(ctx, from, run) })
	case r.dry:
		return from.with(forReading, run)
	}
	return from.with(forChanging, run)
}

// withFirstPage calls do with a temporary copy of a database whose first page is lost, which has a
// new one. It calls do with any other place as it is.
func (r *repairRun) withFirstPage(ctx context.Context, from place, do func(place) error) error {
	if from.kind != kindSQLite {
		return do(from)
	}
	dir, err := os.MkdirTemp("", "logtool-repair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store := sqlite.New(from.path, sqlite.Options{ReadOnly: true})
	to := filepath.Join(dir, filepath.Base(from.path))
	copied, err := store.CopyWithFirstPage(ctx, to)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	if copied {
		r.note("the first page of %s is lost: its sessions are read from a copy with a new one", clean(from.path))
		from.path, r.lostPage = to, true
	}
	return do(from)
}

// openBoth opens the damaged store for reading, and the destination.
func (r *repairRun) openBoth(ctx context.Context, from place, run func(*eventlog.Log) error) error {
	to, err := r.otherPlace(from, r.into)
	if err != nil {
		return err
	}
	m := forWriting
	if r.dry {
		if to.exists() != nil { // a dry run does not create it
			return from.with(forReading, run)
		}
		m = forReading
	}
	return from.with(forReading, func(damaged *eventlog.Log) error {
		return to.with(m, func(log *eventlog.Log) error {
			r.opts.Into = log
			return errors.Join(run(damaged), r.copySound(ctx, log, damaged))
		})
	})
}

// copySound copies the sessions without damage too, if they cannot be read where they are.
func (r *repairRun) copySound(ctx context.Context, to, from *eventlog.Log) error {
	if !r.lostPage || r.dry || len(r.sound) == 0 {
		return nil
	}
	opts := transfer.Options{Sessions: r.sound}
	if int64(len(r.sound)) == r.sum.Sessions && r.all {
		opts.Sessions = nil // the notes of the store too
	}
	return r.convert(ctx, to, from, opts)
}

func (r *repairRun) run(ctx context.Context, log *eventlog.Log, args []string) error {
	sessions, err := r.verifiable(ctx, log, args)
	if err != nil {
		return err
	}
	step := r.steps(len(sessions))
	var failed []error
	for _, session := range sessions {
		done, err := repair.Session(ctx, log, session, r.opts)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, err)
		} else if done.Action != repair.Salvage && done.Action != repair.Cut {
			r.sound = append(r.sound, session)
		}
		step()
		if err := r.report(session, done, err, len(args) > 0 || len(sessions) == 1); err != nil {
			return err
		}
	}
	if err := r.total(); err != nil {
		return err
	}
	switch len(failed) {
	case 0:
		return r.remaining()
	case 1:
		return repairError{failed[0]}
	}
	return fmt.Errorf("%s could not be repaired, as listed", count(len(failed), "session"))
}

// remaining is the error for defects that no repair removes.
func (r *repairRun) remaining() error {
	if r.sum.Unmended == 0 {
		return nil
	}
	return fmt.Errorf("%s with defects that remain, as listed: restore the missing parts from a copy of the store", count(r.sum.Unmended, "session"))
}

// report prints the repair of one session. An undamaged session is printed only if
// the user named it.
func (r *repairRun) report(session string, done repair.Report, err error, named bool) error {
	r.sum.add(done, err)
	switch {
	case r.json:
		return r.Value(newRepairRow(session, &done, r.dry, err))
	case err != nil:
		r.Printf("%s %s: %s\n", r.Paint(term.Red, "failed"), clean(session), clean(err.Error()))
	case done.Action == repair.Salvage:
		r.salvaged(&done)
	case done.Action == repair.Cut:
		r.cut(&done)
	case len(done.Unmended) > 0:
		r.Printf("%s: its lines are sound, and no repair is possible for the rest\n", clean(session))
		r.unmended(&done)
	case named:
		r.Printf("%s: sound\n", clean(session))
	}
	return nil
}

func (s *repairSum) add(done repair.Report, err error) {
	s.Sessions++
	if len(done.Unmended) > 0 {
		s.Unmended++
	}
	switch {
	case err != nil:
		s.Failed++
	case done.Action == repair.Salvage:
		s.Salvaged++
	case done.Action == repair.Cut:
		s.Cut++
	default:
		s.Sound++
	}
}

func (r *repairRun) cut(done *repair.Report) {
	if r.dry {
		r.Printf("%s: would cut off a torn tail of %s at byte %d\n", clean(done.Session), count(done.Torn.Bytes, "byte"), done.Torn.Offset)
		return
	}
	r.Printf("%s: cut off a torn tail of %s at byte %d, saved to %s\n",
		clean(done.Session), count(done.Torn.Bytes, "byte"), done.Torn.Offset, clean(done.Saved))
}

func (r *repairRun) salvaged(done *repair.Report) {
	copied := ""
	if done.Copied > 0 {
		copied = fmt.Sprintf("%s from the backup, ", thousands(done.Copied))
	}
	r.Printf("%s: %s kept, %s%s lost, %s\n", clean(done.Session), count(done.Kept, "event"), copied, thousands(lostIn(done)), r.where(done))
	for _, l := range done.Lost {
		r.Printf("  lost %s%s: %s\n", seqsText(l.From, l.To), byteRange(l.Offset, l.Bytes), clean(l.Reason))
	}
	for _, i := range done.Ignored {
		r.Printf("  left out %s of %s%s: %s\n", seqsText(i.From, i.To), clean(i.Session), byteRange(i.Offset, i.Bytes), clean(i.Reason))
	}
	if t := done.Torn; t.Bytes > 0 {
		r.Printf("  left out a torn tail%s\n", byteRange(t.Offset, t.Bytes))
	}
	r.unmended(done)
	if done.Copy != "" {
		r.Printf("  the damaged session is kept in %s\n", clean(done.Copy))
	}
	if !r.dry && !r.inPlace && r.into == "" {
		r.Printf("  continue with %s; %s does not change until you remove it\n", clean(done.As), clean(done.Session))
	}
}

// unmended lists the defects that remain.
func (r *repairRun) unmended(done *repair.Report) {
	for _, d := range done.Unmended {
		r.Printf("  %s event %d: %s: %s\n", r.Paint(term.Yellow, "unmended"), d.Seq, clean(d.Rule), clean(d.Detail))
	}
}

// where names the session with the salvaged events.
func (r *repairRun) where(done *repair.Report) string {
	text := "as " + clean(done.As)
	if r.inPlace {
		text = "in place"
		if done.Resealed > 0 {
			text = fmt.Sprintf("in place, from event %d on", done.Resealed)
		}
	}
	if r.into != "" {
		text += " in " + clean(r.into)
	}
	switch {
	case r.dry:
		text += " (dry run)"
	case done.Stored == 0:
		text += ", where they are already"
	}
	return text
}

func lostIn(done *repair.Report) (n int64) {
	for _, l := range done.Lost {
		n += l.To - l.From + 1
	}
	return n
}

func seqsText(from, to int64) string {
	if from == to {
		return fmt.Sprintf("event %d", from)
	}
	return fmt.Sprintf("events %d-%d", from, to)
}

// byteRange names a range of bytes; empty without an offset.
func byteRange(offset, bytes int64) string {
	if offset < 0 {
		return ""
	}
	return fmt.Sprintf(" at byte %d, %s", offset, count(bytes, "byte"))
}

func (r *repairRun) total() error {
	if r.json {
		return errors.Join(r.Value(r.sum), r.Flush())
	}
	var parts []string
	salvaged, cut := "salvaged", "cut"
	if r.dry {
		salvaged, cut = "to salvage", "to cut"
	}
	for _, part := range []struct {
		n    int64
		word string
	}{{r.sum.Salvaged, salvaged}, {r.sum.Cut, cut}, {r.sum.Failed, "failed"}, {r.sum.Sound, "sound"}} {
		if part.n > 0 {
			parts = append(parts, thousands(part.n)+" "+part.word)
		}
	}
	if r.sum.Sessions != 1 {
		r.Printf("%s: %s\n", count(r.sum.Sessions, "session"), strings.Join(parts, ", "))
	}
	return r.Flush()
}

// repairRow is a session with --json.
type repairRow struct {
	Session  string            `json:"session"`
	Action   repair.Action     `json:"action,omitzero"`
	DryRun   bool              `json:"dry_run,omitzero"`
	As       string            `json:"as,omitzero"`
	Path     string            `json:"path,omitzero"`
	Kept     int64             `json:"kept"`
	Copied   int64             `json:"copied,omitzero"`
	Stored   int64             `json:"stored"`
	Lost     []lostEvents      `json:"lost,omitzero"`
	Ignored  []ignoredLines    `json:"ignored,omitzero"`
	Torn     *tornBytes        `json:"torn,omitzero"`
	Resealed int64             `json:"resealed,omitzero"`
	Copy     string            `json:"copy,omitzero"`
	Unmended []eventlog.Defect `json:"unmended,omitzero"`
	Seq      int64             `json:"seq"`
	Hash     string            `json:"hash"`
	Error    string            `json:"error,omitzero"`
}

type lostEvents struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

type ignoredLines struct {
	Session string `json:"session"`
	lostEvents
}

type tornBytes struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Saved  string `json:"saved,omitzero"`
}

func newRepairRow(session string, done *repair.Report, dry bool, err error) repairRow {
	row := repairRow{Session: session, Action: done.Action, DryRun: dry, As: done.As, Path: done.Path, Kept: done.Kept, Copied: done.Copied, Stored: done.Stored,
		Resealed: done.Resealed, Copy: done.Copy, Unmended: done.Unmended, Seq: done.Head.Seq, Hash: done.Head.Hash.String()}
	for _, l := range done.Lost {
		row.Lost = append(row.Lost, lostEvents{l.From, l.To, l.Offset, l.Bytes, l.Reason})
	}
	for _, i := range done.Ignored {
		row.Ignored = append(row.Ignored, ignoredLines{i.Session, lostEvents{i.From, i.To, i.Offset, i.Bytes, i.Reason}})
	}
	if t := done.Torn; t.Bytes > 0 {
		row.Torn = &tornBytes{t.Offset, t.Bytes, done.Saved}
	}
	if err != nil {
		row.Error = err.Error()
	}
	return row
}

// repairError is a failure to repair a session.
type repairError struct{ error }

func (e repairError) Unwrap() error { return e.error }

var repairHints = []errorHint{
	{eventlog.ErrExists, "choose another id with --as"},
	{eventlog.ErrInUse, "repair without --in-place, or into another store (--into), where the forks follow"},
	{eventlog.ErrConflict, "other processes append: stop them, or repair without --in-place"},
	{event.ErrVersion, "use a newer logtool"},
	{eventlog.ErrCorrupt, "repair into another store (--into), or restore it from a copy"},
}

func (e repairError) hint() string {
	var hopeless *repair.Error
	if errors.As(e.error, &hopeless) {
		return "restore it from a copy"
	}
	return hintIn(repairHints, e.error)
}
