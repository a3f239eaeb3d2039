package main

import (
	"iter"
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/terminal"
)

// table is rows under a heading. Columns are as wide as their cells. A cell of more than
// 80 columns widens only its own row.
type table struct {
	heading []string
	rows    [][]string
	many    packedRows // after rows: the rows that add added
	right   []int      // the columns that align right
	drop    []string   // headings of columns that a narrow terminal does not get, the first one first
	keep    string     // heading of the column that gets most of the width; may be empty
}

// The widths of columns.
const (
	mostColumn  = 80 // a wider cell widens only its own row
	leastColumn = 12 // on a narrow terminal, a wider column is cut to no less
	leastKept   = 20 // the same for the kept column
)

const folderHeading = "FOLDER"

// table prints rows under a heading. The columns in right align right; the last column
// is not padded.
func (p *printer) table(heading []string, rows [][]string, right ...int) {
	p.print(table{heading: heading, rows: rows, right: right})
}

// print prints a table. On a terminal, its lines fit: columns are left out and cut.
func (p *printer) print(t table) {
	width := t.widths(func(int) int { return 0 })
	if p.width > 0 {
		width = t.fit(p.width)
	}
	p.printf("%s\n", p.paint(dim, t.line(t.heading, width)))
	for row := range t.all() {
		if p.width > 0 {
			row = t.cut(row, width)
		}
		p.printf("%s\n", t.line(row, width))
	}
}

// add adds a row. A table of many rows needs less memory with add than with rows.
func (t *table) add(row []string) { t.many.add(row) }

// all yields every row. A row is valid until the next one.
func (t *table) all() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, row := range t.rows {
			if !yield(row) {
				return
			}
		}
		t.many.all(yield)
	}
}

// remove leaves out a column.
func (t *table) remove(heading string) {
	i := slices.Index(t.heading, heading)
	if i < 0 {
		return
	}
	t.heading = slices.Delete(slices.Clone(t.heading), i, i+1)
	rows := make([][]string, len(t.rows))
	for n, row := range t.rows {
		rows[n] = slices.Delete(slices.Clone(row), i, i+1)
	}
	t.rows = rows
	t.many.remove(i)
	var right []int
	for _, n := range t.right {
		switch {
		case n < i:
			right = append(right, n)
		case n > i:
			right = append(right, n-1)
		}
	}
	t.right = right
}

// widths are the widths of the columns. wide gives the width that a cell of more than
// mostColumn asks for.
func (t *table) widths(wide func(n int) int) []int {
	width := make([]int, len(t.heading))
	widen := func(row []string) {
		for i, cell := range row {
			n := columns(cell)
			if n > mostColumn {
				n = wide(n)
			}
			width[i] = max(width[i], n)
		}
	}
	widen(t.heading)
	for row := range t.all() {
		widen(row)
	}
	return width
}

// fit makes the lines at most so wide: it cuts names, and leaves columns out while names
// would have less than leastColumn. It returns the widths.
func (t *table) fit(most int) []int {
	drop := t.drop
	for {
		width := t.widths(func(n int) int { return min(n, most) })
		over := t.total(width) - most
		for over > 0 {
			widest := t.widestName(width)
			if widest < 0 {
				break
			}
			cut := min(over, max(1, width[widest]-t.least(widest)))
			width[widest] -= cut
			over -= cut
		}
		if over <= 0 || len(drop) == 0 {
			if over > 0 { // cut even an id
				width[0] = max(min(width[0], leastColumn), width[0]-over)
			}
			return width
		}
		t.remove(drop[0])
		drop = drop[1:]
	}
}

func (t *table) total(width []int) int {
	sum := 2 * (len(width) - 1)
	for _, n := range width {
		sum += n
	}
	return sum
}

// widestName is the widest column of names that can be cut; -1 if there is none.
func (t *table) widestName(width []int) int {
	widest := -1
	for i, n := range width {
		if t.isName(i) && n > t.least(i) && (widest < 0 || n > width[widest]) {
			widest = i
		}
	}
	return widest
}

// least is the least width of a column that is cut.
func (t *table) least(column int) int {
	if t.heading[column] == t.keep && t.keep != "" {
		return leastKept
	}
	return leastColumn
}

// isName reports whether a column has names, which can be cut. Numbers align right, and
// bars have no heading. Ids and times are of no use in part.
func (t *table) isName(column int) bool {
	switch t.heading[column] {
	case "ID", "SESSION", "TREE", "LAST ACTIVITY":
		return false
	case "":
		return column == 0
	}
	return !slices.Contains(t.right, column)
}

// cut shortens the cells of a row that are wider than their column.
func (t *table) cut(row []string, width []int) []string {
	row = slices.Clone(row)
	for i, cell := range row {
		if (t.isName(i) || i == 0) && columns(cell) > width[i] {
			row[i] = shorten(t.heading[i], cell, width[i])
		}
	}
	return row
}

// shorten shortens a cell. The end of a folder tells more than its beginning.
func shorten(heading, cell string, n int) string {
	if heading == folderHeading {
		return terminal.End(clean(onOneLine(cell)), n)
	}
	return brief(cell, n)
}

func (t *table) line(row []string, width []int) string {
	var line strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", max(0, width[i]-columns(cell)))
		if slices.Contains(t.right, i) {
			cell = pad + cell
		} else if i < len(row)-1 {
			cell += pad
		}
		if i > 0 {
			line.WriteString("  ")
		}
		line.WriteString(cell)
	}
	return strings.TrimRight(line.String(), " ")
}

// fit shortens a line to the width of the terminal.
func (p *printer) fit(line string) string {
	if p.width == 0 {
		return line
	}
	return brief(line, p.width)
}
