package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// statsPage shows costs and tokens by day, week, model, tool, source and folder.
var statsPage = page{pattern: "/stats", template: "stats.html", nav: "Costs", load: (*Handler).stats}

// statsView is the page of counts.
type statsView struct {
	Filters filters
	Total   stats.Tally
	Tables  []statsTable
	Tools   []toolLine
	Left    int // sessions that cannot be read
}

// statsTable is a split of the total.
type statsTable struct {
	Name string
	// Lines are the first ones; Left counts the others.
	Lines []statsLine
	Left  int
}

type statsLine struct {
	Name string
	stats.Tally
	Share float64 // of the largest cost, else of the largest output, in percent
}

type toolLine struct {
	Name string
	stats.ToolTally
	Share float64
}

// statsLines is the number of lines of a table.
const statsLines = 30

func (h *Handler) stats(r *http.Request) (view, error) {
	ctx := r.Context()
	query, f, err := parseFilters(r.URL.Query(), time.Now())
	if err != nil {
		return view{}, err
	}
	h.rows.list.Lock()
	defer h.rows.list.Unlock()
	all, err := h.rows.read(ctx)
	if err != nil {
		return view{}, err
	}
	sum, folders, left, err := h.count(r, &query, listing.WithoutState(all))
	if err != nil {
		return view{}, err
	}
	v := statsView{Filters: f, Total: sum.Total, Left: left}
	models := map[string]stats.Tally{}
	for name, spend := range sum.ByModel {
		models[cmp.Or(name, "no model named")] = stats.Tally{Spend: spend}
	}
	v.Tables = []statsTable{
		newStatsTable("day", sum.ByDay, newestFirst), newStatsTable("week", weeks(sum.ByDay), newestFirst), newStatsTable("model", models, mostFirst(models)),
		newStatsTable("source", sum.BySource, mostFirst(sum.BySource)), newStatsTable("folder", folders, mostFirst(folders)),
	}
	v.Tools = tools(sum.ByTool)
	return view{title: "Costs", body: v}, nil
}

// count sums the counts of the sessions that a query selects.
func (h *Handler) count(r *http.Request, query *listing.Query, all []*listing.Row) (sum stats.Stats, folders map[string]stats.Tally, left int, err error) {
	opts := stats.Options{Since: query.Since, Until: query.Until}
	if query.Model != "" {
		opts.Model = query.HasModel
	}
	catalog := newCatalog(h.log, h.opts, opts)
	defer flush(r.Context(), catalog)
	rows := slices.DeleteFunc(all, func(row *listing.Row) bool { return row.Err() == nil && !query.Overlaps(row) })
	if query.Source != "" {
		if err := h.rows.reader().Sources(r.Context(), rows); err != nil {
			return sum, nil, 0, err
		}
	}
	rows = slices.DeleteFunc(rows, func(row *listing.Row) bool { return row.Err() == nil && !query.HasOrigin(row) })
	folders = map[string]stats.Tally{}
	err = listing.EachSummary(r.Context(), catalog, rows, func() {}, func(row *listing.Row, s *stats.Summary) {
		if s.Total.Events > 0 {
			sum.Add(s.Stats)
			name := cmp.Or(s.CWD, row.CWD, "no folder named")
			folders[name] = folders[name].Add(s.Total)
		}
	})
	for _, row := range rows {
		if row.Err() != nil {
			left++
		}
	}
	return sum, folders, left, err
}

// weeks are the sums of weeks, each named by its Monday.
func weeks(days map[string]stats.Tally) map[string]stats.Tally {
	sums := map[string]stats.Tally{}
	for name, tally := range days {
		if day, err := time.Parse(time.DateOnly, name); err == nil {
			name = day.AddDate(0, 0, -(int(day.Weekday())+6)%7).Format(time.DateOnly)
		}
		sums[name] = sums[name].Add(tally)
	}
	return sums
}

// newestFirst orders days. The day of events without a time is the last one.
func newestFirst(x, y string) int {
	order := func(day string) string { return strings.TrimPrefix(day, stats.Undated) }
	return cmp.Compare(order(y), order(x))
}

func mostFirst(all map[string]stats.Tally) func(x, y string) int {
	return func(x, y string) int {
		return cmp.Or(listing.CompareCosts(all[x].Spend, all[y].Spend), cmp.Compare(x, y))
	}
}

// weight is what bars compare.
func weight(s projection.Spend) float64 { return float64(s.Cost.Add(s.Estimate)) }

func newStatsTable(name string, all map[string]stats.Tally, order func(x, y string) int) statsTable {
	t := statsTable{Name: name}
	most := 0.0
	for _, tally := range all {
		most = max(most, weight(tally.Spend))
	}
	for _, key := range slices.SortedFunc(maps.Keys(all), order) {
		if len(t.Lines) == statsLines {
			t.Left = len(all) - statsLines
			break
		}
		line := statsLine{Name: transcript.Visible(htmlpage.Brief(cmp.Or(key, "written here"), 80)), Tally: all[key]}
		if most > 0 {
			line.Share = weight(line.Spend) / most * 100
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

func tools(all map[string]stats.ToolTally) (lines []toolLine) {
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Or(cmp.Compare(all[y].Calls, all[x].Calls), cmp.Compare(x, y))
	})
	for _, name := range names[:min(len(names), statsLines)] {
		lines = append(lines, toolLine{transcript.Visible(htmlpage.Brief(cmp.Or(name, "no tool named"), 60)), all[name], float64(all[name].Calls) / float64(all[names[0]].Calls) * 100})
	}
	return lines
}
