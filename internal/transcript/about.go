package transcript

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// About is the heading of a transcript: title, facts and costs of a session.
type About struct {
	Session string
	Title   string
	Head    event.Head
	Info    projection.SessionInfo
	Cost    stats.CostReport
}

// Load reads the heading of a session's transcript. The table estimates costs; nil
// estimates nothing. A missing session is eventlog.ErrNotFound.
func Load(ctx context.Context, log *eventlog.Log, session string, table *prices.Table) (a About, err error) {
	if log == nil {
		return a, fmt.Errorf("read session %q: %w", session, errNilLog)
	}
	info, err := projection.Load(ctx, log, session, projection.Info())
	if err != nil {
		return a, err
	}
	cost, err := stats.LoadCost(ctx, log, session, stats.CostOptions{Prices: table, NoTurns: true})
	if err != nil {
		return a, err
	}
	a = About{Session: session, Title: info.State.Title, Head: info.Head, Info: info.State, Cost: cost}
	if a.Title == "" {
		a.Title, err = firstWords(ctx, log, session)
	}
	return a, err
}

// firstWords returns the title of a session without one: the beginning of the first
// user message, or the session id if no user message is near the start.
func firstWords(ctx context.Context, log *eventlog.Log, session string) (string, error) {
	const near = 64
	for e, err := range log.Read(ctx, session, eventlog.Between(1, near)) {
		if err != nil {
			return "", err
		}
		m, ok, err := event.Decode[event.Message](&e)
		if !ok || err != nil || m.Role != event.User || e.IsContext() {
			continue
		}
		if title := titles.Of(m.Text()); title != "" {
			return title, nil
		}
	}
	return "Session " + session, nil
}

// Fact is a name and a text about a session.
type Fact struct{ Name, Text string }

// Facts returns the known facts about the session, in display order.
func (a *About) Facts() (facts []Fact) {
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, Fact{name, text})
		}
	}
	i := &a.Info
	add("Session", a.Session)
	add("Agent", i.Agent)
	add("Folder", i.CWD)
	add("Source", source(i.Source))
	add("Started", Clock(i.Started))
	add("Last event", Clock(i.Updated))
	if i.Fork.Parent != "" {
		add("Fork of", Join(fmt.Sprintf("%s at #%d", i.Fork.Parent, i.Fork.Seq), i.Fork.Label, i.Fork.Reason))
	}
	if i.Parent.SessionID != "" {
		add("Started by", i.Parent.SessionID)
	}
	for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
		add(name, i.Labels[name])
	}
	add("Models", strings.Join(models(a.Cost.ByModel), ", "))
	add("Tokens", Tokens(a.Cost.Own.Usage))
	add("Cost", cost(a.Cost.Own))
	add("Inherited", Join(Tokens(a.Cost.Inherited.Usage), cost(a.Cost.Inherited)))
	return facts
}

// cost formats a cost, its estimate, and the number of answers without both; empty if
// nothing was spent.
func cost(s projection.Spend) string {
	rest := ""
	if n := s.Unpriced - s.Estimated; n > 0 {
		rest = Count(int64(n), "answer") + " unpriced"
	}
	return Join(dollars(s.Cost), Estimate(s), rest)
}

// Estimate formats an estimate, rounded to cents or to two digits; empty if there is none.
func Estimate(s projection.Spend) string {
	if s.Estimate == 0 {
		return ""
	}
	return "~" + Rounded(s.Estimate)
}

// Rounded formats an amount, rounded to cents or to two digits.
func Rounded(c event.Cost) string {
	if usd := c.USD(); usd < 0.1 {
		return "$" + strconv.FormatFloat(usd, 'g', 2, 64)
	}
	return "$" + strconv.FormatFloat(c.USD(), 'f', 2, 64)
}

// dollars formats an amount; empty if it is zero.
func dollars(c event.Cost) string {
	if c == 0 {
		return ""
	}
	return "$" + c.String()
}

func source(s event.SessionSource) string {
	return Join(strings.TrimSpace(s.Format+" "+s.Version), s.Path)
}

func models(by map[string]projection.Spend) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Tokens formats token counts; empty if all are zero.
func Tokens(u event.Usage) string {
	var all []string
	for _, n := range []struct {
		count int64
		noun  string
	}{
		{u.InputTokens, "in"}, {u.CacheReadTokens, "from cache"}, {u.CacheWriteTokens, "to cache"},
		{u.OutputTokens, "out"}, {u.ReasoningTokens, "of them reasoning"},
	} {
		if n.count > 0 {
			all = append(all, Thousands(n.count)+" "+n.noun)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ")
}

// Clock formats a time in UTC; empty if the time is unknown.
func Clock(t time.Time) string {
	if event.Dated(t).IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// Join joins the non-empty texts with a dot in between.
func Join(all ...string) string {
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return strings.Join(all, " · ")
}

// TypeCounts formats the number of events per type, sorted by type.
func TypeCounts(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %s", Thousands(int64(counts[name])), name))
	}
	return strings.Join(all, ", ")
}
