package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/upkeep/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	var heads []string
	var file, key string
	cmd := a.command(&cobra.Command{
		Use:        "verify [SESSION...]",
		SuggestFor: []string{"check", "fsck"},
		Short:      "Check checksums, hashes, blobs, parents, snapshots; exit 1: damage",
		Long: `Check all sessions and the store, or only the sessions named: every checksum, link
of the hash chain, seq, payload and blob, the rules of conversation, the parents of
forks, and the snapshots against a replay. verify lists all defects with their
places, and prints a count.

Notes are no damage: rules that an import broke and marked, effects of lost events
(for example results without a call), marks that a replay contradicts, and torn
tails.

A session that was rolled back to an earlier state, or made anew with other events,
is consistent by itself, and so is a store that lost a session. --heads compares the
store with a checkpoint that store heads printed and that you kept elsewhere, and --head
a session with a SEQ:HASH that append printed; a head that is missing is damage. A
session that rm or store retire removed since is a note.`,
		Example: "  logtool verify order-42 --json\n  logtool verify --heads heads-2026-11-28.txt",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := parseHeads(heads)
			if err != nil {
				return err
			}
			if len(known) > 0 && len(args) != 1 {
				return usagef("--head is for one session: name it")
			}
			if file != "" && len(args) > 0 {
				return usagef("--heads is for all sessions: name none")
			}
			c, err := a.readCheckpoint(file, key)
			if err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.verify(cmd.Context(), log, args, known, c) })
		},
	}, traits{section: secMore, verb: "verifying", args: []argument{sessionArg, more}, exits: "0 no damage, 1 damage found or failed, 2 wrong usage."})
	cmd.Flags().StringVar(&file, "heads", "", "a file that logtool store heads printed; - reads standard input")
	cmd.Flags().StringVar(&key, "key", "", "check the signature of --heads with this public key, or a file with it")
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a SEQ:HASH that the session once had; repeatable")
	return cmd
}

// parseHeads parses the values of --head.
func parseHeads(texts []string) (heads []event.Head, err error) {
	for _, text := range texts {
		_, short, err := parseExpect(text)
		if err != nil || short == nil || len(short.hash) != fullHash {
			return nil, usagef("--head is SEQ:HASH with %d hex digits, as append prints it, not %q", fullHash, text)
		}
		var hash event.Hash
		if err := hash.UnmarshalText([]byte(short.hash)); err != nil {
			return nil, usagef("--head: %v", err)
		}
		heads = append(heads, event.Head{Seq: short.seq, Hash: hash})
	}
	return heads, nil
}

// verifyRow is the result for one session.
type verifyRow struct {
	answers.Check
	removed bool  // since the listing
	failed  error // the session could not be checked
}

// verifySum is the sum of a run of verify, with --json.
type verifySum struct {
	Sessions int64 `json:"sessions"`
	Events   int64 `json:"events"`
	Defects  int64 `json:"defects"`
	Damaged  int64 `json:"damaged"`

	notes     bool  // the session convlog:store is one of them
	snapshots int64 // defects of snapshots
	newer     int64 // lines of a newer version
	history   int64 // known heads that are missing
	erasing   int64 // interrupted erasures
	strays    int64 // events without a session
}

func (a *app) verify(ctx context.Context, log *eventlog.Log, args []string, known []event.Head, c *checkpoint) error {
	v := verifyRun{app: a, log: log, printer: a.printer()}
	var opts verify.Options
	var err error
	if len(args) == 0 {
		err = v.list(ctx)
	} else {
		v.chosen, err = verifiableNamed(ctx, log, args)
	}
	if err != nil {
		return err
	}
	if len(known) > 0 {
		opts.Heads = map[string][]event.Head{v.chosen[0]: known}
	}
	var since *sinceRow
	if c != nil {
		opts.Heads, since = v.expect(c)
		c = nil // the heads of many sessions
	}
	v.verifier = verify.New(log, opts)
	if len(args) == 0 {
		err = v.runAll(ctx, since)
	} else {
		err = v.run(ctx, v.chosen)
	}
	if err != nil {
		return err
	}
	if since != nil {
		if err := v.since(since); err != nil {
			return err
		}
	}
	if err := v.printer.verdict(v.all, since != nil, a.json); err != nil {
		return err
	}
	if v.all.Defects > 0 {
		return fmt.Errorf("%s: %s", v.all.found(), v.all.advice())
	}
	return nil
}

// verifyRun is one run of verify.
type verifyRun struct {
	app      *app
	log      *eventlog.Log
	printer  *printer
	verifier *verify.Verifier

	store    []eventlog.Defect // defects outside sessions
	notes    []eventlog.Defect // notes outside sessions
	unlisted []string          // sessions that only the check of the store found
	checked  chan struct{}     // closed after the check of the store; nil if there is none

	chosen  []string         // sessions, sorted
	listing map[string]error // errors of listing the sessions, nil for readable ones
	bytes   int64            // the size of the listed sessions
	all     verifySum
	done    atomic.Int64 // sessions
}

