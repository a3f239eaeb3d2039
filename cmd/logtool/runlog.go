package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
)

// runlogOptions choose the form of a run.
type runlogOptions struct {
	runlog.Options
	priceFlag
	file     string // --output
	tree     bool   // --tree
	orphaned bool   // --orphaned
}

func (a *app) runlogCommand() *cobra.Command {
	var x runlogOptions
	cmd := a.command(&cobra.Command{
		Use:   "runlog SESSION",
		Short: "List the turns of a session: input, tool calls, output, cost",
		Long: `List the turns of a session with their input, tool calls, output and cost, for
evaluation. --json prints all of it on one line, with the runs of sub-agents. -o
writes the same to a file, indented.

--tree shows the operations as a tree: the turns, the model calls and tool calls of
each turn with their durations, and the runs of sub-agents. Orphaned (rewound) turns
are marked. Costs "with child runs" leave out forks; "tree" of logtool cost has them.
With -o it writes the op tree file: gzip-compressed JSON with every request and
response (plain JSON if the name does not end in .gz).

If an answer has no cost in the log, ~ marks the list price of its tokens.`,
		Example: "  logtool runlog order-42 --orphaned -o order-42.json\n  logtool runlog order-42 --tree -o order-42.json.gz",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if x.tree && x.orphaned {
				return usagef("--tree has orphaned turns, and marks them: leave out --orphaned")
			}
			if err := x.read(); err != nil {
				return err
			}
			x.estimates(&x.Options)
			x.Outline = x.file == "" && !a.json
			return a.loadRun(cmd.Context(), args[0], x.Options, func(run *runlog.Run) error { return a.runlog(run, &x) })
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	cmd.Flags().StringVarP(&x.file, "output", "o", "", "write JSON to this file")
	cmd.Flags().BoolVar(&x.tree, "tree", false, "show the operations as a tree")
	cmd.Flags().BoolVar(&x.orphaned, "orphaned", false, "list orphaned turns too")
	cmd.Flags().BoolVar(&x.NoChildren, "alone", false, "without the sessions of sub-agents")
	x.flag(cmd)
	cmd.Flags().BoolVar(&x.Own, "own", false, "without the events that a fork shares with its parent")
	return cmd
}

// runlog prints a run, or writes it to the file of --output.
func (a *app) runlog(run *runlog.Run, x *runlogOptions) error {
	if x.tree {
		if x.file == "" {
			return a.answerTree(run, x.table)
		}
		return a.output(x.file, func(w io.Writer) error {
			tree := run.OpTreeFile(runlog.OpTreeOptions{Now: a.now})
			if strings.HasSuffix(x.file, ".gz") {
				return tree.Write(w)
			}
			return tree.WriteJSON(w)
		})
	}
	turns := run.Log(x.orphaned)
	if x.file == "" {
		return a.answer(turns, func(p *printer) {
			p.runLog(turns)
			p.legend(x.table, run.Totals.Tree)
		})
	}
	return a.output(x.file, turns.WriteJSON)
}

// answerTree prints the operations of a run as a tree, with estimates of a table.
func (a *app) answerTree(run *runlog.Run, table *prices.Table) error {
	if a.json {
		return a.answer(run.OpTree(), nil)
	}
	p := a.printer()
	p.run(run, "")
	p.legend(table, run.Totals.Tree)
	return p.Flush()
}

func (a *app) loadRun(ctx context.Context, name string, opts runlog.Options, f func(*runlog.Run) error) error {
	return a.session(ctx, forReading, name, func(log *eventlog.Log, session string) error {
		run, err := runlog.Load(ctx, log, session, opts)
		if err != nil {
			return err
		}
		return f(run)
	})
}

// run prints a run; in is the indentation.
func (p *printer) run(r *runlog.Run, in string) {
	p.Printf("%s%s  %s\n", in, p.Paint(term.Bold, clean(r.Session)), p.Paint(term.Dim, runAbout(r)))
	for _, t := range r.Turns {
		p.runTurn(t, in+indent)
	}
	for _, op := range r.Ops {
		p.op(op, in+indent)
	}
}

func runAbout(r *runlog.Run) string {
	words := []string{string(r.Status)}
	if r.Title != "" {
		words = append(words, brief(r.Title, 60))
	}
	t := r.Totals
	words = append(words, count(t.Turns, "turn"), count(t.Responses, "answer"), count(t.Tools, "tool call"))
	if t.Failed > 0 {
		words = append(words, thousands(t.Failed)+" failed")
	}
	if t.Children > 0 {
		words = append(words, count(t.Children, "child run"))
	}
	words = append(words, "own "+spent(t.Own))
	if t.Children > 0 {
		words = append(words, "with child runs "+spent(t.Tree))
	}
	if n := t.Tree.Unpriced - t.Tree.Estimated; n > 0 {
		words = append(words, unpriced(n))
	}
	return strings.Join(words, " · ")
}

// unpriced counts the answers without a cost and an estimate.
func unpriced(n int) string { return count(n, "answer") + " unpriced" }

func (p *printer) runTurn(t *runlog.Turn, in string) {
	words := []string{fmt.Sprintf("turn %d", t.Index), p.Paint(term.Dim, at(t.From))}
	if input := inputOf(t.Input, 80); input != "" {
		words = append(words, input)
	}
	words = append(words, p.Paint(term.Dim, strings.Join(turnAbout(t), " · ")))
	if t.Orphaned {
		words = append(words, p.Paint(term.Yellow, orphanedMark))
	}
	p.Printf("%s%s\n", in, strings.Join(words, "  "))
	p.effectLines(nil, nil, t.Pauses, in+indent)
	for _, op := range t.Ops {
		p.op(op, in+indent)
	}
}

// inputOf is the beginning of the first input of a turn that has text.
func inputOf(input []event.Message, most int) string {
	for i := range input {
		if text := brief(input[i].Text(), most); text != "" {
			return text
		}
	}
	return ""
}

func turnAbout(t *runlog.Turn) (words []string) {
	words = append(words, cmp.Or(string(t.Status), "open"))
	if t.Error != "" {
		words = append(words, brief(t.Error, 80))
	}
	if took := time.Duration(t.TookMS) * time.Millisecond; took > 0 {
		words = append(words, elapsed(took))
	} else {
		words = append(words, duration(t.Started, t.Ended))
	}
	if t.Spend.Cost > 0 || t.Spend.Estimated > 0 {
		words = append(words, priced(t.Spend))
	}
	return words
}

// duration writes the time between two times.
func duration(started, ended time.Time) string {
	if started.IsZero() || ended.Before(started) {
		return "-"
	}
	return elapsed(ended.Sub(started))
}

// elapsed writes a duration.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func (p *printer) op(op *runlog.Op, in string) {
	words := []string{string(op.Kind), clean(op.Name), p.Paint(term.Dim, at(op.Seq)), p.Paint(opStyle(op.Status), string(op.Status))}
	if !op.Ended.IsZero() {
		words = append(words, p.Paint(term.Dim, duration(op.Started, op.Ended)))
	}
	if op.Error != "" {
		words = append(words, p.Paint(term.Red, brief(op.Error, 80)))
	}
	if op.Orphaned {
		words = append(words, p.Paint(term.Yellow, orphanedMark))
	}
	if op.By != "" {
		words = append(words, decided("recorded", op.By, op.Reason, nil))
	}
	p.Printf("%s%s\n", in, strings.Join(words, " "))
	p.effectLines(op.Reviews, op.Attempts, op.Pauses, in+indent)
	for _, c := range op.Children {
		p.childOp(c, in+indent)
	}
}

// effectLines prints the reviews, attempts and hibernations of an effect, by seq.
func (p *printer) effectLines(reviews []runlog.Review, attempts []runlog.Attempt, pauses []*runlog.Pause, in string) {
	type line struct {
		seq  int64
		text string
	}
	var lines []line
	for i := range reviews {
		lines = append(lines, line{reviews[i].Seq, reviewLine(&reviews[i])})
	}
	for i := range attempts {
		lines = append(lines, line{attempts[i].Seq, attemptLine(&attempts[i])})
	}
	for _, x := range pauses {
		text := "hibernated " + at(x.Seq) + ", not resumed"
		if !x.Resumed.IsZero() {
			text = "hibernated " + at(x.Seq) + ", resumed after " + duration(x.Hibernated, x.Resumed)
		}
		lines = append(lines, line{x.Seq, text})
	}
	slices.SortStableFunc(lines, func(x, y line) int { return cmp.Compare(x.seq, y.seq) })
	for _, l := range lines {
		p.Printf("%s%s\n", in, p.Paint(term.Dim, l.text))
	}
}

func reviewLine(r *runlog.Review) string {
	text := "review " + at(r.Seq)
	if r.Prompt != "" {
		text += " " + brief(r.Prompt, 60)
	}
	switch {
	case r.Decision != "":
		return text + " → " + decided(string(r.Decision), r.By, r.Reason, r.Arguments)
	case !r.Answered.IsZero():
		return text + " → " + decided("canceled", "", r.Reason, nil)
	}
	return text + " → open"
}

func attemptLine(x *runlog.Attempt) string {
	text := fmt.Sprintf("attempt %d %s ", x.Number, at(x.Seq))
	switch {
	case x.By != "":
		return text + decided("did not run, recorded", x.By, x.Reason, nil)
	case x.Error == "":
		return text + "interrupted"
	}
	return text + "failed: " + brief(x.Error, 80)
}

func opStyle(s runlog.OpStatus) term.Style {
	switch s {
	case runlog.OpFailed:
		return term.Red
	case runlog.OpOpen:
		return term.Yellow
	}
	return term.Green
}

func (p *printer) runLog(l *runlog.Log) {
	var cells [][]string
	for i := range l.Turns {
		cells = append(cells, turnCells(&l.Turns[i]))
	}
	p.Table([]string{"TURN", "SEQ", "STATUS", "CALLS", "COST", "INPUT", "OUTPUT"}, cells, 0, 1, 3, 4)
	line := count(len(l.Turns), "turn") + ", cost " +
		costOf(projection.Spend{Cost: l.TotalCost, Unpriced: l.Unpriced, Estimate: l.Estimate, Estimated: l.Estimated})
	if len(l.ChildRuns) > 0 {
		line += "; with child runs " +
			costOf(projection.Spend{Cost: l.TreeCost, Unpriced: l.TreeUnpriced, Estimate: l.TreeEstimate, Estimated: l.TreeEstimated})
	}
	p.Printf("%s\n", line)
	p.reported(l.Reported)
}

// costOf writes a cost, its estimate, and the number of answers without both, as a part of
// a sentence.
func costOf(s projection.Spend) string {
	text := spent(s)
	if n := s.Unpriced - s.Estimated; n > 0 {
		text += ", " + unpriced(n)
	}
	return text
}

func turnCells(t *runlog.LogTurn) []string {
	const most = 40
	input, output := inputOf(t.Input, most), ""
	if t.Output != nil {
		output = brief(t.Output.Text(), most)
	}
	status := cmp.Or(string(t.Status), "open")
	if t.Orphaned {
		status += ", " + orphanedMark
	}
	failed := 0
	for i := range t.Calls {
		if t.Calls[i].Status == runlog.OpFailed {
			failed++
		}
	}
	calls := thousands(len(t.Calls))
	if failed > 0 {
		calls += " (" + thousands(failed) + " failed)"
	}
	return []string{strconv.Itoa(t.Index), strconv.FormatInt(t.Seq, 10), status, calls,
		priced(projection.Spend{Cost: t.Cost, Unpriced: t.Unpriced, Estimate: t.Estimate, Estimated: t.Estimated}), input, output}
}

// childOp prints the sub-agent run of an op.
func (p *printer) childOp(c *runlog.ChildOp, in string) {
	words := []string{"run " + clean(cmp.Or(c.Agent, c.ID)), childState(c)}
	switch {
	case c.Missing:
		words = append(words, p.Paint(term.Yellow, fmt.Sprintf("session %q is missing", c.SessionID)))
	case c.Inherited:
		words = append(words, p.Paint(term.Dim, "inherited"))
	case c.Elsewhere:
		words = append(words, p.Paint(term.Dim, clean(c.SessionID)+" is shown elsewhere"))
	}
	if text := cmp.Or(c.Error, c.Summary, c.Task); text != "" {
		words = append(words, p.Paint(term.Dim, brief(text, 80)))
	}
	p.Printf("%s%s\n", in, strings.Join(words, " · "))
	if c.Run != nil {
		p.run(c.Run, in+indent)
	}
}

// childState says whether a child run runs, waits, or how it ended.
func childState(c *runlog.ChildOp) string {
	var words []string
	switch c.State {
	case "":
	case event.ChildStarted, event.ChildProgressed:
		words = append(words, "running")
	case event.ChildBlocked:
		words = append(words, string(c.State))
		for _, id := range c.InterruptIDs {
			words = append(words, "waits for review "+clean(id))
		}
	default:
		words = append(words, string(c.State))
	}
	if c.Merged {
		words = append(words, "merged")
	}
	return strings.Join(words, ", ")
}
