package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/linediff"
)

// fileList lists the files of a session.
type fileList struct {
	session, folder string
	missing         []string // sub-agents that the store does not have
	files.List
}

// separate moves the sub-agents that the store does not have from Children to missing.
func (l *fileList) separate(ctx context.Context, log *eventlog.Log) {
	l.Children = slices.DeleteFunc(l.Children, func(child string) bool {
		_, err := log.Head(ctx, child)
		isMissing := errors.Is(err, eventlog.ErrNotFound)
		if isMissing {
			l.missing = append(l.missing, child)
		}
		return isMissing
	})
}

// files prints the list, its gaps, and what the log cannot tell.
func (p *printer) files(l *fileList) {
	if len(l.Files) == 0 {
		return
	}
	t := term.Table{Heading: []string{"FILE", "READS", "CHANGES", "FAILED", "ADDED", "REMOVED", "GAPS", "LAST", "TEXT"}, Right: []int{1, 2, 3, 4, 5, 6},
		Drop: []string{"LAST", "FAILED", "REMOVED", "ADDED"}, Keep: "FILE", Ends: []string{"FILE"}}
	for _, row := range l.Files {
		t.Rows = append(t.Rows, []string{clean(files.Below(l.folder, row.Path)), thousands(row.Reads), thousands(row.Changes), thousands(row.Failed),
			thousands(row.Added), thousands(row.Removed), thousands(len(row.Gaps)), at(row.Last), row.Text})
	}
	p.Print(t)
	for _, row := range l.Files {
		for _, g := range row.Gaps {
			p.Printf("gap: %s %s\n", clean(files.Below(l.folder, row.Path)), gapLine(&g))
		}
	}
	if text := l.footer(); text != "" {
		p.Printf("%s\n", strings.ReplaceAll(strings.TrimPrefix(text, "; "), "; ", "\n"))
	}
}

// gapLine describes a gap.
func gapLine(g *files.ListedGap) string {
	short := *g
	short.Command = brief(g.Command, 80)
	return clean(short.String())
}

// footer says which calls may have changed files.
func (l *fileList) footer() (text string) {
	for _, tool := range slices.Sorted(maps.Keys(l.Commands)) {
		n := l.Commands[tool]
		text += fmt.Sprintf("; %s may have changed any file: logtool calls %s --tool %s", count(n, "call"), shellWord(clean(l.session)), shellWord(clean(tool)))
	}
	for _, child := range l.Children {
		text += "; sub-agent: logtool files " + shellWord(clean(child))
	}
	if n := len(l.missing); n > 0 {
		text += "; " + count(n, "sub-agent") + " without a session in the store"
	}
	if l.Open > 0 {
		text += "; " + count(l.Open, "call") + " without a result"
	}
	return text
}

// changeRow is a change with --diff and --json.
type changeRow struct {
	Session  string       `json:"session"`
	Seq      int64        `json:"seq"`
	Result   int64        `json:"result,omitzero"`
	At       time.Time    `json:"time,omitzero"`
	Tool     string       `json:"tool"`
	Action   files.Action `json:"action"`
	Path     string       `json:"path"`
	To       string       `json:"to,omitzero"`
	Command  string       `json:"command,omitzero"`
	Orphaned bool         `json:"orphaned,omitzero"`
	Diff     string       `json:"diff,omitzero"`
	// Before and After are names of states.
	Before string           `json:"before"`
	After  string           `json:"after"`
	Gap    *files.ListedGap `json:"gap,omitzero"`
}

// fileDiffs prints the changes in turn.
func (a *app) fileDiffs(changes iter.Seq2[files.Change, error], folder string) error {
	p := a.printer()
	begun := false
	for c, err := range changes {
		if err != nil {
			return err
		}
		if !c.Changes() || c.Result == 0 {
			continue
		}
		hunks := c.Hunks()
		if a.json {
			row := changeRow{c.Session, c.Seq, c.Result, c.At, c.Tool, c.Does, c.Path, c.To, c.Command, c.Orphaned, c.Unified(hunks), c.Before.Name(), c.After.Name(), c.GapBefore()}
			if err := p.Value(row); err != nil {
				return err
			}
			continue
		}
		if begun {
			p.Printf("\n")
		}
		begun = true
		p.change(&c, hunks, folder)
		if err := p.Flush(); err != nil {
			return err
		}
	}
	if !begun && !a.json {
		a.note("no changes: logtool files without --diff lists what was read")
	}
	return p.Flush()
}

// change prints a change as a diff.
func (p *printer) change(c *files.Change, hunks []linediff.Hunk, folder string) {
	marks := ""
	if c.Orphaned {
		marks = " · " + p.Paint(term.Yellow, orphanedMark)
	}
	tool := clean(c.Tool)
	if !strings.EqualFold(tool, string(c.Does)) {
		tool += " " + string(c.Does)
	}
	p.Printf("%s %s %s · %s%s\n", p.Paint(term.Dim, seqsFrom(c.Seq, c.Result)), p.Paint(term.Cyan, tool),
		p.Paint(term.Bold, clean(files.Below(folder, c.Path))), p.clock(c.At), marks)
	if g := c.GapBefore(); g != nil {
		p.Printf("%s\n", p.Paint(term.Yellow, "gap: "+gapLine(g)))
	}
	if c.Does == files.Move {
		p.Printf("moved to %s\n", clean(files.Below(folder, c.To)))
	}
	if len(hunks) == 0 && !c.After.Known {
		p.Printf("%s\n", p.Paint(term.Dim, "the log does not have the text: "+brief(c.Command, 80)))
	}
	for line := range strings.Lines(c.Unified(hunks)) {
		line = clean(strings.TrimSuffix(line, "\n"))
		p.Printf("%s\n", p.Paint(diffStyle(line), line))
	}
}

// diffStyle is the colour of a line of a diff.
func diffStyle(line string) term.Style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return term.Bold
	case strings.HasPrefix(line, "@@"):
		return term.Cyan
	case strings.HasPrefix(line, "+"):
		return term.Green
	case strings.HasPrefix(line, "-"):
		return term.Red
	}
	return ""
}
