package files

import (
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/linediff"
)

// Action is what a call did to one file.
type Action string

// The actions.
const (
	Read   Action = "read"
	Write  Action = "write"  // the whole file
	Edit   Action = "edit"   // a part of it
	Delete Action = "delete" //
	Move   Action = "move"   // and perhaps an edit
	Run    Action = "run"    // a shell command that may change any file
	Agent  Action = "agent"  // the run of a sub-agent, in a session of its own
)

// step is what a call does to one file, by its arguments.
type step struct {
	does  Action
	path  string
	to    string        // of a move
	text  *string       // the whole new content
	adds  *string       // a text at the end
	edits []replacement // of the content, in turn
	patch []chunk
	// line is the number of the line after which insert is added; if end is not 0, insert
	// replaces the lines from line+1 to end.
	line, end int
	insert    *string
	// unplaced says that the edits are texts without a place.
	unplaced bool
	prints   printed // the lines of the file that a shell command prints
	command  string  // the shell command
}

// locate gives a step without a path the path of the file that the call worked on. If it is
// unknown, a read tells nothing, and a change may be of any file.
func (s *step) locate(path string) (ok bool) {
	if s.path != "" || s.does == Run {
		return true
	}
	s.path = path
	if path == "" && s.does == Read {
		return false
	}
	if path == "" {
		s.does = Run
	}
	return true
}

// changes reports whether the step changes its file.
func (s *step) changes() bool { return s.does != Read && s.does != Run }

// replacement replaces a text by another one, at its first place or at all.
type replacement struct {
	old, new string
	all      bool
}

// apply replaces the text; ok is false if it is missing.
func (r *replacement) apply(text string) (string, bool) {
	if r.old == "" {
		return r.new, text == ""
	}
	if !strings.Contains(text, r.old) {
		return text, false
	}
	if r.all {
		return strings.ReplaceAll(text, r.old, r.new), true
	}
	return strings.Replace(text, r.old, r.new, 1), true
}

func (r *replacement) hunks() []linediff.Hunk {
	all := linediff.Hunks(r.old, r.new)
	for i := range all {
		all[i].Old, all[i].New = 0, 0
		all[i].Lines = withoutNoEnd(all[i].Lines) // a text in the middle of a file
	}
	return all
}

// place gives hunks the places of their first changed lines, if there are as many.
func place(all []linediff.Hunk, places []int) {
	if len(all) != len(places) {
		return
	}
	shift := 0
	for i := range all {
		h := &all[i]
		h.Old = places[i] - slices.IndexFunc(h.Lines, func(line string) bool { return line[0] != ' ' })
		h.New = h.Old + shift
		added, removed, _ := h.Count()
		shift += added - removed
	}
}

func withoutNoEnd(lines []string) (kept []string) {
	for _, line := range lines {
		if line != linediff.NoEnd {
			kept = append(kept, line)
		}
	}
	return kept
}

// after returns the content after the step; known is false if the arguments do not tell it.
func (s *step) after(before State) (text string, known bool) {
	switch {
	case s.text != nil:
		return *s.text, true
	case s.insert != nil:
		return s.inserted(before.Text), before.Known
	case s.adds != nil:
		return before.Text + *s.adds, before.Known
	case s.unplaced, len(s.edits) == 0 && len(s.patch) == 0:
		return before.Text, before.Known && s.does == Move
	case !before.Known:
		return "", false
	}
	text = before.Text
	for i := range s.edits {
		if text, known = s.edits[i].apply(text); !known {
			return "", false
		}
	}
	if len(s.patch) > 0 {
		return applyPatch(text, s.patch)
	}
	return text, true
}

// inserted returns the text with the lines of insert.
func (s *step) inserted(text string) string {
	before, rest, ok := cutLines(text, s.line)
	if !ok {
		return text + "\n" + *s.insert
	}
	if s.end > s.line {
		if _, after, ok := cutLines(rest, s.end-s.line); ok {
			rest = after
		} else {
			rest = ""
		}
	}
	return before + strings.TrimSuffix(*s.insert, "\n") + "\n" + rest
}

