package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/runlog/stats"
)

// callsOptions choose the calls that calls lists.
type callsOptions struct {
	filter
	tool   string // --tool
	failed bool   // --failed
	limit  int    // --limit

	tools map[string]bool // the tools of the sessions
}

func (a *app) callsCommand() *cobra.Command {
	var x callsOptions
	cmd := a.command(&cobra.Command{
		Use:   "calls [SESSION...]",
		Short: "List the tool calls of all sessions: the failed ones, of one tool",
		Long: `List the calls of tools in all sessions, or in the sessions named, newest first. A call
that failed has the beginning of its error. TOOK is the time from the call to its
result. Calls that a fork shares with its parent are listed once. logtool show SESSION
--from SEQ --to SEQ --full shows a call and its result in full.

` + whenHelp,
		Example: "  logtool calls --failed --since 7d\n  logtool calls order-42 --tool Bash",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if x.limit < 0 {
				return usagef("--limit is a number of calls, not %d", x.limit)
			}
			if err := x.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.calls(cmd.Context(), log, args, &x) })
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg, more}})
	toolFlags(cmd, &x.tool, &x.failed)
	limitFlag(cmd, &x.limit, 50, "list the newest `n` calls; 0 lists all")
	x.filter.flags(cmd, "calls", "sessions that used a model")
	return cmd
}

// callRow is a call of a list.
type callRow struct {
	Session     string         `json:"session"`
	Seq         int64          `json:"seq"`
	Result      int64          `json:"result,omitzero"`
	At          time.Time      `json:"time,omitzero"`
	Tool        string         `json:"tool"`
	Arguments   jsontext.Value `json:"arguments,omitzero"`
	Failed      bool           `json:"failed,omitzero"`
	Interrupted bool           `json:"interrupted,omitzero"`
	Seconds     float64        `json:"seconds,omitzero"` // from the call to the result
	Error       string         `json:"error,omitzero"`

	ended time.Time
}

func (a *app) calls(ctx context.Context, log *eventlog.Log, args []string, x *callsOptions) error {
	ids, err := a.named(ctx, log, args)
	if err != nil {
		return err
	}
	rows, err := x.filter.sessions(ctx, a, log, ids)
	if err != nil {
		return err
	}
	var unreadable []*sessionRow
	x.tools = map[string]bool{}
	rows, unreadable, err = x.withCalls(ctx, a, log, rows)
	if err != nil {
		return err
	}
	if x.tool != "" && len(unreadable) == 0 && len(x.tools) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(x.tools)), x.hasTool) {
		return fmt.Errorf("no session calls a tool named %q; the tools are %s", x.tool, someOf(slices.Sorted(maps.Keys(x.tools)), 20))
	}
	slices.SortFunc(rows, func(a, b *sessionRow) int { return b.Last().Compare(a.Last()) })
	out := callPrinter{printer: a.printer(), json: a.json, ids: x.ids, most: x.limit}
	step := a.steps(len(rows))
	for _, row := range rows {
		if err := out.print(row.Last()); err != nil {
			return err
		}
		if out.full() {
			break
		}
		found, err := x.read(ctx, log, row.ID)
		if err != nil {
			row.Fail(err)
			unreadable = append(unreadable, row)
			continue
		}
		out.add(found)
		step()
	}
	a.progress.Say(nil)
	if err := out.end(); err != nil {
		return err
	}
	if out.printed == 0 && len(unreadable) == 0 {
		a.note("no such call")
	}
	return leftOut(unreadable)
}

// withCalls are the sessions with calls that the flags select, by the catalog.
func (x *callsOptions) withCalls(ctx context.Context, a *app, log *eventlog.Log, rows []*sessionRow) (with, unreadable []*sessionRow, err error) {
	catalog := a.catalog(log, anySummary())
	defer catalog.Flush(ctx)
	step := a.steps(len(rows))
	called := map[*sessionRow]bool{}
	err = listing.EachSummary(ctx, catalog, rows, step, func(row *sessionRow, s *stats.Summary) {
		if x.Model != "" && !usesModel(s, x.HasModel) {
			return
		}
		for name := range s.ByTool {
			x.tools[name] = true
		}
		for name, t := range s.ByTool {
			if x.hasTool(name) && (!x.failed || t.Failed > 0) {
				called[row] = true
				return
			}
		}
	})
	a.progress.Say(nil)
	for _, row := range rows {
		if row.Err() != nil {
			unreadable = append(unreadable, row)
		}
		if called[row] {
			with = append(with, row)
		}
	}
	return with, unreadable, err
}

func (x *callsOptions) hasTool(name string) bool {
	return x.tool == "" || strings.EqualFold(x.tool, name)
}

// errEnoughCalls ends a read.
var errEnoughCalls = errors.New("enough calls")

// read returns the selected calls of a session, newest first, and no more than the limit.
func (x *callsOptions) read(ctx context.Context, log *eventlog.Log, session string) ([]callRow, error) {
	r := callReader{options: x, session: session, results: map[string]callResult{}}
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Backward()) {
		if err == nil && !e.Inherited() && !e.Copied() {
			err = r.event(&e)
		}
		if errors.Is(err, errEnoughCalls) {
			return r.found, nil
		}
		if err != nil {
			return nil, err
		}
	}
	r.withoutCalls()
	return r.found, nil
}

// callReader reads the calls of a session back from its end: results come before their calls.
type callReader struct {
	options *callsOptions
	session string
	results map[string]callResult // by call id, until the call comes
	found   []callRow
}

// callResult is what a row needs of a result.
type callResult struct {
	tool                string
	seq                 int64
	at                  time.Time
	failed, interrupted bool
	text                string // of an error
}

