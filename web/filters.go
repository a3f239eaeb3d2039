package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/interop/formats"
)

// filters are the fields of a form that narrows a page, as the flags of the commands do.
type filters struct {
	Text, Source, CWD, Model, Since, Until, Sort string
	All                                          bool
	Sources                                      []string // to choose from
}

// parseFilters reads the filters of a query.
func parseFilters(q url.Values, now time.Time) (query listing.Query, f filters, err error) {
	f = filters{Text: q.Get("q"), Source: q.Get("source"), CWD: q.Get("cwd"), Model: q.Get("model"),
		Since: q.Get("since"), Until: q.Get("until"), Sort: q.Get("sort"), All: q.Get("all") != ""}
	for _, x := range formats.All() {
		f.Sources = append(f.Sources, x.Name())
	}
	f.Sources = append(f.Sources, listing.NoSource)
	query = listing.Query{Text: f.Text, Sort: cmp.Or(f.Sort, listing.ByActivity), Long: true,
		Filter: listing.Filter{Source: f.Source, CWD: f.CWD, Model: f.Model}}
	if !slices.Contains(listing.Orders, query.Sort) {
		return query, f, badRequest{"sort is one of " + strings.Join(listing.Orders, ", "), ""}
	}
	if query.Since, _, err = listing.ParseWhen(f.Since, now); err != nil {
		return query, f, badRequest{"since " + err.Error(), ""}
	}
	if _, query.Until, err = listing.ParseWhen(f.Until, now); err != nil {
		return query, f, badRequest{"until " + err.Error(), ""}
	}
	return query, f, nil
}