// cutLines cuts a text after the first n lines; ok is false if it has fewer.
func cutLines(text string, n int) (before, after string, ok bool) {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text, "", false
		}
		at += i + 1
	}
	return text[:at], text[at:], true
}

// hunks are the changes that the arguments list, at unknown places.
func (s *step) hunks() (all []linediff.Hunk) {
	for i := range s.edits {
		all = append(all, s.edits[i].hunks()...)
	}
	for i := range s.patch {
		if lines := s.patch[i].lines; len(lines) > 0 {
			all = append(all, linediff.Hunk{Lines: lines})
		}
	}
	for _, text := range []*string{s.text, s.adds, s.insert} {
		if text != nil {
			all = (&replacement{new: *text}).hunks()
		}
	}
	return all
}

// steps returns what a call does, by its arguments. folder is the working folder.
func (t *Tool) steps(args *Arguments, folder string) (all []step) {
	if own, ok := args.Text(t.Folder); ok && own != "" {
		folder = resolve(folder, own)
	}
	switch t.Does {
	case Runs:
		return shellSteps(t.command(args), folder)
	case Acts:
		return []step{{does: Run, command: t.wholeText(args)}}
	case Patches:
		return patchSteps(t.wholeText(args), folder)
	}
	if t.Path == "" {
		if s, ok := t.step(args); ok {
			all = append(all, s)
		}
		return all
	}
	for _, name := range args.Texts(t.Path) {
		if name == "" {
			continue
		}
		if s, ok := t.step(args); ok {
			s.path = resolve(folder, name)
			all = append(all, s)
		}
	}
	return all
}

// step returns what the tool does to its file.
func (t *Tool) step(args *Arguments) (s step, ok bool) {
	text, hasText := args.Text(t.Text)
	switch t.Does {
	case Reads:
		return step{does: Read}, true
	case Writes:
		return step{does: Write, text: &text}, hasText
	case Edits:
		return step{does: Edit, edits: t.replacements(args)}, true
	case Blocks:
		return step{does: Edit, edits: blocksOf(text)}, true
	case Inserts:
		return step{does: Edit, insert: &text, line: args.Number(t.Line)}, hasText
	case Replaces:
		return step{does: Edit, insert: &text, line: max(0, args.Number(t.Line)-1), end: args.Number(t.End)}, hasText
	case Changes:
		if hasText {
			return step{does: Edit, edits: []replacement{{new: text}}, unplaced: true}, true
		}
		return step{does: Edit}, true
	case Deletes:
		return step{does: Delete}, true
	}
	return s, false
}

// replacements are the edits in the arguments.
func (t *Tool) replacements(args *Arguments) (all []replacement) {
	if t.Edits != "" {
		for _, e := range args.Objects(t.Edits) {
			all = append(all, t.replacement(&e)...)
		}
	}
	if len(all) == 0 {
		all = t.replacement(args)
	}
	return all
}

func (t *Tool) replacement(args *Arguments) []replacement {
	text, ok := args.Text(t.Text)
	old, hasOld := args.Text(t.Old)
	if !ok && !hasOld {
		return nil
	}
	return []replacement{{old: old, new: text, all: args.flag(t.All)}}
}

// wholeText is the argument Text, or arguments that are a text.
func (t *Tool) wholeText(args *Arguments) string {
	if text, ok := args.Text(t.Text); ok {
		return text
	}
	return args.text
}

// command is the argument Text as a shell command. Programs also write a list of words.
func (t *Tool) command(args *Arguments) string {
	words := args.Texts(t.Text)
	if len(words) == 0 {
		return args.text
	}
	if len(words) == 1 {
		return words[0]
	}
	if script, ok := scriptOf(words); ok {
		return script
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}
