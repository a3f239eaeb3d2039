package files

import (
	"strings"
)

// chunk is a change of lines in a patch of the form of apply_patch.
type chunk struct {
	after    string   // a line before the change: the text after @@
	old, new []string // the lines before and after, with the lines around
	lines    []string // as in the patch
	atEnd    bool     // the old lines are the last ones
}

// patchSteps returns what a patch of the form of apply_patch does:
//
//	*** Begin Patch
//	*** Add File: PATH          lines with a plus
//	*** Delete File: PATH
//	*** Update File: PATH       perhaps *** Move to: PATH; then chunks after @@ lines
//	*** End Patch
func patchSteps(text, folder string) (all []step) {
	_, text, found := strings.Cut(text, "*** Begin Patch")
	if !found {
		return nil
	}
	var at *step
	var added []string
	done := func() {
		if at != nil && at.does == Write {
			text := strings.Join(added, "")
			at.text = &text
		}
		if at != nil {
			all = append(all, *at)
		}
		at, added = nil, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		heading := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(heading, "*** Add File: "); ok {
			done()
			at = &step{does: Write, path: resolve(folder, name)}
		} else if name, ok := strings.CutPrefix(heading, "*** Delete File: "); ok {
			done()
			at = &step{does: Delete, path: resolve(folder, name)}
		} else if name, ok := strings.CutPrefix(heading, "*** Update File: "); ok {
			done()
			at = &step{does: Edit, path: resolve(folder, name)}
		} else if name, ok := strings.CutPrefix(heading, "*** Move to: "); ok && at != nil {
			at.does, at.to = Move, resolve(folder, name)
		} else if heading == "*** End Patch" {
			break
		} else if at != nil && at.does == Write {
			added = append(added, strings.TrimPrefix(line, "+")+"\n")
		} else if at != nil {
			at.patch = addLine(at.patch, line)
		}
	}
	done()
	return all
}

// addLine adds a line of a patch to its chunks.
func addLine(all []chunk, line string) []chunk {
	if after, ok := strings.CutPrefix(line, "@@"); ok {
		return append(all, chunk{after: strings.TrimSpace(after)})
	}
	if strings.TrimSpace(line) == "*** End of File" {
		if n := len(all); n > 0 {
			all[n-1].atEnd = true
		}
		return all
	}
	if len(all) == 0 {
		all = append(all, chunk{})
	}
	c := &all[len(all)-1]
	if line == "" {
		line = " " // editors drop the space of an empty line
	}
	switch line[0] {
	case '+':
		c.new = append(c.new, line[1:])
	case '-':
		c.old = append(c.old, line[1:])
	case ' ':
		c.old, c.new = append(c.old, line[1:]), append(c.new, line[1:])
	default:
		return all
	}
	c.lines = append(c.lines, line)
	return all
}

// applyPatch applies chunks to a text; ok is false if a chunk fits nowhere.
func applyPatch(text string, chunks []chunk) (result string, ok bool) {
	lines := strings.Split(text, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n]
	}
	var out []string
	at := 0
	for _, c := range chunks {
		from := at
		if c.after != "" {
			i := find(lines, []string{c.after}, at, false)
			if i < 0 {
				return "", false
			}
			from = i + 1
		}
		if len(c.old) == 0 { // lines to add at the end, or after the heading
			if c.after == "" {
				from = len(lines)
			}
			out = append(append(out, lines[at:from]...), c.new...)
			at = from
			continue
		}
		old, new := c.old, c.new
		i := find(lines, old, from, c.atEnd)
		if i < 0 && old[len(old)-1] == "" { // an empty line for the end of the file
			old = old[:len(old)-1]
			if n := len(new); n > 0 && new[n-1] == "" {
				new = new[:n-1]
			}
			i = find(lines, old, from, c.atEnd)
		}
		if i < 0 {
			return "", false
		}
		out = append(append(out, lines[at:i]...), new...)
		at = i + len(old)
	}
	return strings.Join(append(out, lines[at:]...), "\n") + "\n", true
}

// find finds lines from a place on, or at the end: as they are, then without the spaces at
// their ends, then without the spaces at both sides. It returns -1 if they are nowhere.
func find(lines, part []string, from int, atEnd bool) int {
	as := []func(string) string{
		func(line string) string { return line },
		func(line string) string { return strings.TrimRight(line, " \t\r") },
		strings.TrimSpace,
	}
	for _, clean := range as {
		if atEnd && len(lines)-len(part) >= from && hasLines(lines[len(lines)-len(part):], part, clean) {
			return len(lines) - len(part)
		}
		for i := from; i+len(part) <= len(lines); i++ {
			if hasLines(lines[i:], part, clean) {
				return i
			}
		}
	}
	return -1
}

// hasLines reports whether lines begin with a part.
func hasLines(lines, part []string, clean func(string) string) bool {
	for i, line := range part {
		if clean(lines[i]) != clean(line) {
			return false
		}
	}
	return true
}

// blocksOf returns the blocks of a text of the form
//
//	<<<<<<< SEARCH
//	old lines
//	=======
//	new lines
//	>>>>>>> REPLACE
//
// The marks are lines of at least three of the characters. Roo Code writes the number of a
// line and a rule before the old lines.
func blocksOf(text string) (all []replacement) {
	const outside, inOld, inNew = 0, 1, 2
	state := outside
	var old, new strings.Builder
	for line := range strings.Lines(text) {
		switch bare := strings.TrimRight(line, " \r\n"); {
		case state == outside && isMark(bare, "<-", " SEARCH"):
			state = inOld
			old.Reset()
			new.Reset()
		case state == inOld && isMark(bare, "=", ""):
			state = inNew
		case state == inNew && isMark(bare, ">+", " REPLACE"):
			state = outside
			all = append(all, replacement{old: old.String(), new: new.String()})
		case state == inOld && old.Len() == 0 && (strings.HasPrefix(bare, ":start_line:") || strings.HasPrefix(bare, ":end_line:") || isMark(bare, "-", "")):
		case state == inOld:
			old.WriteString(line)
		case state == inNew:
			new.WriteString(line)
		}
	}
	return all
}

// isMark reports whether a line is three or more of one of the characters, and an end.
func isMark(line, characters, end string) bool {
	rule, ok := strings.CutSuffix(strings.TrimSuffix(line, ">"), end)
	if !ok || len(rule) < 3 {
		return false
	}
	return strings.IndexByte(characters, rule[0]) >= 0 && strings.Trim(rule, rule[:1]) == ""
}
