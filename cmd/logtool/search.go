package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
)

// searching is what is looked for, and how much of what is found is shown.
type searchOptions struct {
	text       string
	session    string // "" is all
	path       string // all or active
	types      []string
	limit      int
	perSession int
	context    int
}

func (a *app) searchCommand() *cobra.Command {
	var s searchOptions
	cmd := &cobra.Command{
		Use:   "search TEXT [SESSION]",
		Short: "Find what was said, in one session or in all of them",
		Long: `Find the events whose text holds all words of TEXT, in any case and also inside
of longer words. A "phrase in double quotes" must stand there as it is. Nothing
else has a special meaning: C++, store.go, *.txt and 检索 are words like others.

Searched is what a person reads: messages, reasoning, tool calls with their
arguments, results, titles, summaries. The session with the latest activity
comes first, and of each its newest hits. Of a fork only its own events are
searched, unless SESSION names it. What was rewound is marked as orphaned, or
left out with --path active.

Exit codes: 0 something was found, 1 nothing was, or a session cannot be read.`,
		Example: "  logtool search 'connection refused'\n  logtool search '\"no space left\" build' --limit 5\n  logtool search refund order-42 --type message_added",
		Args:    between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.text = args[0]
			if len(args) > 1 {
				s.session = args[1]
			}
			if err := s.check(); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.search(cmd.Context(), log, s) })
		},
	}
	cmd.Flags().StringVar(&s.path, "path", allPaths, "all, which marks what was rewound, or active, which leaves it out")
	cmd.Flags().StringSliceVar(&s.types, "type", nil, "only events of these types, such as message_added")
	cmd.Flags().IntVar(&s.limit, "limit", 50, "stop after so many hits; 0 shows all")
	cmd.Flags().IntVar(&s.perSession, "per-session", 5, "show so many of each session, unless SESSION is given; 0 shows all")
	cmd.Flags().IntVar(&s.context, "context", 60, "characters to show before and behind a match")
	return cmd
}

func (s *searchOptions) check() error {
	switch {
	case s.path != allPaths && s.path != activePath:
		return usagef("--path is all or active, not %q", s.path)
	case s.limit < 0 || s.perSession < 0:
		return usagef("--limit and --per-session are not negative")
	case s.context < 1:
		return usagef("--context is at least 1")
	case strings.TrimSpace(s.text) == "":
		return usagef("nothing to look for: give a word or a phrase")
	}
	return nil
}

// most is how many hits of each session are looked for: one more than are shown says
// that there are more, and as many may be repeats. 0 is all.
func (s *searchOptions) most() int {
	if s.session != "" {
		return 0
	}
	return 2*s.perSession + min(s.perSession, 1)
}

// query is the search as the log takes it.
func (s *searchOptions) query() search.Query {
	q := search.Query{Text: s.text, Session: s.session, Active: s.path == activePath, Context: s.context}
	for _, t := range s.types {
		q.Types = append(q.Types, event.Type(t).Name())
	}
	q.PerSession = s.most()
	return q
}

func (a *app) search(ctx context.Context, log *eventlog.Log, s searchOptions) error {
	if s.session != "" {
		session, err := resolve(ctx, log, s.session)
		if err != nil {
			return fmt.Errorf("%w; several words are one TEXT, in quotes for the shell", err)
		}
		s.session = session
	}
	out := &hitPrinter{printer: a.printer(), searchOptions: s, log: log, json: a.json}
	var failed []error
	for hit, err := range search.Events(ctx, log, s.query()) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		more, err := out.hit(ctx, hit)
		if err != nil || !more {
			failed = append(failed, err)
			break
		}
	}
	out.end()
	if err := errors.Join(append(failed, out.flush())...); err != nil {
		return err
	}
	if out.shown == 0 {
		return &foundNothingError{s.text, s.types}
	}
	return nil
}

// foundNothingError is a search without a hit.
type foundNothingError struct {
	text  string
	types []string // of --type
}

func (e *foundNothingError) Error() string {
	text := fmt.Sprintf("nothing found for %s", clean(e.text))
	if len(strings.Fields(e.text)) > 1 {
		text += "; an event must hold all of the words: try fewer"
	}
	for _, t := range e.types {
		if name := event.Type(t).Name(); !name.Known() && !strings.Contains(t, ":") {
			text += fmt.Sprintf("; the log has no type %s of its own", clean(t))
		}
	}
	return text
}

// hitPrinter prints hits, grouped by their sessions.
type hitPrinter struct {
	*printer
	searchOptions
	log     *eventlog.Log
	json    bool
	at      string // the session whose hits are printed
	title   string
	orphans *orphans
	said    map[string]bool // by messages of it
	found   int             // hits of it
	here    int             // hits of it that were shown
	shown   int
	more    bool // there are more of it
}