func (r *callReader) event(e *event.Event) error {
	m, ok, err := event.Decode[event.Message](e)
	if errors.Is(err, event.ErrRedacted) {
		return nil // its calls and results were erased
	}
	if !ok || err != nil {
		return err
	}
	for i := len(m.Parts) - 1; i >= 0; i-- {
		switch p := &m.Parts[i]; p.Type {
		case event.ToolResultPart, event.ServerToolResultPart:
			r.result(e, p)
		case event.ToolCallPart, event.ServerToolCallPart:
			if err := r.call(e, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *callReader) result(e *event.Event, p *event.Part) {
	x := callResult{tool: p.Name, seq: e.Seq, at: event.Dated(e.Timestamp), failed: p.IsError, interrupted: p.Interrupted}
	if p.IsError {
		x.text = transcript.ErrorText(p)
	}
	r.results[p.CallID] = x
}

// withoutCalls adds the results whose call is not in the session: a fork may have the result
// of a call of its parent, and an imported file may lack the call.
func (r *callReader) withoutCalls() {
	for _, x := range r.results {
		if r.options.hasTool(x.tool) && (x.failed || !r.options.failed) && r.options.Has(x.at) {
			r.found = append(r.found, callRow{Session: r.session, Seq: x.seq, Result: x.seq, At: x.at, Tool: x.tool,
				Failed: x.failed, Interrupted: x.interrupted, Error: x.text})
		}
	}
	slices.SortStableFunc(r.found, func(a, b callRow) int { return cmp.Compare(b.Seq, a.Seq) })
	if n := r.options.limit; n > 0 && len(r.found) > n {
		r.found = r.found[:n]
	}
}

func (r *callReader) call(e *event.Event, p *event.Part) error {
	result := r.results[p.CallID]
	delete(r.results, p.CallID)
	at := event.Dated(e.Timestamp)
	if !r.options.hasTool(p.Name) || r.options.failed && !result.failed || !r.options.Has(at) {
		return nil
	}
	row := callRow{Session: r.session, Seq: e.Seq, Result: result.seq, At: at, Tool: p.Name, Arguments: p.Arguments,
		Failed: result.failed, Interrupted: result.interrupted, Error: result.text}
	if !at.IsZero() && result.at.After(at) {
		row.Seconds, row.ended = result.at.Sub(at).Seconds(), result.at
	}
	r.found = append(r.found, row)
	if n := r.options.limit; n > 0 && len(r.found) == n {
		return errEnoughCalls
	}
	return nil
}

// callPrinter prints calls of several sessions, newest first. Sessions come in the order of
// their last activity: a call is printed once no later session can have a newer one.
type callPrinter struct {
	*printer
	json bool
	ids  []string // of all sessions, sorted
	most int      // calls to print; 0 is no bound

	waiting []callRow // newest first
	table   term.Table
	printed int
	more    bool   // some calls were left out
	whole   string // the command that shows the first call
}

func (p *callPrinter) full() bool { return p.most > 0 && p.printed >= p.most }

func (p *callPrinter) add(rows []callRow) {
	p.waiting = append(p.waiting, rows...)
	slices.SortStableFunc(p.waiting, func(a, b callRow) int { return b.At.Compare(a.At) })
	if n := p.most - p.printed; p.most > 0 && len(p.waiting) > n {
		clear(p.waiting[n:])
		p.waiting, p.more = p.waiting[:n], true
	}
}

// print prints the calls after a time.
func (p *callPrinter) print(after time.Time) error {
	n := 0
	for n < len(p.waiting) && p.waiting[n].At.After(after) && !p.full() {
		if err := p.row(&p.waiting[n]); err != nil {
			return err
		}
		n++
	}
	p.waiting = slices.Delete(p.waiting, 0, n)
	return nil
}

func (p *callPrinter) row(row *callRow) error {
	p.printed++
	if p.json {
		return p.Value(*row)
	}
	id := clean(row.Session)
	if p.Terminal {
		id = clean(abbreviate(row.Session, p.ids))
	}
	took := "-"
	if row.Seconds > 0 {
		took = duration(row.At, row.ended)
	}
	about := brief(oneLineArguments(row.Arguments), callColumns)
	switch {
	case row.Interrupted:
		about += " ← interrupted"
	case row.Failed:
		about += " ← " + brief(row.Error, callColumns)
	}
	if p.whole == "" {
		p.whole = fmt.Sprintf("logtool show %s --from %d --to %d --full", shellWord(id), row.Seq, row.Seq)
	}
	p.table.Add([]string{p.when(row.At), id, at(row.Seq), brief(row.Tool, 40), p.state(row), took, about})
	return nil
}

// callColumns is the most columns of the arguments and of the error of a call.
const callColumns = 100

func (p *callPrinter) state(row *callRow) string {
	switch {
	case row.Failed:
		return "failed"
	case row.Result == 0:
		return "open"
	}
	return "done"
}

// end prints the other calls, and the table.
func (p *callPrinter) end() error {
	for i := range p.waiting {
		if p.full() {
			break
		}
		if err := p.row(&p.waiting[i]); err != nil {
			return err
		}
	}
	if !p.json && p.printed > 0 {
		p.table.Heading = []string{"TIME", "SESSION", "SEQ", "TOOL", "RESULT", "TOOK", "CALL"}
		p.table.Right, p.table.Keep, p.table.Whole = []int{5}, "CALL", []string{"TIME", "SESSION"}
		p.table.Drop = []string{"TOOK", "RESULT"}
		p.Print(p.table)
		p.Printf("%s\n", p.Paint(term.Dim, "a call and its result in full: "+p.whole))
		if p.more || p.full() {
			p.Printf("%s\n", p.Paint(term.Dim, "there may be more: --limit 0 lists all"))
		}
	}
	return p.Flush()
}
