package listing

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/projection"
)

// Filter selects sessions and times. Its zero value selects all.
type Filter struct {
	// Since is the first time that counts, Until the first one that does not. Zero is no bound.
	Since, Until time.Time
	// Source is the program that a session was imported from; NoSource selects the others.
	Source string
	// CWD is a folder: sessions ran in it, or below it.
	CWD string
	// Model is a part of the name of a model, in any case.
	Model string
}

// NoSource is the Source of sessions that were not imported.
const NoSource = "none"

// Has reports whether a time is between Since and Until. The zero time is no date: it
// is between none.
func (f *Filter) Has(t time.Time) bool {
	if t.IsZero() {
		return f.Since.IsZero() && f.Until.IsZero()
	}
	return !t.Before(f.Since) && (f.Until.IsZero() || t.Before(f.Until))
}

// Overlaps reports whether a session may have events between Since and Until.
func (f *Filter) Overlaps(row *Row) bool {
	if row.Last().IsZero() {
		return f.Has(row.Last())
	}
	return !row.Last().Before(f.Since) && (f.Until.IsZero() || row.First().Before(f.Until))
}

// HasOrigin reports whether a session has the source and the folder.
func (f *Filter) HasOrigin(row *Row) bool {
	return (f.Source == "" || cmp.Or(row.Source, NoSource) == f.Source) && (f.CWD == "" || row.CWD != "" && IsBelow(row.CWD, f.CWD))
}

// HasModel reports whether Model selects a model.
func (f *Filter) HasModel(name string) bool { return ContainsFold(name, f.Model) }

// ContainsFold reports whether text contains a part, in any case.
func ContainsFold(text, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// IsBelow reports whether a path is folder, or below it.
func IsBelow(path, folder string) bool {
	below, err := filepath.Rel(folder, filepath.Clean(path))
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// The orders of a listing.
const (
	ByActivity = "activity"
	ByID       = "id"
	ByEvents   = "events"
	ByCost     = "cost"
)

// Orders are the orders of a listing.
var Orders = []string{ByActivity, ByID, ByEvents, ByCost}

// Sort orders rows, the newest or the largest first, equal rows by id.
func Sort(rows []*Row, order string) {
	slices.SortFunc(rows, func(x, y *Row) int { return Compare(x, y, order) })
}

// Compare compares rows in an order.
func Compare(x, y *Row, order string) int {
	most := 0
	switch order {
	case ByActivity:
		most = y.last.compare(x.last)
	case ByEvents:
		most = cmp.Compare(y.Events, x.Events)
	case ByCost:
		most = cmp.Or(cmp.Compare(y.spent.cost, x.spent.cost), cmp.Compare(y.spent.output, x.spent.output))
	}
	return cmp.Or(most, cmp.Compare(x.ID, y.ID))
}

// CompareCosts compares spends, the most expensive first. Estimates count.
func CompareCosts(x, y projection.Spend) int {
	return cmp.Or(cmp.Compare(y.Cost.Add(y.Estimate), x.Cost.Add(x.Estimate)), cmp.Compare(y.Usage.OutputTokens, x.Usage.OutputTokens))
}
