package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/upkeep/erase"
)

func (a *app) redactCommand() *cobra.Command {
	r := redactRun{app: a}
	cmd := a.command(&cobra.Command{
		Use:   "redact SESSION SEQ... | --match TEXT [SESSION...] | --bodies [SESSION...] | --repeat STORE",
		Short: "Erase the content of events for good; the chain still verifies",
		Long: `Erase data, metadata and unshared bodies of events. SEQ is a number or a range like
5-9. The place, type, hash and structure of each event remain. Some events are erased
along, here and in forks: later snapshots, raw records and titles that repeat the
content. So are the saved torn tails and the backup copies of the session in the store.

With --match, --match-file or --regexp, redact erases every event that has the text
anywhere: in members that search does not read, in names, in bodies, with JSON's escapes,
in base64. It searches the named sessions or all sessions, ignores case and Unicode's
normalization, then looks for the text in the store's files, and reports what no
redaction erases. --match-file keeps the text out of the shell's history.

With --bodies, redact erases the bodies of requests to models and of their answers, and
nothing along with them: steps, usage and snapshots stay. --older keeps newer bodies.
--repeat repeats the redactions of another store: of the original of this one or a copy.

redact does not ask: try --dry-run first. It lists the erased events, and the events
that may repeat the content and were not touched. Sessions on hold stay.`,
		Example: `  logtool redact order-42 7 12-14 --reason 'a password' --dry-run
  logtool redact --match 'hunter2' --dry-run
  logtool redact --bodies --older 30d
  logtool --store backup.db redact --repeat log`,
		Args: between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.command(cmd, args) },
	}, traits{section: secErase, verb: "erasing", args: []argument{sessionArg, seqArg, more}, exits: "0 done, 1 failed, nothing found, or the text is left, 2 wrong usage."})
	cmd.Flags().StringVar(&r.reason, "reason", "", "why, for the event that records the redaction")
	byFlag(cmd, &r.by)
	cmd.Flags().BoolVar(&r.dry, "dry-run", false, "list the events, and erase nothing")
	cmd.Flags().StringArrayVar(&r.texts, "match", nil, "erase all events that have this text; may be repeated")
	cmd.Flags().StringArrayVar(&r.files, "match-file", nil, "erase all events with the text in this `file`; - is standard input")
	cmd.Flags().BoolVar(&r.raw, "bodies", false, "erase the bodies of requests and answers")
	cmd.Flags().StringVar(&r.older, "older", "", "with --bodies: erase bodies of this `age` only, for example 30d")
	cmd.Flags().StringVar(&r.from, "repeat", "", "repeat the redactions of this store, written as the `place` of --store")
	cmd.Flags().StringArrayVar(&r.opTrees, "op-trees", nil, "remove this `folder`'s op tree files of erased sessions; may be repeated")
	cmd.Flags().StringVar(&r.expression, "regexp", "", "erase all events that match this regular expression; (?-i) distinguishes case")
	return cmd
}

// command runs redact for seqs or for a pattern.
func (r *redactRun) command(cmd *cobra.Command, args []string) error {
	m := forChanging
	if r.dry {
		m = forReading
	}
	r.printer = r.app.printer()
	if len(r.texts)+len(r.files) > 0 || r.expression != "" {
		pattern, err := r.pattern()
		if err != nil {
			return usagef("%v", err)
		}
		return r.app.with(m, func(log *eventlog.Log) error { return r.match(cmd.Context(), log, pattern, args) })
	}
	if r.raw {
		before, err := r.before()
		if err != nil {
			return err
		}
		return r.app.with(m, func(log *eventlog.Log) error { return r.bodies(cmd.Context(), log, before, args) })
	}
	if r.older != "" {
		return usagef("--older is for --bodies")
	}
	if r.from != "" {
		return r.repeat(cmd.Context(), m, args)
	}
	if len(args) < 2 {
		return usagef("too few arguments: logtool %s", cmd.Use)
	}
	picked, err := parseSeqs(args[1:])
	if err != nil {
		return err
	}
	return r.app.with(m, func(log *eventlog.Log) error {
		session, err := exactly(cmd.Context(), log, args[0])
		if err != nil {
			return err
		}
		return r.run(cmd.Context(), log, session, picked)
	})
}

// seqRange is a range of seqs, both ends in it.
type seqRange struct{ from, to int64 }

