package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/search"
)

// searchOptions choose the events to search, and how many hits to print.
type searchOptions struct {
	text       string
	session    string // empty for all sessions
	path       string // allPaths or activePath
	types      []string
	limit      int
	perSession int
	context    int
	everything bool
	filter
	hitFilter
}

func (a *app) searchCommand() *cobra.Command {
	var s searchOptions
	cmd := a.command(&cobra.Command{
		Use:        "search [TEXT] [SESSION]",
		SuggestFor: []string{"grep", "find"},
		Short:      "Find text in one session or in all sessions; list events by flags",
		Long: `Find the events whose text contains all words of TEXT, in any case, also inside
longer words. A "phrase in double quotes" is one word with spaces. No other
character is special: C++, store.go, *.txt and 检索 are words.

search reads messages, reasoning, tool calls, results, titles and summaries. Newest
sessions and hits come first; what people and models wrote comes before results of tools,
attachments and texts that programs wrote in the user's name (--role context).
Without TEXT, or with an empty one, the flags alone select. Of a fork, only its own events
are searched, unless SESSION names it. --path active leaves out orphaned events.

` + whenHelp + `

Only --everything looks in what no view shows: names of members, metadata, strings in
base64, JSON in strings. It reads the whole store and lists every stored place of TEXT
as one phrase. logtool redact --match erases these places.`,
		Example: "  logtool search '\"no space left\" build' --limit 5\n  logtool search timeout --failed --tool Bash --since 7d\n  logtool search --file parse.go",
		Args:    between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				s.text = args[0]
			}
			if len(args) > 1 {
				s.session = args[1]
			}
			if err := s.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error {
				if s.everything {
					return a.searchStored(cmd.Context(), log, s)
				}
				return a.search(cmd.Context(), log, s)
			})
		},
	}, traits{section: secRead, verb: "searching", paged: true, content: true, args: []argument{textArg, sessionArg}, exits: "0 done, 1 nothing found, or a session cannot be read, 2 wrong usage."})
	selectFlags(cmd, &s.path, &s.types)
	s.filter.flags(cmd, "events", "sessions that used a model")
	s.hitFilter.flags(cmd)
	limitFlag(cmd, &s.limit, 50, "print the first `n` hits; 0 prints all")
	cmd.Flags().IntVar(&s.perSession, "per-session", 5, "print `n` hits of each session; 0 prints all")
	cmd.Flags().BoolVar(&s.everything, "everything", false, "list every stored place of TEXT")
	cmd.Flags().IntVar(&s.context, "context", 60, "characters to print before and after a match")
	return cmd
}

func (s *searchOptions) check(now time.Time) error {
	switch {
	case s.everything && s.narrows():
		return usagef("--everything lists places of all events: leave out the flags that narrow")
	case s.limit < 0 || s.perSession < 0:
		return usagef("--limit and --per-session are not negative")
	case s.context < 1:
		return usagef("--context is at least 1")
	case strings.TrimSpace(s.text) == "" && (s.everything || !s.narrows() && len(s.types) == 0):
		return usagef("nothing to search for: give a word or a phrase, or a flag, for example --role user")
	}
	if err := s.filter.check(now); err != nil {
		return err
	}
	if err := s.hitFilter.check(); err != nil {
		return err
	}
	return checkPath(s.path)
}

// narrows reports whether a flag besides the type and the path selects events.
func (s *searchOptions) narrows() bool { return s.filter.isSet() || s.hitFilter.isSet() }

// query asks for more hits of each session than are printed: one more proves that
// there are more, and half of the hits may be repeats.
func (s *searchOptions) query() search.Query {
	q := search.Query{Text: strings.TrimSpace(s.text + " " + s.fileWord()), Session: s.session, Active: s.path == activePath, Context: s.context}
	for _, t := range s.types {
		q.Types = append(q.Types, event.Type(t).Name())
	}
	if s.session == "" {
		q.PerSession = 2*s.perSession + min(s.perSession, 1)
	}
	return q
}