// list chooses all listed sessions.
func (v *verifyRun) list(ctx context.Context) error {
	v.listing = map[string]error{}
	for info, err := range v.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		v.bytes += info.Bytes
		v.listed(info)
	}
	slices.Sort(v.chosen)
	v.chosen = slices.Compact(v.chosen)
	return ctx.Err()
}

// runAll verifies the chosen sessions and checks the store at the same time. Then it verifies the
// sessions that the check found, and prints the defects of the store.
func (v *verifyRun) runAll(ctx context.Context, since *sinceRow) error {
	ctx, cancel := context.WithCancel(ctx)
	var failed error
	v.checked = make(chan struct{})
	go func() {
		defer close(v.checked)
		failed = v.check(ctx)
	}()
	defer cancel()
	err := v.run(ctx, v.chosen)
	if err != nil {
		cancel()
	}
	<-v.checked
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	if err := v.run(ctx, v.unlisted); err != nil {
		return err
	}
	if since != nil {
		since.New = append(since.New, v.unlisted...)
		slices.Sort(since.New)
	}
	if len(v.store)+len(v.notes) > 0 {
		return v.print(answers.Check{Defects: v.store, Notes: v.notes})
	}
	return nil
}

// check checks the store.
func (v *verifyRun) check(ctx context.Context) error {
	for d, err := range verify.Store(ctx, v.log) {
		switch {
		case err != nil:
			return err
		case d.Rule == verify.RuleUnlisted:
			if _, chosen := slices.BinarySearch(v.chosen, d.Session); !chosen {
				v.unlisted = append(v.unlisted, d.Session)
			}
		case d.Rule == verify.RuleWatermark:
			v.notes = append(v.notes, d)
		default:
			v.store = append(v.store, d)
		}
	}
	slices.Sort(v.unlisted)
	v.unlisted = slices.Compact(v.unlisted)
	return nil
}

// expect chooses the sessions of a checkpoint too, and returns their heads and the sessions that
// the checkpoint does not have.
func (v *verifyRun) expect(c *checkpoint) (map[string][]event.Head, *sinceRow) {
	since := &sinceRow{New: []string{}, unchecked: c.unchecked}
	for _, session := range v.chosen {
		if _, ok := c.Heads[session]; !ok {
			since.New = append(since.New, session)
		}
	}
	heads := make(map[string][]event.Head, len(c.Heads))
	for session, h := range c.Heads {
		heads[session] = []event.Head{h}
		v.chosen = append(v.chosen, session)
	}
	slices.Sort(v.chosen)
	v.chosen = slices.Compact(v.chosen)
	return heads, since
}

// listed adds a row of the listing. A file without a session id is a defect of the
// store.
func (v *verifyRun) listed(info eventlog.SessionInfo) {
	switch {
	case info.ID != "":
		v.chosen = append(v.chosen, info.ID)
		v.listing[info.ID] = errors.Join(v.listing[info.ID], info.Err)
	case info.Err != nil:
		v.store = append(v.store, listing.Unreadable("", info.Err))
	}
}

// run verifies sessions in parallel, and prints the results in order.
func (v *verifyRun) run(ctx context.Context, sessions []string) error {
	ctx, cancel := context.WithCancel(ctx)
	results, next, wait := v.begin(ctx, sessions)
	defer wait()
	defer cancel()
	v.app.progress.Say(v.line)
	for i := range sessions {
		one := <-results[i%len(results)]
		next <- struct{}{}
		v.done.Add(1)
		if err := ctx.Err(); err != nil {
			return err
		}
		if one.failed != nil {
			return fmt.Errorf("verify session %q: %w", sessions[i], one.failed)
		}
		if one.removed {
			continue
		}
		if err := v.print(one.Check); err != nil {
			return err
		}
	}
	return nil
}

// line is the progress of a run.
func (v *verifyRun) line() string {
	text := fmt.Sprintf("%s of %s, %s", thousands(v.done.Load()), count(len(v.chosen), "session"), size(v.verifier.Bytes()))
	if v.bytes > 0 {
		text += " of " + size(v.bytes)
	}
	return text
}

// maxAhead is the number of sessions that are verified before the first of them is printed.
const maxAhead = 1024

