package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/attempts"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/prices"
)

// diffAttempts compares two sessions without a common event: their counts, calls and files.
func (a *app) diffAttempts(ctx context.Context, log *eventlog.Log, x, y string, table *prices.Table) error {
	catalog := a.catalog(log, summaries(table))
	defer catalog.Flush(ctx)
	c, err := attempts.Compare(ctx, log, catalog, x, y)
	if err != nil {
		return err
	}
	return a.answer(c, func(p *printer) { p.attempts(&c, table) })
}

// attempts prints the comparison.
func (p *printer) attempts(c *attempts.Comparison, table *prices.Table) {
	p.Printf("no common event: the sessions are compared as two attempts\n\n")
	t := term.Table{Heading: []string{"", "A", "B"}, Right: []int{1, 2}}
	row := func(name string, of func(x *attempts.Attempt) string) {
		t.Rows = append(t.Rows, []string{name, of(&c.A), of(&c.B)})
	}
	short := func(text, other string) string {
		if !p.Terminal {
			return clean(text)
		}
		return distinct(text, other, attemptColumns)
	}
	t.Rows = append(t.Rows, []string{"session", short(c.A.Session, c.B.Session), short(c.B.Session, c.A.Session)})
	row("title", func(x *attempts.Attempt) string { return cmp.Or(brief(x.Title, attemptColumns), "-") })
	row("models", func(x *attempts.Attempt) string { return cmp.Or(short(strings.Join(x.Models, ", "), ""), "-") })
	if c.A.Reward != nil || c.B.Reward != nil {
		row("reward", rewardText)
	}
	row("turns", func(x *attempts.Attempt) string { return thousands(x.Turns) })
	row("calls", func(x *attempts.Attempt) string { return thousands(x.Calls) })
	row("failed calls", func(x *attempts.Attempt) string { return thousands(x.Failed) })
	row("input tokens", func(x *attempts.Attempt) string {
		u := x.Usage
		return tokensOf(x, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens)
	})
	row("output tokens", func(x *attempts.Attempt) string { return tokensOf(x, x.Usage.OutputTokens) })
	row("cost", func(x *attempts.Attempt) string { return priced(x.Spend) })
	row("time", func(x *attempts.Attempt) string {
		if x.Seconds == 0 {
			return "-" // without times
		}
		return duration(x.Summary.First, x.Summary.Last)
	})
	p.Print(t)
	p.Printf("\n%s\n", firstHeading(c.First))
	if c.First != nil {
		for _, side := range []struct {
			name string
			call *attempts.Call
		}{{"A", c.First.A}, {"B", c.First.B}} {
			p.Printf("  %s %s\n", side.name, callText(side.call))
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

// tokensOf is a number of tokens; "-" if the session tells none.
func tokensOf(x *attempts.Attempt, n int64) string {
	if x.Usage.IsZero() {
		return "-"
	}
	return thousands(n)
}

func rewardText(x *attempts.Attempt) string {
	if x.Reward == nil {
		return "-"
	}
	return strconv.FormatFloat(*x.Reward, 'g', -1, 64)
}

func firstHeading(d *attempts.DifferentCall) string {
	if d == nil {
		return "all calls are equal"
	}
	return "first different call, after " + count(d.Same, "equal one") + ":"
}

func callText(c *attempts.Call) string {
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
