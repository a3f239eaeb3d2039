// Package linediff compares texts line by line.
package linediff

import (
	"fmt"
	"strings"
)

// Hunk is a run of changed lines with the lines around them.
type Hunk struct {
	// Old and New are the numbers of the first line in each text, from 1; 0 if the place is
	// unknown.
	Old, New int
	// Lines begin with a space, a minus or a plus: a line of both texts, of the old text or of
	// the new text. They have no line ends. The line NoEnd follows a line that has no line end
	// in its text.
	Lines []string
}

// NoEnd says that the line before it is the last one, and has no line end.
const NoEnd = `\ No newline at end of file`

// around is the number of equal lines before and after a change.
const around = 3

// Hunks returns the changes from one text to another; nil if the texts are equal.
func Hunks(old, new string) []Hunk {
	a, b := split(old), split(new)
	d := differ{a: a, b: b}
	d.compare(0, len(a), 0, len(b))
	return d.hunks()
}

// split splits a text into lines. The last line has no line end if the text has none.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n]
	}
	return lines
}

// edit says that the lines a[From:To] become b[NewFrom:NewTo].
type edit struct{ From, To, NewFrom, NewTo int }

// differ collects the edits between two lists of lines, in order.
type differ struct {
	a, b  []string
	edits []edit
}

// compare compares a[from:to] with b[newFrom:newTo].
func (d *differ) compare(from, to, newFrom, newTo int) {
	for from < to && newFrom < newTo && d.a[from] == d.b[newFrom] {
		from, newFrom = from+1, newFrom+1
	}
	for from < to && newFrom < newTo && d.a[to-1] == d.b[newTo-1] {
		to, newTo = to-1, newTo-1
	}
	if from == to || newFrom == newTo {
		d.add(edit{from, to, newFrom, newTo})
		return
	}
	pairs := d.unique(from, to, newFrom, newTo)
	if len(pairs) == 0 {
		pairs = d.common(from, to, newFrom, newTo)
		for _, p := range pairs {
			d.add(edit{from, p[0], newFrom, p[1]})
			from, newFrom = p[0]+1, p[1]+1
		}
		d.add(edit{from, to, newFrom, newTo})
		return
	}
	for _, p := range pairs {
		d.compare(from, p[0], newFrom, p[1])
		from, newFrom = p[0]+1, p[1]+1
	}
	d.compare(from, to, newFrom, newTo)
}

func (d *differ) add(e edit) {
	if e.From == e.To && e.NewFrom == e.NewTo {
		return
	}
	if n := len(d.edits) - 1; n >= 0 && d.edits[n].To == e.From && d.edits[n].NewTo == e.NewFrom {
		d.edits[n].To, d.edits[n].NewTo = e.To, e.NewTo
		return
	}
	d.edits = append(d.edits, e)
}

// unique pairs the lines that both sides have once, in an order that both have.
func (d *differ) unique(from, to, newFrom, newTo int) [][2]int {
	type places struct{ a, b, inA, inB int }
	seen := make(map[string]*places, to-from)
	at := func(line string) *places {
		if seen[line] == nil {
			seen[line] = &places{}
		}
		return seen[line]
	}
	for i := from; i < to; i++ {
		p := at(d.a[i])
		p.a, p.inA = i, p.inA+1
	}
	for i := newFrom; i < newTo; i++ {
		p := at(d.b[i])
		p.b, p.inB = i, p.inB+1
	}
	var pairs [][2]int
	for i := from; i < to; i++ {
		if p := seen[d.a[i]]; p.inA == 1 && p.inB == 1 {
			pairs = append(pairs, [2]int{p.a, p.b})
		}
	}
	return rising(pairs)
}

// rising returns the longest part of pairs whose second numbers rise (patience sorting).
func rising(pairs [][2]int) [][2]int {
	var ends []int // of the best part of each length: its last pair
	before := make([]int, len(pairs))
	for i, p := range pairs {
		low, high := 0, len(ends)
		for low < high {
			if middle := (low + high) / 2; pairs[ends[middle]][1] < p[1] {
				low = middle + 1
			} else {
				high = middle
			}
		}
		before[i] = -1
		if low > 0 {
			before[i] = ends[low-1]
		}
		if low == len(ends) {
			ends = append(ends, i)
		} else {
			ends[low] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	best := make([][2]int, len(ends))
	i := ends[len(ends)-1]
	for n := len(ends) - 1; n >= 0; n-- {
		best[n] = pairs[i]
		i = before[i]
	}
	return best
}

// mostCells bounds the table of common.
const mostCells = 4 << 20

// common returns a longest common subsequence of lines that are not unique; nil if the
// sides are too long for it: then all lines count as changed.
func (d *differ) common(from, to, newFrom, newTo int) (pairs [][2]int) {
	rows, columns := to-from, newTo-newFrom
	if rows*columns > mostCells {
		return nil
	}
	lengths := make([]int32, (rows+1)*(columns+1))
	at := func(i, j int) *int32 { return &lengths[i*(columns+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			if d.a[from+i] == d.b[newFrom+j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case d.a[from+i] == d.b[newFrom+j]:
			pairs = append(pairs, [2]int{from + i, newFrom + j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return pairs
}

// hunks joins edits that are near each other, with the lines around them.
func (d *differ) hunks() (all []Hunk) {
	for i := 0; i < len(d.edits); {
		last := i
		for last+1 < len(d.edits) && d.edits[last+1].From-d.edits[last].To <= 2*around {
			last++
		}
		all = append(all, d.hunk(d.edits[i:last+1]))
		i = last + 1
	}
	return all
}

func (d *differ) hunk(edits []edit) Hunk {
	first, last := edits[0], edits[len(edits)-1]
	before := min(around, first.From)
	at := first.From - before
	h := Hunk{Old: at + 1, New: first.NewFrom - before + 1}
	for _, e := range edits {
		h.add(' ', d.a[at:e.From])
		h.add('-', d.a[e.From:e.To])
		h.add('+', d.b[e.NewFrom:e.NewTo])
		at = e.To
	}
	h.add(' ', d.a[at:min(last.To+around, len(d.a))])
	return h
}

func (h *Hunk) add(mark byte, lines []string) {
	for _, line := range lines {
		text, ended := strings.CutSuffix(line, "\n")
		if h.Lines = append(h.Lines, string(mark)+text); !ended {
			h.Lines = append(h.Lines, NoEnd)
		}
	}
}

// Count returns the number of lines that the hunk adds, removes and leaves.
func (h *Hunk) Count() (added, removed, left int) {
	for _, line := range h.Lines {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		case ' ':
			left++
		}
	}
	return added, removed, left
}

// Heading is the line before the lines of a hunk: "@@ -3,7 +3,9 @@", or "@@" if the place is
// unknown.
func (h *Hunk) Heading() string {
	if h.Old == 0 && h.New == 0 {
		return "@@"
	}
	added, removed, left := h.Count()
	return fmt.Sprintf("@@ -%s +%s @@", span(h.Old, left+removed), span(h.New, left+added))
}

// span is the place of lines in a text. The place of no lines is the line before them.
func span(first, lines int) string {
	if lines == 0 {
		first--
	}
	if lines == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, lines)
}
