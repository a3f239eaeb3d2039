package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog/stats"
)

// attempt is one of two sessions without a common event, with --json.
type attempt struct {
	Session     string `json:"session"`
	Title       string `json:"title,omitzero"`
	stats.Tally `json:",inline"`
	Failed      int64    `json:"failed"` // calls
	Seconds     float64  `json:"seconds,omitzero"`
	Models      []string `json:"models,omitzero"`
	Reward      *float64 `json:"reward,omitzero"` // that a benchmark recorded

	summary stats.Summary
	files   *fileList
}

// attempts compares two sessions without a common event.
type attempts struct {
	A attempt `json:"a"`
	B attempt `json:"b"`
	// First is the first call that differs; nil if the calls of one session are the beginning
	// of the other's, and both have the same number.
	First *differentCall `json:"first_different_call,omitzero"`
	Files []comparedFile `json:"files,omitzero"` // that one of them changed
}

// differentCall is the first pair of calls that differ, after Same equal ones.
type differentCall struct {
	Same int       `json:"same"`
	A    *pathCall `json:"a,omitzero"` // nil: the session has no more calls
	B    *pathCall `json:"b,omitzero"`
}

// pathCall is a call on the active path of a session.
type pathCall struct {
	Seq       int64          `json:"seq"`
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

// comparedFile is a file that one of two sessions changed. The path is relative to the folder of
// each session.
type comparedFile struct {
	Path string      `json:"path"`
	A    *files.File `json:"a,omitzero"` // nil: the session did not change it
	B    *files.File `json:"b,omitzero"`
	// Text compares the texts at the end.
	Text string `json:"text"`
}

// The values of comparedFile.Text, besides files.TextUnknown.
const (
	textSame      = "same"
	textDifferent = "different"
	textOnlyA     = "only in A"
	textOnlyB     = "only in B"
)

// diffAttempts compares two sessions without a common event: their counts, calls and files.
func (a *app) diffAttempts(ctx context.Context, log *eventlog.Log, x, y string, table *prices.Table) error {
	c, err := a.attempts(ctx, log, x, y, table)
	if err != nil {
		return fmt.Errorf("compare sessions %q and %q: %w", x, y, err)
	}
	return a.answer(c, func(p *printer) { p.attempts(&c, table) })
}

func (a *app) attempts(ctx context.Context, log *eventlog.Log, x, y string, table *prices.Table) (c attempts, err error) {
	if c.A, err = a.attempt(ctx, log, x, table); err == nil {
		c.B, err = a.attempt(ctx, log, y, table)
	}
	if err == nil {
		c.First, err = firstDifference(ctx, log, &c.A, &c.B)
	}
	if err == nil {
		c.compareFiles()
	}
	return c, err
}

func (a *app) attempt(ctx context.Context, log *eventlog.Log, session string, table *prices.Table) (x attempt, err error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return x, err
	}
	catalog := a.catalog(log, summaries(table))
	defer catalog.Flush(ctx)
	all, err := catalog.Load(ctx, []stats.Listed{{Session: session, Head: head}})
	if err = cmp.Or(err, all[0].Err); err != nil {
		return x, err
	}
	s := all[0]
	x = attempt{Session: session, Title: cmp.Or(onOneLine(s.Title), onOneLine(s.Input)), Tally: s.Total, summary: s}
	for _, t := range s.ByTool {
		x.Failed += t.Failed
	}
	for name := range s.ByModel {
		x.Models = append(x.Models, name)
	}
	slices.Sort(x.Models)
	if !event.Dated(s.First).IsZero() {
		x.Seconds = s.Last.Sub(s.First).Seconds()
	}
	if x.Reward, err = rewardOf(ctx, log, session); err != nil {
		return x, err
	}
	x.files = &fileList{session: session, folder: s.CWD}
	for c, err := range (&filesOptions{path: activePath}).changes(ctx, log, session) {
		if err != nil {
			return x, err
		}
		x.files.Add(&c)
	}
	return x, nil
}