// hit prints a hit; more is false when no others are wanted.
func (p *hitPrinter) hit(ctx context.Context, hit search.Hit) (more bool, err error) {
	if hit.Session != p.at {
		p.end()
		p.begin(ctx, hit)
	}
	if p.found++; p.repeats(hit) {
		p.more = p.more || p.found == p.most()
		return true, nil
	}
	if p.session == "" && p.perSession > 0 && p.here == p.perSession {
		p.more = true
		return true, nil
	}
	if p.limit > 0 && p.shown == p.limit {
		p.more = true
		return false, nil
	}
	orphaned, err := p.orphans.has(ctx, &hit.Event)
	if err != nil {
		return false, err
	}
	if p.here == 0 {
		p.heading(hit)
	}
	p.here, p.shown = p.here+1, p.shown+1
	if p.json {
		return true, p.value(newHitRow(hit, p.title, orphaned))
	}
	p.line(hit, orphaned)
	return true, nil
}

// repeats reports whether a record that was kept raw says only what a message that
// was shown says, as programs write what a tool gave more than once. --json has all.
func (p *hitPrinter) repeats(hit search.Hit) bool {
	if hit.Type == event.MessageAdded {
		p.said[hit.Snippet.Text] = true
	}
	return !p.json && p.said[hit.Snippet.Text] && strings.Contains(string(hit.Type), ":")
}

// begin goes on to another session.
func (p *hitPrinter) begin(ctx context.Context, hit search.Hit) {
	name := readName(ctx, p.log, hit.Session)
	p.at, p.title, p.said, p.found, p.here = hit.Session, name.name(), map[string]bool{}, 0, 0
	if p.orphans = nil; p.path == allPaths {
		p.orphans = newOrphans(p.log, cmp.Or(p.session, hit.Session))
	}
}

func (p *hitPrinter) heading(hit search.Hit) {
	if p.json {
		return
	}
	if p.shown > 0 {
		p.printf("\n")
	}
	name := clean(hit.Session)
	if p.title == "" {
		p.printf("%s\n", p.paint(bold, name))
		return
	}
	p.printf("%s  %s\n", p.paint(bold, p.title), p.paint(dim, name))
}

func (p *hitPrinter) line(hit search.Hit, orphaned bool) {
	mark := ""
	if orphaned {
		mark = " · " + p.paint(yellow, "orphaned")
	}
	p.printf("  %s %s · %s%s\n    %s\n", p.paint(dim, fmt.Sprintf("#%d", hit.Seq)), p.source(hit), p.when(hit.Timestamp), mark, p.marked(hit.Snippet))
}

// source is who said it, or what kind of event it is.
func (p *hitPrinter) source(hit search.Hit) string {
	if role := roleOf(hit); role != "" {
		return p.speaker(&hit.Event, role)
	}
	return clean(string(hit.Type))
}

func roleOf(hit search.Hit) event.Role {
	m, _, err := event.Decode[event.Message](&hit.Event)
	if err != nil {
		return ""
	}
	return m.Role
}

// marked is a snippet with its matches in colour.
func (p *hitPrinter) marked(s search.Snippet) string {
	var text strings.Builder
	if s.Before {
		text.WriteString("…")
	}
	at := 0
	for _, m := range s.Matches {
		text.WriteString(clean(s.Text[at:m.From]) + p.paint(red, clean(s.Text[m.From:m.To])))
		at = m.To
	}
	text.WriteString(clean(s.Text[at:]))
	if s.After {
		text.WriteString("…")
	}
	return text.String()
}

// end says whether there is more of the session.
func (p *hitPrinter) end() {
	if p.more && !p.json && p.limit > 0 && p.shown == p.limit {
		p.printf("\n%s\n", p.paint(dim, "there is more: --limit 0 shows all"))
	} else if p.more && !p.json {
		p.printf("  %s\n", p.paint(dim, "more: logtool search "+shellWord(p.text)+" "+shellWord(p.at)))
	}
	p.more = false
}

// foundHit is a hit as --json prints it.
type hitRow struct {
	Session   string     `json:"session_id"`
	Title     string     `json:"title,omitzero"`
	Seq       int64      `json:"seq"`
	Type      event.Type `json:"type"`
	Role      event.Role `json:"role,omitzero"`
	Timestamp time.Time  `json:"timestamp"`
	Orphaned  bool       `json:"orphaned,omitzero"`
	Text      string     `json:"text"`
	// Matches are places in Text, in bytes: where each begins and ends.
	Matches [][2]int `json:"matches"`
	Before  bool     `json:"before,omitzero"`
	After   bool     `json:"after,omitzero"`
}

func newHitRow(hit search.Hit, title string, orphaned bool) hitRow {
	f := hitRow{
		Session: hit.Session, Title: title, Seq: hit.Seq, Type: hit.Type, Role: roleOf(hit), Timestamp: hit.Timestamp, Orphaned: orphaned,
		Text: hit.Snippet.Text, Before: hit.Snippet.Before, After: hit.Snippet.After,
	}
	for _, m := range hit.Snippet.Matches {
		f.Matches = append(f.Matches, [2]int{m.From, m.To})
	}
	return f
}
