package files

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/linediff"
)

// List lists the files that a session read and changed, in the order of their first calls.
type List struct {
	Files    []*File
	Commands map[string]int // shell commands that may change any file, by tool
	Children []string       // sessions of sub-agents
	Open     int            // calls without a result

	byPath map[string]*File
}

// File is a file in a List, and a line of logtool files --json.
type File struct {
	Path    string      `json:"path"`
	Reads   int         `json:"reads"`
	Changes int         `json:"changes"`
	Failed  int         `json:"failed,omitzero"`
	Added   int         `json:"added"` // lines
	Removed int         `json:"removed"`
	First   int64       `json:"first"` // seqs of calls
	Last    int64       `json:"last"`
	Text    string      `json:"text"` // as State.Name
	Gaps    []ListedGap `json:"gaps,omitzero"`

	State State `json:"-"` // at the end
}

// The names of states.
const (
	TextKnown   = "known"
	TextAbsent  = "absent"
	TextUnknown = "unknown"
)

// Name says what the log has of the file.
func (s State) Name() string {
	switch {
	case s.Absent:
		return TextAbsent
	case s.Known:
		return TextKnown
	}
	return TextUnknown
}

// ListedGap is a change of a file that the log does not have.
type ListedGap struct {
	// Seq is the call that shows the change, and After the event at which the text was known
	// last.
	Seq   int64 `json:"seq"`
	After int64 `json:"after,omitzero"`
	// Command is a shell command that names the file, and Commands are the commands since After
	// that may have changed any file.
	Command  string  `json:"command,omitzero"`
	Commands []int64 `json:"commands,omitzero"`
}

// GapBefore is the gap before a change; nil if there is none.
func (c *Change) GapBefore() *ListedGap {
	if c.Gap == nil {
		return nil
	}
	return &ListedGap{Seq: c.Seq, After: c.Gap.After, Commands: c.Gap.Commands}
}

// String describes the gap. The text of the command is as it is in the log.
func (g *ListedGap) String() string {
	const most = 5
	switch {
	case g.Command != "":
		return fmt.Sprintf("#%d: the log does not have the text after: %s", g.Seq, g.Command)
	case len(g.Commands) == 0:
		return fmt.Sprintf("#%d: changed since #%d, and no call did it", g.Seq, g.After)
	}
	var seqs []string
	for _, seq := range g.Commands[:min(len(g.Commands), most)] {
		seqs = append(seqs, fmt.Sprintf("#%d", seq))
	}
	if n := len(g.Commands) - len(seqs); n > 0 {
		seqs = append(seqs, fmt.Sprintf("%d more", n))
	}
	return fmt.Sprintf("#%d: changed since #%d, perhaps by a command or a sub-agent: %s", g.Seq, g.After, strings.Join(seqs, ", "))
}

func (l *List) file(path string, seq int64) *File {
	f := l.byPath[path]
	if f == nil {
		f = &File{Path: path, First: seq, Text: TextUnknown}
		if l.byPath == nil {
			l.byPath = map[string]*File{}
		}
		l.byPath[path] = f
		l.Files = append(l.Files, f)
	}
	f.Last = seq
	return f
}

// Add counts the next change of the session.
func (l *List) Add(c *Change) {
	switch c.Does {
	case Agent:
		if !slices.Contains(l.Children, c.Child) {
			l.Children = append(l.Children, c.Child)
		}
		return
	case Run:
		if l.Commands == nil {
			l.Commands = map[string]int{}
		}
		l.Commands[c.Tool]++
		return
	}
	f := l.file(c.Path, c.Seq)
	if g := c.GapBefore(); g != nil {
		f.Gaps = append(f.Gaps, *g)
	}
	switch {
	case c.Result == 0:
		l.Open++
		return
	case c.Failed:
		f.Failed++
	case c.Does == Read:
		f.Reads++
	default:
		f.Changes++
		f.count(c)
	}
	f.set(c.After)
	if c.Changes() && c.Does == Move {
		f.set(State{Known: true, Absent: true})
		l.file(c.To, c.Seq).set(c.After)
	}
}

func (f *File) set(s State) { f.State, f.Text = s, s.Name() }

// count adds the lines of a change. A shell command whose text the log lacks is a gap.
func (f *File) count(c *Change) {
	hunks := c.Hunks()
	for i := range hunks {
		added, removed, _ := hunks[i].Count()
		f.Added, f.Removed = f.Added+added, f.Removed+removed
	}
	if c.Command != "" && !c.After.Known && len(hunks) == 0 {
		f.Gaps = append(f.Gaps, ListedGap{Seq: c.Seq, Command: c.Command})
	}
}

// Unified is the change as a unified diff; empty if no lines changed.
func (c *Change) Unified(hunks []linediff.Hunk) string {
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
