package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/transcript"
)

// showOptions choose how events are printed.
type showOptions struct {
	raw  bool // --raw
	full bool // --full
}

func (s *showOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.raw, "raw", false, "print the stored lines")
	cmd.Flags().BoolVar(&s.full, "full", false, "fold nothing")
}

// checkShow rejects --raw with --json.
func (a *app) checkShow(s showOptions) error {
	if s.raw && a.json {
		return usagef("--raw prints the stored lines, --json the events with their bodies: give one of them")
	}
	if s.raw && a.mask {
		return usagef("--raw prints the stored lines, with their secrets: leave out --raw or --mask-secrets")
	}
	return nil
}

// selection chooses the events that are printed.
type selection struct {
	first    eventFlag // --from
	last     eventFlag // --to
	from, to int64     // their seqs, or those of the turns; 0 is no bound
	limit    int
	types    []string
	path     string // allPaths or activePath
	turns    turnRange
}

func (a *app) showCommand() *cobra.Command {
	var s showOptions
	var sel selection
	cmd := a.command(&cobra.Command{
		Use:        "show SESSION",
		SuggestFor: []string{"open", "cat", "view", "less", "more"},
		Short:      "Show a session: messages, and tool calls with their results",
		Long: `Show the events of a session in order. A fork is shown with the events that it
shares with its parents. Results are shown under their calls, also the results after
--to. Long output is folded, with a count of the hidden lines. Orphaned (rewound) events are marked;
--path active leaves them out. With --json each event is an object with its data
and its bodies.`,
		Example: "  logtool show order-42 --turn 2-4 --full",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sel.check(); err != nil {
				return err
			}
			if err := a.checkShow(s); err != nil {
				return err
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				if err := sel.find(cmd.Context(), log, session); err != nil {
					return err
				}
				return a.show(cmd.Context(), log, session, sel, s)
			})
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	s.flags(cmd)
	sel.first.flag(cmd, "from", "begin at this `event`, a seq or an id")
	sel.last.flag(cmd, "to", "end at this `event`, a seq or an id")
	sel.turns.flag(cmd)
	limitFlag(cmd, &sel.limit, 0, "show the newest `n` of the selected events; 0 shows all")
	selectFlags(cmd, &sel.path, &sel.types)
	return cmd
}

func (sel *selection) check() error {
	switch {
	case sel.limit < 0:
		return usagef("--limit is a number of events, not %d", sel.limit)
	case sel.turns.text != "" && (sel.first.isSet() || sel.last.isSet()):
		return usagef("--turn has a first and a last event: leave out --from and --to")
	}
	if err := cmp.Or(sel.first.check(), sel.last.check()); err != nil {
		return err
	}
	if first, last := sel.first.number, sel.last.number; last > 0 && first > last {
		return usagef("--from %d is after --to %d", first, last)
	}
	if err := sel.turns.check(); err != nil {
		return err
	}
	return checkPath(sel.path)
}

// find sets the fields from and to: the events that --from and --to name, or the first and the
// last event of the turns.
func (sel *selection) find(ctx context.Context, log *eventlog.Log, session string) (err error) {
	if sel.turns.text != "" {
		sel.from, sel.to, err = sel.turns.seqs(ctx, log, session)
		return err
	}
	if sel.from, err = sel.first.seq(ctx, log, session); err == nil {
		sel.to, err = sel.last.seq(ctx, log, session)
	}
	return err
}

func (a *app) show(ctx context.Context, log *eventlog.Log, session string, sel selection, s showOptions) error {
	out := a.eventPrinter(s, transcript.Window)
	if len(sel.types) > 0 {
		out.effects = nil
	}
	if sel.path == allPaths {
		out.marker = &answers.PathMarker{Log: log, Session: session}
	}
	empty := true
	for e, err := range sel.events(ctx, log, session) {
		if err == nil {
			err = out.event(ctx, e)
		}
		if err != nil {
			return out.stop(err)
		}
		empty = false
	}
	if err := cmp.Or(out.lateResults(ctx, log, session, sel), out.unfinished()); err != nil {
		return out.stop(err)
	}
	if err := out.stop(ctx.Err()); err != nil || !empty {
		return err
	}
	return a.explainEmpty(ctx, log, session, sel)
}

// explainEmpty says why show printed nothing.
func (a *app) explainEmpty(ctx context.Context, log *eventlog.Log, session string, sel selection) error {
	head, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	if sel.from > head.Seq {
		return fmt.Errorf("nothing to show: the session ends at %s", at(head.Seq))
	}
	if len(sel.types) == 0 {
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
	for _, t := range sel.types {
		if name := event.Type(t).Name(); !found[string(name)] && !name.Known() {
			return usagef("no event of the session is of type %q; it has %s", t, has)
		}
	}
	a.note("nothing to show: none of the events selected is of type %s; the session has %s", clean(strings.Join(sel.types, ", ")), clean(has))
	return nil
}

// events yields the selected events, oldest first.
func (sel *selection) events(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[event.Event, error] {
	r := eventlog.Between(sel.from, sel.to)
	if sel.path == activePath {
		r = eventlog.From(sel.from).OnPath() // the path of the head, also before --to
	}
	if sel.limit == 0 {
		return sel.filter(log.Read(ctx, session, r))
	}
	return newest(sel.limit, sel.filter(log.Read(ctx, session, r.Backward())))
}

// filter passes the events with a selected seq and type.
func (sel *selection) filter(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if (err != nil || sel.matches(&e)) && !yield(e, err) {
				return
			}
		}
	}
}

func (sel *selection) matches(e *event.Event) bool {
	if e.Seq < sel.from || sel.to > 0 && e.Seq > sel.to {
		return false
	}
	return len(sel.types) == 0 || slices.Contains(sel.types, string(e.Type)) || slices.Contains(sel.types, string(e.Type.Name()))
}

// newest yields the first n of events that come newest first, in reverse.
func newest(n int, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		var found []event.Event
		for e, err := range events {
			if err != nil {
				yield(e, err)
				return
			}
			if found = append(found, e); len(found) == n {
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

// eventPrinter prints events as text, as JSON or as stored lines.
type eventPrinter struct {
	*printer
	raw, json  bool
	renderer   *renderer
	transcript *transcript.Joiner
	effects    *effectFolder       // nil shows all events
	marker     *answers.PathMarker // nil marks nothing
	// markError is the error of the marker, which cannot read the path. All readable
	// events are printed nevertheless.
	markError error
}

func (a *app) eventPrinter(s showOptions, hold int) *eventPrinter {
	p := a.printer()
	r := &renderer{printer: p, full: s.full}
	out := &eventPrinter{printer: p, raw: s.raw, json: a.json, renderer: r, transcript: joiner(r, hold)}
	if !s.full {
		out.effects = &effectFolder{}
	}
	return out
}

// joiner puts results under their calls, and joins the pieces of a message.
func joiner(r *renderer, hold int) *transcript.Joiner {
	j := transcript.NewJoiner(r.entry)
	j.Window, j.Fold = hold, true
	return j
}

func (p *eventPrinter) event(ctx context.Context, e event.Event) error {
	if p.raw {
		return p.printer.Raw(e.Line())
	}
	orphaned, err := p.marker.Orphaned(ctx, &e)
	if err != nil {
		p.marker, p.markError = nil, err
	}
	if p.json {
		row := httpapi.NewEvent(&e)
		row.Orphaned = orphaned
		return p.Value(row)
	}
	x := (*transcript.Entry)(nil)
	if p.effects == nil {
		x = transcript.NewEntry(&e, orphaned)
	} else {
		x = p.effects.entry(&e, orphaned, p.transcript.AddCost)
	}
	if x == nil {
		return nil
	}
	return p.transcript.Add(x)
}

// lateResults adds the results after --to of the calls before it.
func (p *eventPrinter) lateResults(ctx context.Context, log *eventlog.Log, session string, sel selection) error {
	if sel.to == 0 || p.raw || p.json {
		return nil
	}
	rest := eventlog.From(sel.to + 1)
	if sel.path == activePath {
		rest = rest.OnPath()
	}
	read := 0
	for e, err := range log.Read(ctx, session, rest) {
		if err != nil {
			return err
		}
		if !p.transcript.Open() || read == transcript.Window {
			break
		}
		read++
		orphaned, err := p.marker.Orphaned(ctx, &e)
		if err != nil {
			p.marker, p.markError = nil, err
		}
		p.transcript.AddResults(transcript.NewEntry(&e, orphaned))
	}
	return nil
}

// unfinished prints the effects without a result that no other event shows.
func (p *eventPrinter) unfinished() error {
	if p.effects == nil || p.raw || p.json {
		return nil
	}
	for _, x := range p.effects.unfinished() {
		if err := p.transcript.Add(x); err != nil {
			return err
		}
	}
	return nil
}

// stop prints all events that wait for a result, and flushes. It returns err, else
// its own first error.
func (p *eventPrinter) stop(err error) error {
	waiting := p.transcript.Flush()
	p.renderer.finish()
	for _, next := range []error{waiting, p.Flush(), p.markError} {
		if err == nil {
			err = next
		}
	}
	return err
}