// rewardOf is the reward of a run of a benchmark, which its importer keeps in the first event;
// nil if there is none.
func rewardOf(ctx context.Context, log *eventlog.Log, session string) (*float64, error) {
	e, err := log.Event(ctx, session, 1)
	if err != nil {
		return nil, err
	}
	s, _, err := event.Decode[event.Session](&e)
	if err != nil {
		return nil, err
	}
	v, ok, _ := rawjson.Lookup(s.Extra, "reward") // the extra of a stored event is valid
	if !ok || v.Kind() != '0' {
		return nil, nil
	}
	reward, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return nil, nil
	}
	return &reward, nil
}

// firstDifference finds the first call that differs. The folders of the sessions count as equal.
func firstDifference(ctx context.Context, log *eventlog.Log, a, b *attempt) (*differentCall, error) {
	nextA, stopA := iter.Pull2(pathCalls(ctx, log, a.Session))
	defer stopA()
	nextB, stopB := iter.Pull2(pathCalls(ctx, log, b.Session))
	defer stopB()
	for same := 0; ; same++ {
		x, err, moreA := nextA()
		if err != nil {
			return nil, err
		}
		y, err, moreB := nextB()
		switch {
		case err != nil:
			return nil, err
		case !moreA && !moreB:
			return nil, nil
		case !moreA || !moreB || !equalCalls(x, y, a.summary.CWD, b.summary.CWD):
			return &differentCall{same, x, y}, nil
		}
	}
}

