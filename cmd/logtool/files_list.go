package main

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/linediff"
)

// changedFile is a file in the list of a session.
type changedFile struct {
	Path    string `json:"path"`
	Reads   int    `json:"reads"`
	Changes int    `json:"changes"`
	Failed  int    `json:"failed,omitzero"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	First   int64  `json:"first"` // seqs of calls
	Last    int64  `json:"last"`
	Text    string `json:"text"` // a text state
	Gaps    []gap  `json:"gaps,omitzero"`

	state files.State
}

// The values of TEXT.
const (
	textKnown   = "known"
	textAbsent  = "absent"
	textUnknown = "unknown"
)

func textState(s files.State) string {
	switch {
	case s.Absent:
		return textAbsent
	case s.Known:
		return textKnown
	}
	return textUnknown
}

// gap is a change of a file that the log does not have.
type gap struct {
	// Seq is the call that shows the change, and After the event at which the text was known
	// last.
	Seq   int64 `json:"seq"`
	After int64 `json:"after,omitzero"`
	// Command is a shell command that names the file, and Commands are the commands since After
	// that may have changed any file.
	Command  string  `json:"command,omitzero"`
	Commands []int64 `json:"commands,omitzero"`
}

// fileList lists the files of a session, in the order of their first calls.
type fileList struct {
	session, folder string
	rows            []*changedFile
	byPath          map[string]*changedFile
	commands        map[string]int // shell commands that may change any file, by tool
	children        []string       // sessions of sub-agents
	open            int            // calls without a result
}

func (l *fileList) row(path string, seq int64) *changedFile {
	row := l.byPath[path]
	if row == nil {
		row = &changedFile{Path: path, First: seq, Text: textUnknown}
		l.byPath[path] = row
		l.rows = append(l.rows, row)
	}
	row.Last = seq
	return row
}

func (l *fileList) add(c *files.Change) {
	if c.Does == files.Agent {
		if !slices.Contains(l.children, c.Child) {
			l.children = append(l.children, c.Child)
		}
		return
	}
	if c.Does == files.Run {
		if l.commands == nil {
			l.commands = map[string]int{}
		}
		l.commands[c.Tool]++
		return
	}
	row := l.row(c.Path, c.Seq)
	if c.Gap != nil {
		row.Gaps = append(row.Gaps, gap{Seq: c.Seq, After: c.Gap.After, Commands: c.Gap.Commands})
	}
	switch {
	case c.Result == 0:
		l.open++
		return
	case c.Failed:
		row.Failed++
	case c.Does == files.Read:
		row.Reads++
	default:
		row.Changes++
		row.count(c)
	}
	row.set(c.After)
	if c.Changes() && c.Does == files.Move {
		row.set(files.State{Known: true, Absent: true})
		l.row(c.To, c.Seq).set(c.After)
	}
}

func (row *changedFile) set(s files.State) { row.state, row.Text = s, textState(s) }

// count adds the lines of a change. A shell command whose text the log lacks is a gap.
func (row *changedFile) count(c *files.Change) {
	hunks := c.Hunks()
	for i := range hunks {
		added, removed, _ := hunks[i].Count()
		row.Added, row.Removed = row.Added+added, row.Removed+removed
	}
	if c.Command != "" && !c.After.Known && len(hunks) == 0 {
		row.Gaps = append(row.Gaps, gap{Seq: c.Seq, Command: c.Command})
	}
}

// files prints the list, its gaps, and what the log cannot tell.
func (p *printer) files(l *fileList) {
	if len(l.rows) == 0 {
		return
	}
	t := term.Table{Heading: []string{"FILE", "READS", "CHANGES", "FAILED", "ADDED", "REMOVED", "GAPS", "LAST", "TEXT"}, Right: []int{1, 2, 3, 4, 5, 6},
		Drop: []string{"LAST", "FAILED", "REMOVED", "ADDED"}, Keep: "FILE", Ends: []string{"FILE"}}
	for _, row := range l.rows {
		t.Rows = append(t.Rows, []string{clean(files.Below(l.folder, row.Path)), thousands(row.Reads), thousands(row.Changes), thousands(row.Failed),
			thousands(row.Added), thousands(row.Removed), thousands(len(row.Gaps)), at(row.Last), row.Text})
	}
	p.Print(t)
	for _, row := range l.rows {
		for _, g := range row.Gaps {
			p.Printf("gap: %s %s\n", clean(files.Below(l.folder, row.Path)), g)
		}
	}
	if text := l.footer(); text != "" {
		p.Printf("%s\n", strings.ReplaceAll(strings.TrimPrefix(text, "; "), "; ", "\n"))
	}
}

func (g gap) String() string {
	switch {
	case g.Command != "":
		return fmt.Sprintf("%s: the log does not have the text after: %s", at(g.Seq), brief(g.Command, 80))
	case len(g.Commands) == 0:
		return fmt.Sprintf("%s: changed since %s, and no call did it", at(g.Seq), at(g.After))
	}
	var seqs []string
	for _, seq := range g.Commands[:min(len(g.Commands), 5)] {
		seqs = append(seqs, at(seq))
	}
	if n := len(g.Commands) - len(seqs); n > 0 {
		seqs = append(seqs, thousands(n)+" more")
	}
	return fmt.Sprintf("%s: changed since %s, perhaps by a command or a sub-agent: %s", at(g.Seq), at(g.After), strings.Join(seqs, ", "))
}

// footer says which calls may have changed files.
func (l *fileList) footer() (text string) {
	for _, tool := range slices.Sorted(maps.Keys(l.commands)) {
		n := l.commands[tool]
		text += fmt.Sprintf("; %s may have changed any file: logtool calls %s --tool %s", count(n, "call"), shellWord(clean(l.session)), shellWord(clean(tool)))
	}
	for _, child := range l.children {
		text += "; sub-agent: logtool files " + shellWord(clean(child))
	}
	if l.open > 0 {
		text += "; " + count(l.open, "call") + " without a result"
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
	// Before and After are text states.
	Before string `json:"before"`
	After  string `json:"after"`
	Gap    *gap   `json:"gap,omitzero"`
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
			row := changeRow{c.Session, c.Seq, c.Result, c.At, c.Tool, c.Does, c.Path, c.To, c.Command, c.Orphaned, diffText(&c, hunks), textState(c.Before), textState(c.After), nil}
			if c.Gap != nil {
				row.Gap = &gap{Seq: c.Seq, After: c.Gap.After, Commands: c.Gap.Commands}
			}
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
	if c.Gap != nil {
		p.Printf("%s\n", p.Paint(term.Yellow, "gap: "+gap{Seq: c.Seq, After: c.Gap.After, Commands: c.Gap.Commands}.String()))
	}
	if c.Does == files.Move {
		p.Printf("moved to %s\n", clean(files.Below(folder, c.To)))
	}
	if len(hunks) == 0 && !c.After.Known {
		p.Printf("%s\n", p.Paint(term.Dim, "the log does not have the text: "+brief(c.Command, 80)))
	}
	for line := range strings.Lines(diffText(c, hunks)) {
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

// diffText is a change as a unified diff; empty if no lines changed.
func diffText(c *files.Change, hunks []linediff.Hunk) string {
	if len(hunks) == 0 {
		return ""
	}
	const none = "/dev/null"
	old, new := c.Path, c.Path
	if c.To != "" {
		new = c.To
	}
	if c.Before.Absent {
		old = none
	}
	if c.After.Absent {
		new = none
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, new)
	for i := range hunks {
		b.WriteString(hunks[i].Heading() + "\n" + strings.Join(hunks[i].Lines, "\n") + "\n")
	}
	return b.String()
}