// parseSeqs parses seqs and ranges of seqs.
func parseSeqs(words []string) ([]seqRange, error) {
	var picked []seqRange
	for _, word := range words {
		first, last, ranged := strings.Cut(word, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 63)
		to, err2 := strconv.ParseUint(last, 10, 63)
		if err1 != nil || err2 != nil || from == 0 || to < from {
			return nil, usagef("%q is not a seq: give a number from 1 on, or a range like 5-9", word)
		}
		picked = append(picked, seqRange{int64(from), int64(to)})
	}
	return picked, nil
}

// within are the seqs of the ranges. A seq after last is an error.
func within(picked []seqRange, last int64) ([]int64, error) {
	var seqs []int64
	for _, r := range picked {
		if r.to > last {
			return nil, fmt.Errorf("event %d: %w: the last one is %d", r.to, eventlog.ErrEventNotFound, last)
		}
		for seq := r.from; seq <= r.to; seq++ {
			seqs = append(seqs, seq)
		}
	}
	return seqs, nil
}

// redactRun is one run of redact.
type redactRun struct {
	app *app
	*printer
	reason     string
	by         string
	dry        bool
	texts      []string // of --match
	files      []string // of --match-file
	expression string   // of --regexp
	from       string   // of --repeat
	raw        bool     // of --bodies
	older      string   // of --older
	opTrees    []string // of --op-trees
	removed    []string // op tree files
}

// options are the options of the redaction.
func (r *redactRun) options() erase.RedactOptions {
	return erase.RedactOptions{Reason: r.reason, By: r.app.user(r.by), DryRun: r.dry}
}

// before is the time of --older; zero without it.
func (r *redactRun) before() (time.Time, error) {
	age, ok := listing.ParseAgo(r.older)
	switch {
	case r.older == "":
		return time.Time{}, nil
	case !ok:
		return time.Time{}, usagef("--older is an age (36h, 30d, 12w), not %q", r.older)
	}
	return r.app.now().Add(-age), nil
}

