package term

import (
	"iter"
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/terminal"
)

// Table is rows under a heading. Columns are as wide as their cells. A cell of more than
// 80 columns widens only its own row. The lists name columns by their headings.
type Table struct {
	Heading []string
	Rows    [][]string
	Right   []int    // the columns that align right; they have numbers
	Drop    []string // columns that a narrow terminal does not get, the first one first
	Keep    string   // the column that gets most of the width; may be empty
	Whole   []string // columns that are never cut: ids and times are of no use in part
	Ends    []string // columns that keep the ends of their cells: folders

	many packedRows // after Rows: the rows that Add added
}

// The widths of columns.
const (
	mostColumn  = 80 // a wider cell widens only its own row
	LeastColumn = 12 // on a narrow terminal, a wider column is cut to no less
	leastKept   = 20 // the same for the kept column
)

// Table prints rows under a heading. The columns in right align right; the last column
// is not padded.
func (p *Printer) Table(heading []string, rows [][]string, right ...int) {
	p.Print(Table{Heading: heading, Rows: rows, Right: right})
}

// Print prints a table. On a terminal, its lines fit: columns are left out and cut.
func (p *Printer) Print(t Table) {
	width := t.widths(func(int) int { return 0 })
	if p.Width > 0 {
		width = t.fit(p.Width)
	}
	p.Printf("%s\n", p.Paint(Dim, t.line(t.Heading, width)))
	for row := range t.all() {
		if p.Width > 0 {
			row = t.cut(row, width)
		}
		p.Printf("%s\n", t.line(row, width))
	}
}

// Add adds a row. A table of many rows needs less memory with Add than with Rows.
func (t *Table) Add(row []string) { t.many.add(row) }

// all yields every row. A row is valid until the next one.
func (t *Table) all() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, row := range t.Rows {
			if !yield(row) {
				return
			}
		}
		t.many.all(yield)
	}
}

// Remove leaves out a column.
func (t *Table) Remove(heading string) {
	i := slices.Index(t.Heading, heading)
	if i < 0 {
		return
	}
	t.Heading = slices.Delete(slices.Clone(t.Heading), i, i+1)
	rows := make([][]string, len(t.Rows))
	for n, row := range t.Rows {
		rows[n] = slices.Delete(slices.Clone(row), i, i+1)
	}
	t.Rows = rows
	t.many.remove(i)
	var right []int
	for _, n := range t.Right {
		switch {
		case n < i:
			right = append(right, n)
		case n > i:
			right = append(right, n-1)
		}
	}
	t.Right = right
}

// widths are the widths of the columns. wide gives the width that a cell of more than
// mostColumn asks for.
func (t *Table) widths(wide func(n int) int) []int {
	width := make([]int, len(t.Heading))
	widen := func(row []string) {
		for i, cell := range row {
			n := terminal.Columns(cell)
			if n > mostColumn {
				n = wide(n)
			}
			width[i] = max(width[i], n)
		}
	}
	widen(t.Heading)
	for row := range t.all() {
		widen(row)
	}
	return width
}

// fit makes the lines at most so wide: it cuts names, and leaves columns out while names
// would have less than LeastColumn. It returns the widths.
func (t *Table) fit(most int) []int {
	drop := t.Drop
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
				width[0] = max(min(width[0], LeastColumn), width[0]-over)
			}
			return width
		}
		t.Remove(drop[0])
		drop = drop[1:]
	}
}

func (t *Table) total(width []int) int {
	sum := 2 * (len(width) - 1)
	for _, n := range width {
		sum += n
	}
	return sum
}

// widestName is the widest column of names that can be cut; -1 if there is none.
func (t *Table) widestName(width []int) int {
	widest := -1
	for i, n := range width {
		if t.isName(i) && n > t.least(i) && (widest < 0 || n > width[widest]) {
			widest = i
		}
	}
	return widest
}

// least is the least width of a column that is cut.
func (t *Table) least(column int) int {
	if t.Heading[column] == t.Keep && t.Keep != "" {
		return leastKept
	}
	return LeastColumn
}

// isName reports whether a column has names, which can be cut. Numbers align right, and
// bars have no heading.
func (t *Table) isName(column int) bool {
	heading := t.Heading[column]
	if heading == "" {
		return column == 0
	}
	return !slices.Contains(t.Whole, heading) && !slices.Contains(t.Right, column)
}

// cut shortens the cells of a row that are wider than their column.
func (t *Table) cut(row []string, width []int) []string {
	row = slices.Clone(row)
	for i, cell := range row {
		if (t.isName(i) || i == 0) && terminal.Columns(cell) > width[i] {
			row[i] = t.shorten(i, cell, width[i])
		}
	}
	return row
}

// shorten shortens a cell.
func (t *Table) shorten(column int, cell string, n int) string {
	if slices.Contains(t.Ends, t.Heading[column]) {
		return terminal.End(terminal.Clean(OneLine(cell)), n)
	}
	return Brief(cell, n)
}

func (t *Table) line(row []string, width []int) string {
	var line strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", max(0, width[i]-terminal.Columns(cell)))
		if slices.Contains(t.Right, i) {
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

// Fit shortens a line to the width of the terminal.
func (p *Printer) Fit(line string) string {
	if p.Width == 0 {
		return line
	}
	return Brief(line, p.Width)
}
