package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [SESSION...]",
		Short: "Check every checksum, hash and blob; exit 1 on damage",
		Long: `Check every checksum, link of the hash chain, seq and blob of the sessions named
(all of them by default), list the defects, and end with a count. Exit code 1
means that damage was found.`,
		Args: between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(func(log *eventlog.Log) error { return a.verify(cmd.Context(), log, args) })
		},
	}
}

// verified is what verifying one session told.
type verified struct {
	Session string            `json:"session"`
	Events  int64             `json:"events"`
	Defects []eventlog.Defect `json:"defects"`
	// Notes are no damage: rules that an import broke and marked, torn tails.
	Notes []eventlog.Defect `json:"notes,omitzero"`
}

// verdict sums up a run of verify.
type verdict struct {
	Sessions int64 `json:"sessions"`
	Events   int64 `json:"events"`
	Defects  int64 `json:"defects"`
	Damaged  int64 `json:"damaged"`
}

func (a *app) verify(ctx context.Context, log *eventlog.Log, args []string) error {
	sessions, err := a.verifiable(ctx, log, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	results, wait := verifyAll(ctx, log, sessions)
	defer wait()
	defer cancel()
	p := a.printer()
	var all verdict
	for _, result := range results {
		v := <-result
		if err := ctx.Err(); err != nil {
			return err
		}
		all.add(v)
		if err := p.verified(v, a.json); err != nil {
			return err
		}
	}
	if err := p.verdict(all, a.json); err != nil {
		return err
	}
	if all.Defects > 0 {
		return fmt.Errorf("%s in %s: restore what is damaged from a copy, or salvage what can be read with logtool repair",
			count(all.Defects, "defect"), count(all.Damaged, "session"))
	}
	return nil
}

// verifiable are the sessions that args name, or all: with those that have
// nothing but a torn tail, which verify alone knows. They are named in full.
func (a *app) verifiable(ctx context.Context, log *eventlog.Log, args []string) ([]string, error) {
	if len(args) == 0 {
		sessions, err := a.sessions(ctx, log, nil, true)
		if err != nil {
			return nil, err
		}
		return withTorn(ctx, log, sessions)
	}
	return named(args, func(arg string) (string, error) {
		id, err := resolve(ctx, log, arg)
		if !errors.Is(err, eventlog.ErrNotFound) {
			return id, err
		}
		if _, unreadable := log.Verify(ctx, arg); unreadable != nil {
			return "", err
		}
		return arg, nil
	})
}

// withTorn adds the sessions that have nothing but a torn tail, and so are not
// listed. One that cannot be looked at is left to say so when it is verified.
func withTorn(ctx context.Context, log *eventlog.Log, sessions []string) ([]string, error) {
	for t, err := range log.TornTails(ctx) {
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

// verifyAll verifies sessions side by side; the results come in order. wait
// returns when no session is being read any more.
func verifyAll(ctx context.Context, log *eventlog.Log, sessions []string) (results []chan verified, wait func()) {
	results = make([]chan verified, len(sessions))
	for i := range results {
		results[i] = make(chan verified, 1)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sessions)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sessions)); i = next.Add(1) - 1 {
				results[i] <- verifyOne(ctx, log, sessions[i])
			}
		})
	}
	return results, workers.Wait
}

func verifyOne(ctx context.Context, log *eventlog.Log, session string) verified {
	report, err := log.Verify(ctx, session)
	v := verified{Session: session, Events: report.Events, Defects: report.Defects, Notes: report.Notes}
	if err != nil {
		v.Defects = append(v.Defects, eventlog.Defect{Session: session, Offset: -1, Rule: "unreadable", Detail: err.Error()})
	}
	if v.Defects == nil {
		v.Defects = []eventlog.Defect{}
	}
	return v
}

func (all *verdict) add(v verified) {
	all.Sessions++
	all.Events += v.Events
	all.Defects += int64(len(v.Defects))
	if len(v.Defects) > 0 {
		all.Damaged++
	}
}

func (p *printer) verified(v verified, asJSON bool) error {
	if asJSON {
		return p.value(v)
	}
	for _, d := range v.Defects {
		p.printf("%s %s\n", p.paint(red, "damaged"), clean(d.String()))
	}
	for _, note := range summarize(v.Notes) {
		p.printf("%s %s: %s\n", p.paint(yellow, "note"), clean(v.Session), clean(note))
	}
	return nil
}

// summarize counts notes of one kind, in order of appearance, with the first
// seqs.
func summarize(notes []eventlog.Defect) []string {
	const most = 5
	var kinds []string
	seqs := map[string][]string{}
	for _, n := range notes {
		kind := kindOf(n)
		if seqs[kind] == nil {
			kinds = append(kinds, kind)
		}
		seqs[kind] = append(seqs[kind], strconv.FormatInt(n.Seq, 10))
	}
	for i, kind := range kinds {
		if kind == tornRule {
			kinds[i] = tornNote(notes)
			continue
		}
		at := seqs[kind]
		kinds[i] = fmt.Sprintf("%s in %s: seq %s", kind, count(int64(len(at)), "event"), strings.Join(at[:min(len(at), most)], ", "))
		if len(at) > most {
			kinds[i] += ", …"
		}
	}
	return kinds
}

// kindOf says what a note is about: a torn tail, a rule that an import broke, or
// one that is broken because something was lost.
func kindOf(n eventlog.Defect) string {
	switch {
	case n.Rule == tornRule:
		return tornRule
	case strings.Contains(n.Detail, "lost"):
		return "events that were lost leave " + n.Rule
	}
	return "the import broke " + n.Rule
}

const tornRule = "torn"

func tornNote(notes []eventlog.Defect) string {
	i := slices.IndexFunc(notes, func(n eventlog.Defect) bool { return n.Rule == tornRule })
	return fmt.Sprintf("%s byte %d: %s", notes[i].Path, notes[i].Offset, notes[i].Detail)
}

func (p *printer) verdict(all verdict, asJSON bool) error {
	if asJSON {
		if err := p.value(all); err != nil {
			return err
		}
		return p.flush()
	}
	found := p.paint(green, "no damage")
	if all.Defects > 0 {
		found = p.paint(red, count(all.Defects, "defect")+" in "+count(all.Damaged, "session"))
	}
	p.printf("%s, %s: %s\n", count(all.Sessions, "session"), count(all.Events, "event"), found)
	return p.flush()
}