// bodies erases the bodies of requests and answers.
func (r *redactRun) bodies(ctx context.Context, log *eventlog.Log, before time.Time, args []string) error {
	sessions, err := findEach(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
	if err != nil {
		return err
	}
	done, err := erase.Raw(ctx, log, before, sessions, r.options())
	return r.print(ctx, log, &done, err)
}

// repeat repeats the redactions of another store.
func (r *redactRun) repeat(ctx context.Context, m mode, args []string) error {
	if len(args) > 0 {
		return usagef("--repeat takes no sessions: it repeats all redactions of the store")
	}
	at, err := r.app.placeNamed(r.from)
	if err != nil {
		return err
	}
	return r.app.with(m, func(log *eventlog.Log) error {
		return at.with(forReading, func(from *eventlog.Log) error {
			done, err := erase.From(ctx, log, from, r.options())
			return r.print(ctx, log, &done, err)
		})
	})
}

func (r *redactRun) run(ctx context.Context, log *eventlog.Log, session string, picked []seqRange) error {
	head, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	seqs, err := within(picked, head.Seq)
	if err != nil {
		return fmt.Errorf("redact in session %q: %w", session, err)
	}
	done, err := erase.Redact(ctx, log, session, seqs, r.options())
	return r.print(ctx, log, &done, err)
}

// print prints the outcome of a redaction, also of one that is unfinished.
func (r *redactRun) print(ctx context.Context, log *eventlog.Log, done *erase.Redaction, failed error) error {
	if failed != nil && len(done.Erased) == 0 {
		return redactError(failed)
	}
	err := errors.Join(r.eraseOpTrees(done), r.nameFiles(ctx, log, done))
	if r.app.json {
		err = errors.Join(err, r.Value(r.row(done)))
	} else {
		r.report(done)
	}
	return cmp.Or(redactError(failed), errors.Join(err, r.Flush()))
}

// nameFiles adds the files of programs that may have the erased content to the places that
// keep it.
func (r *redactRun) nameFiles(ctx context.Context, log *eventlog.Log, done *erase.Redaction) error {
	var sessions []string
	for _, e := range done.Erased {
		if !slices.Contains(sessions, e.Session) {
			sessions = append(sessions, e.Session)
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	files, err := r.app.transcripts(ctx, log, sessions)
	for _, path := range files {
		done.Retained = append(done.Retained, eventlog.Retained{Where: clean(path), Remedy: transcriptRemedy})
	}
	return err
}

// redactError adds a hint to a failed redaction.
func redactError(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrUnknownOutcome):
		return fmt.Errorf("%w; run the same redaction again: it completes it", err)
	case errors.Is(err, event.ErrInvalidType):
		return fmt.Errorf("%w: it has no content to erase; leave it out", err)
	}
	return err
}

func (r *redactRun) report(done *erase.Redaction) {
	erased, sum := "erased", "erased"
	if r.dry {
		erased, sum = "would erase", "to erase"
	}
	places := map[erase.EventRef][]string{} // of a text, by event
	for _, p := range done.Places {
		e := erase.EventRef{Session: p.Session, Seq: p.Seq, Type: p.Type}
		places[e] = append(places[e], placeText(p))
	}
	for _, e := range done.Erased {
		if len(places[e]) == 0 {
			places[e] = []string{reference(e)}
		}
		for _, place := range places[e] {
			r.Printf("%s %s\n", erased, place)
		}
	}
	for _, b := range done.Blobs {
		r.Printf("%s blob %s, %s\n", erased, b.Blob, size(b.Bytes))
	}
	for _, t := range done.TornTails {
		r.Printf("%s %s of session %s\n", erased, tailText(t), clean(t.Session))
	}
	r.reportOpTrees(erased)
	for _, seq := range done.Already {
		r.Printf("event %d is redacted already\n", seq)
	}
	for _, e := range done.Untouched {
		r.Printf("%s %s: it may repeat the content; redact it too if it does\n", r.Paint(term.Yellow, "not touched:"), reference(e))
	}
	for _, session := range done.Unread {
		r.Printf("%s session %s, which is damaged: it may be a fork or a copy\n", r.Paint(term.Yellow, "not touched:"), clean(session))
	}
	for _, kept := range done.Retained {
		r.Printf("%s %s: %s\n", r.Paint(term.Yellow, "not touched:"), clean(kept.Where), kept.Remedy)
	}
	events, blobs := int64(len(done.Erased)), int64(len(done.Blobs))
	text := amounts(amount{events, "event"}, amount{blobs, "blob"}) + " " + sum
	if events+blobs > 0 {
		text += ". " + beyond
	}
	r.Printf("%s\n", text)
}

// beyond names the copies that no redaction reaches.
const beyond = "Backups, exports, op tree files (--op-trees), other copies of the files and snapshots of the file system are not touched."

func reference(e erase.EventRef) string {
	return fmt.Sprintf("event %d of %s, %s", e.Seq, clean(e.Session), clean(string(e.Type)))
}

func tailText(t eventlog.TornTail) string {
	if t.Whole {
		return fmt.Sprintf("the damaged end, %s that may contain events,", size(t.Bytes))
	}
	return fmt.Sprintf("the torn tail, %s,", size(t.Bytes))
}

// redactionRow is a redaction with --json.
type redactionRow struct {
	Session   string       `json:"session,omitzero"`
	DryRun    bool         `json:"dry_run,omitzero"`
	Erased    []eventRef   `json:"erased"`
	Blobs     []garbageRow `json:"blobs"`
	TornTails []garbageRow `json:"torn_tails"`
	Already   []int64      `json:"already"`
	Untouched []eventRef   `json:"untouched"`
	Unread    []string     `json:"unread"`
	Retained  []retained   `json:"retained,omitzero"`
	OpTrees   []string     `json:"op_trees,omitzero"` // removed files
}

// retained is a place outside the store that keeps the erased bytes.
type retained struct {
	Where  string `json:"where"`
	Remedy string `json:"remedy"`
}

// eventRef names an event.
type eventRef struct {
	Session string     `json:"session"`
	Seq     int64      `json:"seq"`
	Type    event.Type `json:"type"`
}

func (r *redactRun) row(done *erase.Redaction) redactionRow {
	row := redactionRow{
		Session: done.Session, DryRun: r.dry, OpTrees: r.removed, Already: done.Already, Unread: done.Unread,
		Erased: references(done.Erased), Untouched: references(done.Untouched),
	}
	for _, b := range done.Blobs {
		row.Blobs = append(row.Blobs, garbageRow{Blob: b.Blob, Bytes: b.Bytes})
	}
	for _, kept := range done.Retained {
		row.Retained = append(row.Retained, retained(kept))
	}
	for _, t := range done.TornTails {
		row.TornTails = append(row.TornTails, garbageRow{Path: t.Path, Bytes: t.Bytes})
	}
	return row
}

func references(events []erase.EventRef) []eventRef {
	var refs []eventRef
	for _, e := range events {
		refs = append(refs, eventRef(e))
	}
	return refs
}