func (a *app) search(ctx context.Context, log *eventlog.Log, s searchOptions) error {
	if s.session != "" {
		session, err := resolve(ctx, log, s.session)
		if err != nil {
			return fmt.Errorf("%w; several words are one TEXT, in quotes for the shell", err)
		}
		s.session = session
	} else {
		a.progress.ReadsAll()
	}
	where := func(*event.Event) bool { return true }
	if s.narrows() {
		catalog := a.catalog(log, anySummary())
		defer catalog.Flush(ctx)
		var err error
		if where, err = s.where(ctx, a, log, catalog); err != nil {
			return err
		}
	}
	query := s.query()
	out := &hitPrinter{printer: a.printer(), searchOptions: s, log: log, json: a.json, most: query.PerSession, printed: map[string]int{}, noted: map[string]bool{}, texts: map[uint64]bool{}, seed: maphash.MakeSeed()}
	var others atomic.Bool // there are hits that come last
	query.Where = func(e *event.Event) bool {
		last := s.comesLast(e)
		if !last || others.Load() {
			return !last && where(e)
		}
		if where(e) {
			others.Store(true)
		}
		return false
	}
	failed, more := out.hits(ctx, query)
	if more && others.Load() {
		out.end()
		out.current = ""
		query.Where = func(e *event.Event) bool { return s.comesLast(e) && where(e) }
		if again, _ := out.hits(ctx, query); len(failed) == 0 {
			failed = again // else they are the same
		}
	}
	out.end()
	if err := errors.Join(append(failed, out.Flush())...); err != nil {
		return err
	}
	if out.shown == 0 {
		return &foundNothingError{text: s.text, types: s.types, narrowed: s.narrows(), shown: true}
	}
	return nil
}

// comesLast reports whether no person and no model wrote a text. With a role, or with flags about
// calls, only texts in the user's name come last.
func (s *searchOptions) comesLast(e *event.Event) bool {
	if s.role == contextRole {
		return false
	}
	if e.IsContext() || s.role != "" || s.hitFilter.isSet() {
		return e.IsContext()
	}
	role := answers.RoleOf(e)
	return isForeign(e) || role != "" && role != event.User && role != event.Assistant
}

// hits prints the hits of a query; more is false once the limit is reached.
func (p *hitPrinter) hits(ctx context.Context, query search.Query) (failed []error, more bool) {
	for hit, err := range search.Events(ctx, p.log, query) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if more, err := p.hit(ctx, hit); err != nil || !more {
			return append(failed, err), false
		}
	}
	return failed, true
}

// foundNothingError is a search without a hit.
type foundNothingError struct {
	text  string
	types []string // of --type
	// shown says that the search read what views show, and no other stored member.
	shown bool
	// narrowed says that flags selected events.
	narrowed bool
	// phrase says that the text was looked for as one phrase.
	phrase bool
}

func (e *foundNothingError) Error() string {
	text := fmt.Sprintf("nothing found for %s", clean(e.text))
	if strings.TrimSpace(e.text) == "" {
		text = "nothing found"
	}
	if e.narrowed {
		text += " in the events that the flags select"
	}
	if !e.phrase && len(strings.Fields(e.text)) > 1 {
		text += "; an event must hold all of the words: try fewer"
	}
	for _, t := range e.types {
		if name := event.Type(t).Name(); !name.Known() && !strings.Contains(t, ":") {
			text += fmt.Sprintf("; the log has no type %s of its own", clean(t))
		}
	}
	if e.shown && !e.narrowed && len(e.types) == 0 {
		text += "; --everything also looks in other stored members"
	}
	return text
}

// hitPrinter prints hits, grouped by session.
type hitPrinter struct {
	*printer
	searchOptions
	log  *eventlog.Log
	json bool
	most int // hits of each session that the query asks for; 0 is all

	shown int // hits printed

	current string // the session of the newest hit
	title   string
	marker  *answers.PathMarker
	headed  bool // its heading is printed
	found   int  // its hits
	here    int  // its hits that were printed, also by the query before
	more    bool // it has more hits

	printed map[string]int  // hits of each session
	noted   map[string]bool // sessions with more hits than are printed
	// texts are hashes of sessions and of snippets of their messages.
	texts map[uint64]bool
	seed  maphash.Seed
}

