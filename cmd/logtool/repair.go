package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/repair"
)

func (a *app) repairCommand() *cobra.Command {
	r := repairRun{app: a}
	cmd := &cobra.Command{
		Use:   "repair [SESSION...]",
		Short: "Salvage what can be read of damaged sessions; cut off torn tails",
		Long: `Repair the sessions named, or all that need it. What an unfinished write left at
the end of a session is cut off, as the next append would do, and kept in a file
beside it. From a damaged session, every event that can be read is written to a
new session (its id with -salvaged behind it), at its place, with a lost event
for each that cannot. The damaged session is not touched.

With --in-place the repaired session takes the place of the damaged one, of which
a copy is kept first. With --into it goes to another store, under its own id.

A repair that is repeated finishes what was interrupted, and changes nothing
where it was done. Exit code 1 means that something could not be repaired.`,
		Example: "  logtool repair --dry-run\n  logtool repair order-42\n  logtool --store damaged.db repair --into rescued.db",
		Args:    between(0, -1),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.open(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&r.as, "as", "", "the id of the new session")
	cmd.Flags().StringVar(&r.into, "into", "", "another store to write to, named like --store")
	cmd.Flags().BoolVar(&r.inPlace, "in-place", false, "replace the damaged session, and keep a copy")
	cmd.Flags().BoolVarP(&r.dry, "dry-run", "n", false, "say what would be done, and change nothing")
	return cmd
}

// repairing is one run of repair.
type repairRun struct {
	*app
	*printer
	as, into     string
	inPlace, dry bool

	opts repair.Options
	sum  repairSum
}

// repairs sums up a run of repair.
type repairSum struct {
	Sessions int64 `json:"sessions"`
	Sound    int64 `json:"sound"`
	Cut      int64 `json:"cut"`
	Salvaged int64 `json:"salvaged"`
	Failed   int64 `json:"failed"`
	// Unmended are those of the sessions above that have defects which stay.
	Unmended int64 `json:"unmended"`
}

// open opens the stores and repairs.
func (r *repairRun) open(ctx context.Context, args []string) error {
	switch {
	case r.as != "" && len(args) != 1:
		return usagef("--as names one session: say which is to be repaired")
	case r.inPlace && (r.as != "" || r.into != ""):
		return usagef("--in-place goes without --as and --into")
	}
	r.printer = r.app.printer()
	r.opts = repair.Options{As: r.as, InPlace: r.inPlace}
	from, err := r.place()
	if err != nil {
		return err
	}
	run := func(log *eventlog.Log) error { return r.run(ctx, log, args) }
	switch {
	case r.into != "":
		return r.openBoth(from, run)
	case r.dry:
		return from.with(forReading, run)
	}
	return from.with(forChanging, run)
}

// openBoth opens the damaged store for reading, and the other.
func (r *repairRun) openBoth(from place, run func(*eventlog.Log) error) error {
	_, to, err := twoPlaces(from.String(), r.into)
	if err != nil {
		return err
	}
	m := forWriting
	if r.dry {
		if to.exists() != nil { // nothing is there yet, and nothing is made
			return from.with(forReading, run)
		}
		m = forReading
	}
	return from.with(forReading, func(damaged *eventlog.Log) error {
		return to.with(m, func(log *eventlog.Log) error {
			r.opts.Into = log
			return run(damaged)
		})
	})
}

func (r *repairRun) run(ctx context.Context, log *eventlog.Log, args []string) error {
	sessions, err := r.verifiable(ctx, log, args)
	if err != nil {
		return err
	}
	var failed []error
	for _, session := range sessions {
		done, err := r.one(ctx, log, session)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, err)
		}
		if err := r.tell(session, done, err, len(args) > 0 || len(sessions) == 1); err != nil {
			return err
		}
	}
	if err := r.total(); err != nil {
		return err
	}
	switch len(failed) {
	case 0:
		return r.stays()
	case 1:
		return repairFailure{failed[0]}
	}
	return fmt.Errorf("%s could not be repaired, as listed", count(int64(len(failed)), "session"))
}

// stays is the error of defects that no repair mends.
func (r *repairRun) stays() error {
	if r.sum.Unmended == 0 {
		return nil
	}
	return fmt.Errorf("%s with defects that stay, as listed: bring back what is missing from a copy of the store", count(r.sum.Unmended, "session"))
}

func (r *repairRun) one(ctx context.Context, log *eventlog.Log, session string) (repair.Report, error) {
	r.opts.DryRun = r.dry
	return repair.Session(ctx, log, session, r.opts)
}

