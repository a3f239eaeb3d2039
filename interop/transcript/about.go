package transcript

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
)

// About is what stands above a transcript.
type About struct {
	Session string
	Title   string
	Head    event.Head
	Info    projection.SessionInfo
	Cost    runlog.CostReport
}

// Load reads what stands above the transcript of a session.
func Load(ctx context.Context, log *eventlog.Log, session string) (a About, err error) {
	if log == nil {
		return a, fmt.Errorf("read session %q: %w", session, errNilLog)
	}
	info, err := projection.Load(ctx, log, session, projection.Info())
	if err != nil {
		return a, err
	}
	cost, err := runlog.LoadCost(ctx, log, session)
	if err != nil {
		return a, err
	}
	a = About{Session: session, Title: info.State.Title, Head: info.Head, Info: info.State, Cost: cost}
	if a.Title == "" {
		a.Title, err = opening(ctx, log, session)
	}
	return a, err
}

// opening is what a session without a title is called: what its user said first,
// if that is near its beginning.
func opening(ctx context.Context, log *eventlog.Log, session string) (string, error) {
	const near = 64
	for e, err := range log.Read(ctx, session, eventlog.Between(1, near)) {
		if err != nil {
			return "", err
		}
		m, ok, err := event.Decode[event.Message](&e)
		if !ok || err != nil || m.Role != event.User || e.IsContext() {
			continue
		}
		if title := interop.Title(m.Text()); title != "" {
			return title, nil
		}
	}
	return "Session " + session, nil
}

// Fact is a line about a session.
type Fact struct{ Name, Text string }

// Facts are the lines about the session, those that are known.
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
		add("Fork of", words(fmt.Sprintf("%s at #%d", i.Fork.Parent, i.Fork.Seq), i.Fork.Label, i.Fork.Reason))
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
	add("Inherited", words(Tokens(a.Cost.Inherited.Usage), cost(a.Cost.Inherited)))
	return facts
}

// cost is what is known of a cost; empty if nothing was spent.
func cost(s projection.Spend) string {
	if s.Unpriced == 0 {
		return dollars(s.Cost)
	}
	return words(dollars(s.Cost), interop.Count(int64(s.Unpriced), "answer")+" unpriced")
}

// dollars is an amount; empty if it is nothing.
func dollars(c event.Cost) string {
	if c == 0 {
		return ""
	}
	return "$" + c.String()
}

func source(s event.SessionSource) string {
	return words(strings.TrimSpace(s.Format+" "+s.Version), s.Path)
}

func models(by map[string]projection.Spend) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Tokens says what was used; empty if nothing was.
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
			all = append(all, interop.Thousands(n.count)+" "+n.noun)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ")
}

// Clock is a time as people read it, in UTC; empty if it is not known.
func Clock(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// words joins what there is with a dot between.
func words(all ...string) string {
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return strings.Join(all, " · ")
}

// Hidden says which events were not shown, given how many of each type.
func Hidden(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %s", interop.Thousands(int64(counts[name])), name))
	}
	return strings.Join(all, ", ")
}
