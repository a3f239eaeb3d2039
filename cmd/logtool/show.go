package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/transcript"
)

// showing is how events are shown.
type showOptions struct {
	raw  bool // --raw
	full bool // --full
}

func (s *showOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.raw, "raw", false, "print the stored lines as they are")
	cmd.Flags().BoolVar(&s.full, "full", false, "fold nothing")
}

// checkShowing refuses two ways at once.
func (a *app) checkShowing(s showOptions) error {
	if s.raw && a.json {
		return usagef("--raw prints the lines as they are stored, which are JSON, --json the events: give one of them")
	}
	return nil
}

// picking is which events are shown.
type selection struct {
	from, to int64
	last     int
	types    []string
	path     string // all or active
}

// The paths that --path names.
const (
	allPaths   = "all"
	activePath = "active"
)

func (pick *selection) active() bool { return pick.path == activePath }

func (a *app) showCommand() *cobra.Command {
	var s showOptions
	var pick selection
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a session: messages, and tool calls with their results",
		Long: `Show a session in order, a fork with what it shares with its parents. Results
stand under their calls; long output is folded with a count of what is hidden;
what was rewound is marked as orphaned, or left out with --path active. With
--json every event is an object with its data, bodies inlined.`,
		Example: `  logtool show order-42
  logtool show order-42 --last 20 --path active
  logtool show order-42 --from 7 --to 12 --full
  logtool show order-42 --type message_added --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pick.check(); err != nil {
				return err
			}
			if err := a.checkShowing(s); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.show(cmd.Context(), log, args[0], pick, s) })
		},
	}
	s.flags(cmd)
	cmd.Flags().Int64Var(&pick.from, "from", 0, "begin at this seq")
	cmd.Flags().Int64Var(&pick.to, "to", 0, "end at this seq")
	cmd.Flags().IntVar(&pick.last, "last", 0, "only the newest N of what is selected")
	cmd.Flags().StringSliceVar(&pick.types, "type", nil, "only events of these types, such as message_added")
	cmd.Flags().StringVar(&pick.path, "path", allPaths, "all, which marks what was rewound, or active, which leaves it out")
	return cmd
}

func (pick *selection) check() error {
	switch {
	case pick.path != allPaths && pick.path != activePath:
		return usagef("--path is all or active, not %q", pick.path)
	case pick.from < 0 || pick.to < 0 || pick.last < 0:
		return usagef("--from, --to and --last are not negative")
	case pick.to > 0 && pick.from > pick.to:
		return usagef("--from %d is after --to %d", pick.from, pick.to)
	}
	return nil
}

func (a *app) show(ctx context.Context, log *eventlog.Log, name string, pick selection, s showOptions) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	out := a.shower(s, holdForShow)
	if !pick.active() {
		out.orphans = newOrphans(log, session)
	}
	shown := false
	for e, err := range pick.events(ctx, log, session) {
		if err == nil {
			err = out.event(ctx, e)
		}
		if err != nil {
			return out.stop(err)
		}
		shown = true
	}
	if err := out.stop(ctx.Err()); err != nil || shown {
		return err
	}
	return a.nothing(ctx, log, session, pick)
}

// nothing says why nothing was shown.
func (a *app) nothing(ctx context.Context, log *eventlog.Log, session string, pick selection) error {
	head, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	if pick.from > head.Seq {
		fmt.Fprintf(a.err, "nothing to show: the session ends at %s\n", at(head.Seq))
		return nil
	}
	if len(pick.types) == 0 {
		return nil
	}
	found := map[string]bool{}
	for e, err := range log.Read(ctx, session, eventlog.All().Bare()) {
		if err != nil {
			return err
		}
		found[string(e.Type.Name())] = true
	}
	has := strings.Join(slices.Sorted(maps.Keys(found)), ", ")
	for _, t := range pick.types {
		if name := event.Type(t).Name(); !found[string(name)] && !name.Known() {
			return usagef("no event of the session is of type %q; it has %s", t, has)
		}
	}
	fmt.Fprintf(a.err, "nothing to show: none of the events selected is of type %s; the session has %s\n", clean(strings.Join(pick.types, ", ")), clean(has))
	return nil
}

// events yields what is picked, oldest first.
func (pick *selection) events(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[event.Event, error] {
	switch {
	case pick.last > 0:
		return pick.newest(ctx, log, session)
	case pick.active():
		return pick.filter(log.Read(ctx, session, eventlog.All().OnPath()))
	}
	return pick.filter(log.Read(ctx, session, eventlog.Between(pick.from, pick.to)))
}

// filter passes on the events that are picked, but for last.
func (pick *selection) filter(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if (err != nil || pick.wants(&e)) && !yield(e, err) {
				return
			}
		}
	}
}

func (pick *selection) wants(e *event.Event) bool {
	if e.Seq < pick.from || pick.to > 0 && e.Seq > pick.to {
		return false
	}
	return len(pick.types) == 0 || slices.Contains(pick.types, string(e.Type)) || slices.Contains(pick.types, string(e.Type.Name()))
}

// newest reads backwards until it has found enough.
func (pick *selection) newest(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		source, err := pick.backwards(ctx, log, session)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		var found []event.Event
		for e, err := range pick.filter(source) {
			if err != nil {
				yield(e, err)
				return
			}
			if found = append(found, e); len(found) == pick.last {
				break
			}
		}
		for _, e := range slices.Backward(found) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// backwards yields the candidates newest first.
func (pick *selection) backwards(ctx context.Context, log *eventlog.Log, session string) (iter.Seq2[event.Event, error], error) {
	if !pick.active() {
		return log.Read(ctx, session, eventlog.Between(pick.from, pick.to).Backward()), nil
	}
	path, err := log.Path(ctx, session, 0)
	if err != nil {
		return nil, err
	}
	return func(yield func(event.Event, error) bool) {
		for _, s := range slices.Backward(path) {
			for e, err := range log.Read(ctx, session, eventlog.Between(s.From, s.To).Backward()) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}, nil
}

// shower prints events in the way that was asked for.
type eventPrinter struct {
	*printer
	raw, json  bool
	renderer   *renderer
	transcript *transcript.Joiner
	orphans    *orphans // nil marks none
	// unmarked is why orphans were not marked any more: the path cannot be read.
	// What can be read is shown all the same.
	unmarked error
}

const (
	holdForShow = transcript.Window
	holdNothing = 0
)

func (a *app) shower(s showOptions, hold int) *eventPrinter {
	p := a.printer()
	r := &renderer{printer: p, full: s.full}
	return &eventPrinter{printer: p, raw: s.raw, json: a.json, renderer: r, transcript: joiner(r, hold)}
}

// joiner puts results under their calls and pieces of a message together, and
// leaves events apart otherwise.
func joiner(r *renderer, hold int) *transcript.Joiner {
	j := transcript.NewJoiner(r.entry)
	j.Window, j.Fold = hold, true
	return j
}

func (s *eventPrinter) event(ctx context.Context, e event.Event) error {
	if s.raw {
		return s.printer.raw(e.Line())
	}
	orphaned, err := s.orphans.has(ctx, &e)
	if err != nil {
		s.orphans, s.unmarked = nil, err
	}
	if s.json {
		row := newEventRow(&e)
		row.Orphaned = orphaned
		return s.value(row)
	}
	return s.transcript.Add(transcript.NewEntry(&e, orphaned))
}

// stop prints what is held and flushes; it returns err, if there is one.
func (s *eventPrinter) stop(err error) error {
	if held := s.transcript.Flush(); err == nil {
		err = held
	}
	s.renderer.finish()
	if flushed := s.flush(); err == nil {
		err = flushed
	}
	if err == nil {
		err = s.unmarked
	}
	return err
}

// shown is an event as --json prints it.
type eventRow struct {
	Seq       int64          `json:"seq"`
	ID        string         `json:"id"`
	Session   string         `json:"session_id"`
	Type      event.Type     `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	Cost      event.Cost     `json:"cost,omitzero"`
	Hash      string         `json:"hash"`
	Metadata  jsontext.Value `json:"metadata,omitzero"`
	Redacted  bool           `json:"redacted,omitzero"`
	Orphaned  bool           `json:"orphaned,omitzero"`
	Kept      jsontext.Value `json:"kept,omitzero"`
	Data      jsontext.Value `json:"data,omitzero"`
}

func newEventRow(e *event.Event) eventRow {
	return eventRow{
		Seq: e.Seq, ID: e.ID.String(), Session: e.SessionID, Type: e.Type, Timestamp: e.Timestamp, Cost: e.Cost,
		Hash: e.Hash().String(), Metadata: e.Metadata, Redacted: e.Redacted(), Kept: e.Kept(), Data: e.Data,
	}
}