// begin starts a worker for each processor. Result i goes to results[i % len(results)] in the
// order of the sessions, and the receiver sends to next after each. wait returns when all workers
// have ended.
func (v *verifyRun) begin(ctx context.Context, sessions []string) (results []chan verifyRow, next chan struct{}, wait func()) {
	results = make([]chan verifyRow, min(len(sessions), maxAhead))
	next = make(chan struct{}, 2*len(results))
	for i := range results {
		results[i] = make(chan verifyRow, 1)
		next <- struct{}{}
	}
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(results)) {
		workers.Go(func() {
			for {
				select {
				case <-next:
				case <-ctx.Done():
					return
				}
				i := int(taken.Add(1) - 1)
				if i >= len(sessions) {
					return
				}
				results[i%len(results)] <- v.one(ctx, sessions[i])
			}
		})
	}
	return results, next, workers.Wait
}

// one verifies a session. An error of listing it that verification did not find, for
// example a second file, is a defect too.
func (v *verifyRun) one(ctx context.Context, session string) verifyRow {
	report, err := v.verifier.Session(ctx, session) // a session with a known head is never missing
	if errors.Is(err, eventlog.ErrLocked) && v.checked != nil {
		select { // on a full disk, the check of the store locks other readers out
		case <-v.checked:
		case <-ctx.Done():
		}
		report, err = v.verifier.Session(ctx, session)
	}
	if unlisted, listed := v.listing[session]; listed && unlisted == nil && errors.Is(err, eventlog.ErrNotFound) {
		return verifyRow{removed: true}
	}
	if failed := errors.Join(err, v.listing[session]); listing.IsOutside(failed) {
		return verifyRow{failed: failed}
	}
	one := answers.NewCheck(session, &report, err)
	if unlisted := v.listing[session]; unlisted != nil {
		d, newer := listing.Unreadable(session, unlisted), errors.Is(unlisted, event.ErrVersion)
		known := func(o eventlog.Defect) bool { return o.Path == d.Path || newer && o.Rule == verify.RuleVersion }
		if one.MoreDefects == 0 && !slices.ContainsFunc(one.Defects, known) {
			one.Defects = append(one.Defects, d)
		}
	}
	return verifyRow{Check: one}
}

func (v *verifyRun) print(one answers.Check) error {
	v.all.add(one)
	return v.printer.verified(one, v.app.json)
}

func (all *verifySum) add(v answers.Check) {
	all.Events += v.Events
	all.Defects += v.Damage()
	for _, d := range v.Defects {
		switch d.Rule {
		case verify.RuleSnapshot:
			all.snapshots++
		case verify.RuleVersion:
			all.newer++
		case verify.RuleHistory:
			all.history++
		case verify.RuleErasing:
			all.erasing++
		case "stray":
			all.strays++
		}
	}
	if v.Session == "" {
		return
	}
	all.Sessions++
	all.notes = all.notes || v.Session == engine.StoreSession
	if v.Damage() > 0 {
		all.Damaged++
	}
}

func (all *verifySum) advice() string {
	switch all.Defects {
	case all.snapshots:
		return "redact the first snapshot of each session (logtool redact SESSION SEQ): the session is then read without it"
	case all.newer:
		return "a newer version wrote this: use a newer logtool"
	case all.erasing:
		return finishHint
	case all.strays:
		return "copy the sessions into a new store with logtool store convert, and lost sessions from a backup"
	case all.history:
		return "the sessions once had other or more events: restore them from a copy that has the heads"
	}
	return "with a backup: logtool store repair SESSION --in-place --backup BACKUP; without one, salvage the readable events: logtool store repair"
}

func (all *verifySum) found() string {
	if all.Damaged == 0 {
		return count(all.Defects, "defect") + " in the store"
	}
	return count(all.Defects, "defect") + " in " + count(all.Damaged, "session")
}

// verifiable are the sessions for the names in args, or all sessions. Sessions with
// only a torn tail are not listed: they need a full id.
func (a *app) verifiable(ctx context.Context, log *eventlog.Log, args []string) ([]string, error) {
	if len(args) > 0 {
		return verifiableNamed(ctx, log, args)
	}
	sessions, err := a.sessions(ctx, log, nil, true)
	if err != nil {
		return nil, err
	}
	for t, err := range verify.TornTails(ctx, log) {
		if err != nil && (t.Session == "" || ctx.Err() != nil) {
			return nil, err
		}
		if t.Session != "" && !slices.Contains(sessions, t.Session) {
			sessions = append(sessions, t.Session)
		}
	}
	slices.Sort(sessions)
	return sessions, nil
}

func verifiableNamed(ctx context.Context, log *eventlog.Log, args []string) ([]string, error) {
	return findEach(args, func(arg string) (string, error) {
		id, err := resolve(ctx, log, arg)
		if !errors.Is(err, eventlog.ErrNotFound) {
			return id, err
		}
		if _, unreadable := verify.Session(ctx, log, arg); unreadable != nil {
			return "", err
		}
		return arg, nil
	})
}