// tell prints what was done with one session. Of sound ones it speaks only to
// who named them.
func (r *repairRun) tell(session string, done repair.Report, err error, named bool) error {
	r.sum.add(done, err)
	switch {
	case r.json:
		return r.value(newRepairRow(session, &done, r.dry, err))
	case err != nil:
		r.printf("%s %s: %s\n", r.paint(red, "failed"), clean(session), clean(err.Error()))
	case done.Action == repair.Salvage:
		r.salvaged(&done)
	case done.Action == repair.Cut:
		r.cut(&done)
	case len(done.Unmended) > 0:
		r.printf("%s: its lines are sound, and nothing can be done about the rest\n", clean(session))
		r.unmended(&done)
	case named:
		r.printf("%s: sound\n", clean(session))
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
		r.printf("%s: would cut off a torn tail of %s at byte %d\n", clean(done.Session), count(done.Torn.Bytes, "byte"), done.Torn.Offset)
		return
	}
	r.printf("%s: cut off a torn tail of %s at byte %d, saved to %s\n",
		clean(done.Session), count(done.Torn.Bytes, "byte"), done.Torn.Offset, clean(done.Saved))
}

func (r *repairRun) salvaged(done *repair.Report) {
	r.printf("%s: %s kept, %s lost, %s\n", clean(done.Session), count(done.Kept, "event"), thousands(lostIn(done)), r.where(done))
	for _, l := range done.Lost {
		r.printf("  lost %s%s: %s\n", seqsText(l.From, l.To), stretch(l.Offset, l.Bytes), clean(l.Reason))
	}
	for _, i := range done.Ignored {
		r.printf("  left out %s of %s%s: %s\n", seqsText(i.From, i.To), clean(i.Session), stretch(i.Offset, i.Bytes), clean(i.Reason))
	}
	if t := done.Torn; t.Bytes > 0 {
		r.printf("  left out a torn tail%s\n", stretch(t.Offset, t.Bytes))
	}
	r.unmended(done)
	if done.Copy != "" {
		r.printf("  what was there is kept in %s\n", clean(done.Copy))
	}
	if !r.dry && !r.inPlace && r.into == "" {
		r.printf("  go on with %s; %s stays as it was, until you remove it\n", clean(done.As), clean(done.Session))
	}
}

// unmended lists the defects that stay.
func (r *repairRun) unmended(done *repair.Report) {
	for _, d := range done.Unmended {
		r.printf("  %s event %d: %s: %s\n", r.paint(yellow, "unmended"), d.Seq, clean(d.Rule), clean(d.Detail))
	}
}

// where says which session the events are in.
func (r *repairRun) where(done *repair.Report) string {
	text := "as " + clean(done.As)
	if r.inPlace {
		text = fmt.Sprintf("in place, from event %d on", done.Resealed)
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

// stretch says where bytes are, if there is such a place.
func stretch(offset, bytes int64) string {
	if offset < 0 {
		return ""
	}
	return fmt.Sprintf(" at byte %d, %s", offset, count(bytes, "byte"))
}

func (r *repairRun) total() error {
	if r.json {
		return errors.Join(r.value(r.sum), r.flush())
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
		r.printf("%s: %s\n", count(r.sum.Sessions, "session"), strings.Join(parts, ", "))
	}
	return r.flush()
}

// repaired is a session as repair prints it with --json.
type repairRow struct {
	Session  string            `json:"session"`
	Action   repair.Action     `json:"action,omitzero"`
	DryRun   bool              `json:"dry_run,omitzero"`
	As       string            `json:"as,omitzero"`
	Path     string            `json:"path,omitzero"`
	Kept     int64             `json:"kept"`
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
	row := repairRow{Session: session, Action: done.Action, DryRun: dry, As: done.As, Path: done.Path, Kept: done.Kept, Stored: done.Stored,
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

// repairFailure is why a session could not be repaired.
type repairFailure struct{ error }

func (e repairFailure) Unwrap() error { return e.error }

// hint says what to do instead.
func (e repairFailure) hint() string {
	var hopeless *repair.Error
	switch {
	case errors.As(e.error, &hopeless):
		return "restore it from a copy"
	case errors.Is(e.error, eventlog.ErrExists):
		return "choose another id with --as"
	case errors.Is(e.error, eventlog.ErrInUse):
		return "repair without --in-place, or into another store (--into), where the forks follow"
	case errors.Is(e.error, eventlog.ErrConflict):
		return "others keep appending: stop them, or repair without --in-place"
	case errors.Is(e.error, event.ErrVersion):
		return "use a newer logtool"
	case errors.Is(e.error, eventlog.ErrCorrupt):
		return "repair into another store (--into), or restore it from a copy"
	}
	return ""
}
