package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
)

// sessionsPage lists the sessions.
var sessionsPage = page{pattern: "/{$}", template: "sessions.html", nav: "Sessions", load: (*Handler).sessions}

// pageRows is the number of rows of a page.
const pageRows = 50

// growing is how long after its newest event a session counts as growing.
const growing = time.Minute

// sessionsView is the list of sessions.
type sessionsView struct {
	Filters filters
	Rows    []htmlpage.Session
	Found   int // sessions that the filters select
	All     int // sessions of the store
	Week    projection.Spend
	// WeekLeft is the number of sessions that Week does not have yet.
	WeekLeft int
	Next     string // address of the next page; empty on the last one
	First    string // address of the first page; empty there
}

func (h *Handler) sessions(r *http.Request) (view, error) {
	ctx, q := r.Context(), r.URL.Query()
	query, f, err := parseFilters(q, time.Now())
	if err != nil {
		return view{}, err
	}
	h.rows.list.Lock()
	defer h.rows.list.Unlock()
	defer flush(ctx, h.rows.catalog)
	reader := h.rows.reader()
	listed, chosen, err := h.rows.choose(ctx, reader, &query, f.All)
	if err != nil {
		return view{}, err
	}
	v := sessionsView{Filters: f, Found: len(chosen), All: len(listed)}
	if v.Week, v.WeekLeft, err = h.rows.week(ctx, listed); err != nil {
		return view{}, err
	}
	begin := 0
	if after := q.Get("after"); after != "" {
		begin = 1 + slices.IndexFunc(chosen, func(row *listing.Row) bool { return row.ID == after })
		v.First = address("/", q, "after", "")
	}
	shown := chosen[begin:min(begin+pageRows, len(chosen))]
	if begin+len(shown) < len(chosen) {
		v.Next = address("/", q, "after", shown[len(shown)-1].ID)
	}
	if err := reader.Summaries(ctx, shown); err != nil {
		return view{}, err
	}
	for _, row := range shown {
		v.Rows = append(v.Rows, h.sessionRow(row))
	}
	return view{title: "Sessions", body: v}, nil
}

func (h *Handler) sessionRow(row *listing.Row) htmlpage.Session {
	x := htmlpage.NewSession(row, sessionPath(row.ID))
	x.Growing = time.Since(row.Last()) < growing
	return x
}

// sessionPath is the address of a session's page, and of pages below it.
func sessionPath(session string, below ...string) string {
	return "/s/" + strings.Join(append([]string{url.PathEscape(session)}, below...), "/")
}

// address is a path with a query in which one value is another; an empty value is left out.
func address(path string, q url.Values, name, value string) string {
	changed := url.Values{}
	for key, values := range q {
		if key != name && len(values) > 0 && values[0] != "" {
			changed.Set(key, values[0])
		}
	}
	if value != "" {
		changed.Set(name, value)
	}
	if len(changed) == 0 {
		return path
	}
	return path + "?" + changed.Encode()
}
