package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
)

// Of yields what a session did to files, in the order of the results. A fork includes
// what it shares with its parent. tools returns the tools of a format of sessions. The events
// must come oldest first.
//
// Of keeps the newest state of each file in memory.
func Of(ctx context.Context, log *eventlog.Log, session string, events eventlog.Range, tools func(format string) Tools) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		path, err := log.Path(ctx, session, 0)
		if err != nil {
			yield(Change{}, fmt.Errorf("files of session %q: %w", session, err))
			return
		}
		f := fold{tools: tools, table: tools(""), path: path, calls: map[string]*call{}, files: map[string]file{}}
		for e, err := range log.Read(ctx, session, events) {
			if err == nil {
				err = f.read(e.Effective())
			}
			if err != nil {
				yield(Change{}, fmt.Errorf("files of session %q: %w", session, err))
				return
			}
			for _, c := range f.found {
				if !yield(c, nil) {
					return
				}
			}
			f.found = f.found[:0]
		}
		for _, c := range f.open() {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// fold folds the events of a session.
type fold struct {
	tools  func(format string) Tools
	path   event.Path
	table  Tools
	folder string // of the session

	calls    map[string]*call // without a result yet, by call id
	order    []string         // their ids
	files    map[string]file
	commands []int64 // seqs of shell commands and of ends of sub-agents that may have changed files
	found    []Change
}

// call is a call without a result yet.
type call struct {
	Change
	tool  Tool
	args  Arguments
	steps []step
}

// file is what the log tells about a file.
type file struct {
	State
	seq int64 // of the event that tells it
}

// read reads an event. An erased event tells nothing.
func (f *fold) read(e *event.Event) error {
	if err := f.readWhole(e); !errors.Is(err, event.ErrRedacted) {
		return err
	}
	return nil
}

func (f *fold) readWhole(e *event.Event) error {
	switch e.Type.Name() {
	case event.SessionStarted, event.SessionUpdated, event.SessionForked:
		s, ok, err := event.Decode[event.Session](e)
		if !ok || err != nil {
			return err
		}
		if s.Source.Format != "" {
			f.table = f.tools(s.Source.Format)
		}
		if s.CWD != "" {
			f.folder = s.CWD
		}
	case event.ChildStarted.Type(), event.ChildCompleted.Type(), event.ChildFailed.Type(), event.ChildCanceled.Type():
		return f.child(e)
	case event.MessageAdded:
		m, ok, err := event.Decode[event.Message](e)
		if !ok || err != nil {
			return err
		}
		for i := range m.Parts {
			f.part(e, &m, &m.Parts[i])
		}
	}
	return nil
}

// child adds the run of a sub-agent, which may have changed files until it ends.
func (f *fold) child(e *event.Event) error {
	c, ok, err := event.Decode[event.Child](e)
	if !ok || err != nil {
		return err
	}
	if c.State.Ended() {
		f.commands = append(f.commands, e.Seq)
		return nil
	}
	if c.ChildSessionID != "" {
		f.found = append(f.found, Change{Session: e.SessionID, Seq: e.Seq, Result: e.Seq, At: e.Timestamp, Tool: c.Agent, Does: Agent, Child: c.ChildSessionID})
	}
	return nil
}

func (f *fold) part(e *event.Event, m *event.Message, p *event.Part) {
	switch p.Type {
	case event.ToolCallPart:
		c := &call{args: ArgumentsOf(p.Arguments), Change: Change{
			Session: e.SessionID, Seq: e.Seq, At: e.Timestamp, Tool: p.Name, CallID: p.CallID,
			Orphaned: e.Type.Scope() == event.PathScope && !f.path.Has(e.Seq),
		}}
		if c.tool, c.steps = f.table.steps(p, folderOf(m, f.folder)); len(c.steps) > 0 {
			f.calls[p.CallID] = c
			f.order = append(f.order, p.CallID)
		}
	case event.ToolResultPart:
		c := f.calls[p.CallID]
		if c == nil {
			return
		}
		delete(f.calls, p.CallID)
		c.Result, c.At, c.Failed = e.Seq, e.Timestamp, p.IsError
		f.result(c, &Result{Part: p, Call: c.args, Beside: m.Extra})
	}
}

// steps returns the tool of a call, and what it does.
func (t Tools) steps(p *event.Part, folder string) (tool Tool, steps []step) {
	tool, ok := t[p.Name]
	if !ok {
		return tool, nil
	}
	args := ArgumentsOf(p.Arguments)
	for tool.Pick != nil {
		name, own := tool.Pick(&args)
		if tool, ok = tool.Each[name]; !ok {
			return tool, nil
		}
		args = own
	}
	return tool, tool.steps(&args, folder)
}

// folderOf is the working folder of a message: programs write it beside the message. Without
// it, it is the folder of the session.
func folderOf(m *event.Message, folder string) string {
	if v, ok, err := rawjson.Lookup(m.Extra, "cwd"); ok && err == nil {
		if own, ok := rawjson.Text(v); ok && own != "" {
			return own
		}
	}
	return folder
}

// result applies the steps of a call.
func (f *fold) result(c *call, r *Result) {
	var seen Seen
	if c.tool.Sees != nil {
		seen = c.tool.Sees(r)
		if c.Failed = c.Failed || seen.Failed; r.IsError {
			seen = Seen{Path: seen.Path, Folder: seen.Folder}
		}
	}
	f.folder = cmp.Or(seen.Folder, f.folder)
	for i := range c.steps {
		s := &c.steps[i]
		if !s.locate(resolve(f.folder, seen.Path)) {
			continue
		}
		x := c.Change
		x.Does, x.Path, x.To, x.Command = s.does, s.path, s.to, s.command
		if s.does == Run {
			f.commands = append(f.commands, x.Seq)
			x.Failed = false
			f.found = append(f.found, x)
			continue
		}
		own := seen
		if s.command != "" {
			own = s.prints.seen(seen)
		} else if len(c.steps) > 1 {
			own = Seen{} // the result tells about several files
		}
		f.step(&x, s, &own)
	}
}

// step applies a step to its file.
func (f *fold) step(x *Change, s *step, seen *Seen) {
	at := f.files[x.Path]
	x.Before = at.State
	x.Gap = f.gap(x, s, seen)
	switch {
	case seen.Before != nil:
		x.Before = State{Text: *seen.Before, Known: true}
	case seen.Created:
		x.Before = State{Known: true, Absent: true}
	case x.Gap != nil:
		x.Before = State{}
	}
	switch {
	case x.Does == Read || x.Failed:
		x.After = x.Before
		if seen.After != nil {
			x.After = State{Text: *seen.After, Known: true}
			x.Before = x.After
		}
		if x.Failed && s.changes() && s.command != "" {
			x.After = State{} // a command may fail after a change
		}
	case x.Does == Delete:
		x.After = State{Known: true, Absent: true}
	default:
		text, known := s.after(x.Before)
		if seen.After != nil {
			text, known = *seen.After, true
		}
		x.After = State{Text: text, Known: known}
		x.given = s.hunks()
		place(x.given, seen.Places)
	}
	f.set(x)
	f.found = append(f.found, *x)
}

// set stores the state of a file after a change.
func (f *fold) set(x *Change) {
	path := x.Path
	if x.Failed && x.After == x.Before {
		return // it proves nothing
	}
	if x.Does == Move && !x.Failed {
		f.files[path] = file{State{Known: true, Absent: true}, x.Result}
		path = x.To
	}
	switch {
	case x.After.Known:
		f.files[path] = file{x.After, x.Result}
	default:
		delete(f.files, path)
	}
}

// gap compares what a result shows with the known state of the file.
func (f *fold) gap(x *Change, s *step, seen *Seen) *Gap {
	at := f.files[x.Path]
	if !at.Known || x.Failed {
		return nil
	}
	before := seen.Before
	if s.does == Read {
		before = seen.After
	}
	switch {
	case before != nil:
		if !at.Absent && same(*before, at.Text) {
			return nil
		}
	case seen.Created:
		if at.Absent {
			return nil
		}
	case seen.From > 0 && s.does == Read:
		if !at.Absent && hasPart(at.Text, seen.Lines, seen.From) {
			return nil
		}
	default:
		if s.does != Edit || len(s.edits)+len(s.patch) == 0 || s.unplaced {
			return nil
		}
		if _, ok := s.after(at.State); ok {
			return nil
		}
	}
	return &Gap{After: at.seq, Commands: f.since(at.seq)}
}

// since are the commands after an event. Gaps share the list.
func (f *fold) since(seq int64) []int64 {
	i := len(f.commands)
	for i > 0 && f.commands[i-1] > seq {
		i--
	}
	return slices.Clip(f.commands[i:])
}

// open returns the calls without a result: what they did is unknown.
func (f *fold) open() (all []Change) {
	for _, id := range f.order {
		c := f.calls[id]
		if c == nil {
			continue
		}
		delete(f.calls, id)
		for i := range c.steps {
			s := &c.steps[i]
			if !s.locate("") {
				continue
			}
			x := c.Change
			x.Does, x.Path, x.To, x.Command = s.does, s.path, s.to, s.command
			x.Before, x.given = f.files[s.path].State, s.hunks()
			all = append(all, x)
		}
	}
	return all
}

// same reports whether two contents are equal for readers: programs show files without
// carriage returns and without the mark at their beginning.
func same(a, b string) bool { return a == b || bare(a) == bare(b) }

func bare(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
}

// hasPart reports whether a text has lines at a number. The last line may lack its end.
func hasPart(text, lines string, from int) bool {
	text, lines = bare(text), strings.TrimSuffix(bare(lines), "\n")
	for n := 1; n < from; n++ {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return lines == ""
		}
		text = rest
	}
	rest, ok := strings.CutPrefix(text, lines)
	return ok && (rest == "" || rest[0] == '\n' || lines == "")
}

// seen is what a shell command shows of its file. out is the output of the command: After if
// it is exact, Lines if its end may be cut.
func (p printed) seen(out Seen) Seen {
	text := out.Lines
	if out.After != nil {
		text = *out.After
	}
	switch {
	case p.From == 0 || text == "":
		return Seen{}
	case p.numbered:
		return Numbered(text, "\t")
	case p.whole && out.After != nil:
		return Seen{After: out.After}
	}
	return Seen{Lines: text, From: p.From}
}

// Names reports whether a message calls a tool that reads or changes a file with a name (see
// Matches). folder is the working folder of the session.
func (t Tools) Names(m *event.Message, folder, name string) bool {
	return slices.ContainsFunc(m.ToolCalls(), func(p event.Part) bool {
		_, steps := t.steps(&p, folderOf(m, folder))
		return slices.ContainsFunc(steps, func(s step) bool { return Matches(name, s.path) || s.to != "" && Matches(name, s.to) })
	})
}