// hit prints a hit; more is false once the limit is reached.
func (p *hitPrinter) hit(ctx context.Context, hit search.Hit) (more bool, err error) {
	if hit.Session != p.current {
		p.end()
		p.begin(ctx, hit)
	}
	if p.found++; p.repeats(hit) {
		p.more = p.more || p.found == p.most
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
	orphaned, err := p.marker.Orphaned(ctx, &hit.Event)
	if err != nil {
		return false, err
	}
	if !p.headed {
		p.heading(hit)
		p.headed = true
	}
	p.here, p.shown = p.here+1, p.shown+1
	p.printed[hit.Session] = p.here
	if p.json {
		return true, p.Value(answers.NewHit(hit, p.title, orphaned))
	}
	p.line(hit, orphaned)
	return true, nil
}

// repeats reports whether a raw record repeats the text of a printed message:
// programs record the results of tools twice. --json prints all hits.
func (p *hitPrinter) repeats(hit search.Hit) bool {
	text := maphash.String(p.seed, hit.Session+"\x00"+hit.Snippet)
	if hit.Type == event.MessageAdded {
		p.texts[text] = true
	}
	return !p.json && p.texts[text] && strings.Contains(string(hit.Type), ":")
}

// begin prepares for the hits of the next session.
func (p *hitPrinter) begin(ctx context.Context, hit search.Hit) {
	p.current, p.title = hit.Session, listing.Name(ctx, p.log, hit.Session)
	p.headed, p.found, p.here = false, 0, p.printed[hit.Session]
	if p.marker = nil; p.path == allPaths {
		p.marker = &answers.PathMarker{Log: p.log, Session: cmp.Or(p.session, hit.Session)}
	}
}

func (p *hitPrinter) heading(hit search.Hit) {
	if p.json {
		return
	}
	if p.shown > 0 {
		p.Printf("\n")
	}
	name := clean(hit.Session)
	if p.title == "" {
		p.Printf("%s\n", p.Paint(term.Bold, name))
		return
	}
	p.Printf("%s  %s\n", p.Paint(term.Bold, brief(p.title, titleColumns)), p.Paint(term.Dim, name))
}

func (p *hitPrinter) line(hit search.Hit, orphaned bool) {
	mark := ""
	if orphaned {
		mark = " · " + p.Paint(term.Yellow, orphanedMark)
	}
	p.Printf("  %s %s · %s%s\n    %s\n", p.Paint(term.Dim, fmt.Sprintf("#%d", hit.Seq)), p.source(hit), p.when(hit.Timestamp), mark, p.marked(hit))
	if isForeign(&hit.Event) {
		p.Printf("    %s\n", p.Paint(term.Dim, fmt.Sprintf("logtool show %s --from %d --to %d --full", shellWord(clean(hit.Session)), hit.Seq, hit.Seq)))
	}
}

// source is the role of a message, else the type of the event.
func (p *hitPrinter) source(hit search.Hit) string {
	if role := answers.RoleOf(&hit.Event); role != "" {
		return p.speaker(&hit.Event, role)
	}
	return clean(string(hit.Type))
}

// marked is the snippet of a hit with its matches in colour.
func (p *hitPrinter) marked(hit search.Hit) string {
	var text strings.Builder
	if hit.Before {
		text.WriteString("…")
	}
	at := 0
	for _, m := range hit.Matches {
		text.WriteString(clean(hit.Snippet[at:m[0]]) + p.Paint(term.Red, clean(hit.Snippet[m[0]:m[1]])))
		at = m[1]
	}
	text.WriteString(clean(hit.Snippet[at:]))
	if hit.After {
		text.WriteString("…")
	}
	return text.String()
}

// end prints how to find more hits of the session, if it has more.
func (p *hitPrinter) end() {
	if p.more && !p.json && p.limit > 0 && p.shown == p.limit {
		p.Printf("\n%s\n", p.Paint(term.Dim, "there is more: --limit 0 shows all"))
	} else if p.more && !p.json && !p.noted[p.current] && p.narrows() && p.headed {
		p.Printf("  %s\n", p.Paint(term.Dim, "more in this session: name it after the text, or --per-session 0"))
	} else if p.more && !p.json && !p.noted[p.current] && !p.narrows() {
		p.Printf("  %s\n", p.Paint(term.Dim, "more: logtool search "+shellWord(p.text)+" "+shellWord(p.current)))
	}
	p.noted[p.current] = p.noted[p.current] || p.more
	p.more = false
}
