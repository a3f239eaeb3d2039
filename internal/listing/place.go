package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
)

// Place is the place of a row in every order, as text. A list continues there, also if the row has
// changed or is removed.
func Place(row *Row) string {
	s := row.Spend()
	return fmt.Sprintf("%d %d %d %d %d %d %s", row.last.seconds, row.last.nanoseconds, row.Events, int64(s.Cost), int64(s.Estimate), s.Usage.OutputTokens, row.ID)
}

// After are the rows after a place in an order. ok is false if the text is no place.
func After(rows []*Row, order, place string) (after []*Row, ok bool) {
	parts := strings.SplitN(place, " ", 7)
	if len(parts) < 7 {
		return nil, false
	}
	var n [6]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return nil, false
		}
	}
	x := &Row{ID: parts[6], last: moment{n[0], int32(n[1])}, Events: n[2], spent: spendKey{event.Cost(n[3]).Add(event.Cost(n[4])), n[5]}}
	i := slices.IndexFunc(rows, func(row *Row) bool { return Compare(row, x, order) > 0 })
	if i < 0 {
		return nil, true
	}
	return rows[i:], true
}