// pathCalls yields the calls on the active path of a session.
func pathCalls(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[*pathCall, error] {
	return func(yield func(*pathCall, error) bool) {
		for e, err := range log.Read(ctx, session, eventlog.All().OnPath()) {
			var m event.Message
			if err == nil {
				m, _, err = event.Decode[event.Message](e.Effective())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, p := range m.ToolCalls() {
				if !yield(&pathCall{e.Seq, p.Name, p.Arguments}, nil) {
					return
				}
			}
		}
	}
}

// equalCalls reports whether two calls are equal, also with other orders of members, and in
// other folders.
func equalCalls(x, y *pathCall, folderX, folderY string) bool {
	return x.Tool == y.Tool && canonical(x.Arguments, folderX) == canonical(y.Arguments, folderY)
}

func canonical(v jsontext.Value, folder string) string {
	v = v.Clone()
	if v.Canonicalize() != nil {
		return string(v)
	}
	quoted, err := json.Marshal(folder)
	if folder == "" || err != nil {
		return string(v)
	}
	return strings.ReplaceAll(string(v), string(quoted[1:len(quoted)-1]), ".")
}

// compareFiles compares the files that one of the sessions changed.
func (c *attempts) compareFiles() {
	byPath := map[string]int{}
	add := func(l *fileList, side func(f *comparedFile) **files.File) {
		for _, row := range l.Files {
			if row.Changes == 0 {
				continue
			}
			path := files.Below(l.folder, row.Path)
			i, ok := byPath[path]
			if !ok {
				i = len(c.Files)
				byPath[path] = i
				c.Files = append(c.Files, comparedFile{Path: path})
			}
			*side(&c.Files[i]) = row
		}
	}
	add(c.A.files, func(f *comparedFile) **files.File { return &f.A })
	add(c.B.files, func(f *comparedFile) **files.File { return &f.B })
	slices.SortFunc(c.Files, func(x, y comparedFile) int { return strings.Compare(x.Path, y.Path) })
	for i := range c.Files {
		f := &c.Files[i]
		switch {
		case f.B == nil:
			f.Text = textOnlyA
		case f.A == nil:
			f.Text = textOnlyB
		case !f.A.State.Known || !f.B.State.Known:
			f.Text = files.TextUnknown
		case f.A.State == f.B.State:
			f.Text = textSame
		default:
			f.Text = textDifferent
		}
	}
}

// attempts prints the comparison.
func (p *printer) attempts(c *attempts, table *prices.Table) {
	p.Printf("no common event: the sessions are compared as two attempts\n\n")
	t := term.Table{Heading: []string{"", "A", "B"}, Right: []int{1, 2}}
	row := func(name string, of func(x *attempt) string) {
		t.Rows = append(t.Rows, []string{name, of(&c.A), of(&c.B)})
	}
	short := func(text, other string) string {
		if !p.Terminal {
			return clean(text)
		}
		return distinct(text, other, attemptColumns)
	}
	t.Rows = append(t.Rows, []string{"session", short(c.A.Session, c.B.Session), short(c.B.Session, c.A.Session)})
	row("title", func(x *attempt) string { return cmp.Or(brief(x.Title, attemptColumns), "-") })
	row("models", func(x *attempt) string { return cmp.Or(short(strings.Join(x.Models, ", "), ""), "-") })
	if c.A.Reward != nil || c.B.Reward != nil {
		row("reward", (*attempt).reward)
	}
	row("turns", func(x *attempt) string { return thousands(x.Turns) })
	row("calls", func(x *attempt) string { return thousands(x.Calls) })
	row("failed calls", func(x *attempt) string { return thousands(x.Failed) })
	row("input tokens", func(x *attempt) string {
		u := x.Usage
		return x.tokens(u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens)
	})
	row("output tokens", func(x *attempt) string { return x.tokens(x.Usage.OutputTokens) })
	row("cost", func(x *attempt) string { return priced(x.Spend) })
	row("time", func(x *attempt) string {
		if x.Seconds == 0 {
			return "-" // without times
		}
		return duration(x.summary.First, x.summary.Last)
	})
	p.Print(t)
	p.Printf("\n%s\n", c.First.heading())
	if c.First != nil {
		for _, side := range []struct {
			name string
			call *pathCall
		}{{"A", c.First.A}, {"B", c.First.B}} {
			p.Printf("  %s %s\n", side.name, side.call)
		}
	}
	if len(c.Files) > 0 {
		p.Printf("\n")
		t := term.Table{Heading: []string{"FILE", "A", "B", "TEXT"}, Right: []int{1, 2}, Keep: "FILE", Ends: []string{"FILE"}}
		for _, f := range c.Files {
			t.Rows = append(t.Rows, []string{clean(f.Path), changedLines(f.A), changedLines(f.B), f.Text})
		}
		p.Print(t)
	}
	p.legend(table, c.A.Spend.Add(c.B.Spend))
}

// attemptColumns is the most columns of a text about an attempt on a terminal.
const attemptColumns = 36

// distinct shortens a text to n columns. It shows where the text differs from another one.
func distinct(text, other string, n int) string {
	if columns(text) <= n || common(text, other) < n-1 {
		return brief(text, n)
	}
	begin := max(0, common(text, other)-8)
	for !utf8.RuneStart(text[begin]) {
		begin--
	}
	return "…" + brief(text[begin:], n-1)
}

// tokens is a number of tokens; "-" if the session tells none.
func (x *attempt) tokens(n int64) string {
	if x.Usage.IsZero() {
		return "-"
	}
	return thousands(n)
}

func (x *attempt) reward() string {
	if x.Reward == nil {
		return "-"
	}
	return strconv.FormatFloat(*x.Reward, 'g', -1, 64)
}

func (d *differentCall) heading() string {
	if d == nil {
		return "all calls are equal"
	}
	return "first different call, after " + count(d.Same, "equal one") + ":"
}

func (c *pathCall) String() string {
	if c == nil {
		return "no more calls"
	}
	return fmt.Sprintf("%s %s %s", at(c.Seq), brief(c.Tool, 40), brief(oneLineArguments(c.Arguments), callColumns))
}

// changedLines are the lines that a session added and removed: "+3 -1"; "-" if it did not change the
// file.
func changedLines(f *files.File) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Removed)
}
