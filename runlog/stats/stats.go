package stats

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sealed"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/internal/estimate"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// Stats counts the content of sessions in several splits. Each event counts once, in
// the session that stores it, orphaned events included. The prefix that a fork shares
// and copied events do not count.
type Stats struct {
	Total Tally `json:"total"`
	// BySource splits Total by the format of imported sessions; the name is empty for
	// sessions that were not imported. ByDay splits Total by the day of each event, as
	// 2006-01-02; Undated has what counts and has no time.
	BySource map[string]Tally `json:"by_source,omitzero"`
	ByDay    map[string]Tally `json:"by_day,omitzero"`
	// ByHour splits Total by the hour of each event, in UTC, as 2006-01-02T15:00:00Z, if
	// Options.Hours is set; Undated has all events without a time.
	ByHour map[string]Tally `json:"by_hour,omitzero"`
	// ByModel splits the spend; the empty name is spend without a model. ByTool
	// splits the calls by the name of the tool.
	ByModel map[string]projection.Spend `json:"by_model,omitzero"`
	ByTool  map[string]ToolTally        `json:"by_tool,omitzero"`
}

// Tally counts the content of a part of a log. Copied and inherited events count in the
// original only.
type Tally struct {
	// Sessions counts the sessions with an event in the part.
	Sessions int   `json:"sessions"`
	Events   int64 `json:"events"`
	// Turns counts the turns that the session began itself, and exchanges without a
	// turn. A rewind begins no turn.
	Turns int64 `json:"turns"`
	// Messages counts messages of users and models. The pieces of a group are one
	// message. Tool results are no messages.
	Messages int64 `json:"messages"`
	Calls    int64 `json:"calls"`
	// WorkMS is the time of the turns without waits, and WaitMS the time that they waited for
	// the answer of a person or for another event, in milliseconds.
	WorkMS int64 `json:"work_ms"`
	WaitMS int64 `json:"wait_ms"`
	// Reported is the costs of the sessions as the programs computed them.
	Reported         event.Cost `json:"reported,omitzero"`
	projection.Spend `json:",inline"`
}

// Add returns the sum of t and u.
func (t Tally) Add(u Tally) Tally {
	return Tally{
		t.Sessions + u.Sessions, t.Events + u.Events, t.Turns + u.Turns, t.Messages + u.Messages, t.Calls + u.Calls,
		t.WorkMS + u.WorkMS, t.WaitMS + u.WaitMS, t.Reported.Add(u.Reported), t.Spend.Add(u.Spend),
	}
}

// ToolTally counts the calls of a tool, and the calls whose result is an error.
type ToolTally struct {
	Calls    int64 `json:"calls"`
	Failed   int64 `json:"failed"`
	Sessions int   `json:"sessions"`
}

// Add returns the sum of t and u.
func (t ToolTally) Add(u ToolTally) ToolTally {
	return ToolTally{t.Calls + u.Calls, t.Failed + u.Failed, t.Sessions + u.Sessions}
}

// Options select what Load counts. The zero value counts all own events.
type Options struct {
	// Days is the time zone of the days; UTC if nil.
	Days *time.Location
	// Since and Until bound the times of the events: Since is the first one that counts,
	// Until the first one that does not. Zero is no bound.
	Since, Until time.Time
	// Model selects the models whose spend counts; nil selects all. Events, messages and
	// calls count for every model.
	Model func(name string) bool
	// Hours fills Stats.ByHour.
	Hours bool
	// Prices estimate the costs of unpriced answers; see projection.Spend.Estimate.
	Prices *prices.Table
}

// Load reads a session's own events and counts them. At most one Options is
// used. Load lists the errors.
func Load(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Stats, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	c := newCounter(ctx, log, session, o)
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Transient()) {
		if err == nil {
			err = c.read(e.Effective())
		}
		if err != nil {
			return Stats{}, fmt.Errorf("count session %q: %w", session, err)
		}
	}
	return c.done(), nil
}

// Add adds the counts of t.
func (s *Stats) Add(t Stats) {
	s.Total = s.Total.Add(t.Total)
	s.BySource = sum(s.BySource, t.BySource, Tally.Add)
	s.ByDay = sum(s.ByDay, t.ByDay, Tally.Add)
	if t.ByHour != nil {
		s.ByHour = sum(s.ByHour, t.ByHour, Tally.Add)
	}
	s.ByModel = sum(s.ByModel, t.ByModel, projection.Spend.Add)
	s.ByTool = sum(s.ByTool, t.ByTool, ToolTally.Add)
}

func sum[T any](to, from map[string]T, add func(T, T) T) map[string]T {
	if to == nil {
		to = make(map[string]T, len(from))
	}
	for name, x := range from {
		to[name] = add(to[name], x)
	}
	return to
}

// counter counts one session.
type counter struct {
	Options
	source string
	stats  Stats
	meter  projection.Meter
	guess  estimate.Estimator
	within bool // the event is in the time that counts
	parent parentMeter
	seed   maphash.Seed
	groups map[uint64]bool   // messages that were counted, by the hash of the group
	tools  map[uint64]uint32 // indices of names, by the hash of the call id
	names  []string          // of tools
	named  map[string]uint32 // indices of names
	finder turns.Finder
	clock  clock
	// reported is the newest cost that the program computed.
	reported event.Cost
	turns    map[*turns.Turn]bool // counted turns; true while a turn_started can take the exchange over
}

func newCounter(ctx context.Context, log *eventlog.Log, session string, opts Options) counter {
	if opts.Days == nil {
		opts.Days = time.UTC
	}
	return counter{
		Options: opts, guess: estimate.Estimator{Cost: costOf(opts.Prices)},
		seed: maphash.MakeSeed(), groups: map[uint64]bool{}, tools: map[uint64]uint32{}, named: map[string]uint32{}, turns: map[*turns.Turn]bool{},
		parent: parentMeter{ctx: ctx, log: log, session: session},
	}
}

func (c *counter) read(e *event.Event) error {
	inherited := e.Inherited()
	t := Tally{Sessions: 1, Events: 1}
	if e.Type.Name() == event.MessageAdded {
		sealed.Remember(e)
		_, _ = event.DecodeKept[event.Message](e) // once for all who read it below
	}
	c.within = !e.Timestamp.Before(c.Since) && (c.Until.IsZero() || e.Timestamp.Before(c.Until))
	ended, err := c.finder.Next(e)
	if err != nil {
		return err
	}
	if c.beginsTurn() {
		t.Turns = 1
	}
	at := c.finder.Turn()
	if ended {
		c.finder.End(e.Seq)
	}
	if err := c.parent.before(e, &c.meter); err != nil {
		return err
	}
	err = c.meter.Read(e, inherited, func(x projection.Charge) {
		c.guess.Add(e, &x)
		if !c.within || c.Model != nil && !c.Model(x.Model) {
			return
		}
		t.Spend = t.Spend.Add(x.Spend)
		c.stats.ByModel = addSpend(c.stats.ByModel, x.Model, x.Spend)
	})
	if err != nil || e.Copied() || inherited {
		return err
	}
	work, waited, err := c.clock.next(at, e)
	if err != nil {
		return err
	}
	t.WorkMS, t.WaitMS = work.Milliseconds(), waited.Milliseconds()
	if cost, ok := estimate.Reported(e); ok {
		t.Reported, c.reported = cost-c.reported, cost
	}
	switch e.Type.Name() {
	case event.SessionStarted, event.SessionUpdated: // a fork has updates only
		p, err := event.DecodeKept[event.Session](e)
		if err != nil {
			return err
		}
		c.source = cmp.Or(c.source, p.Source.Format)
	case event.MessageAdded:
		if err := c.message(e, &t); err != nil {
			return err
		}
	}
	if c.within {
		c.count(event.Dated(e.Timestamp), t)
	}
	return nil
}

// beginsTurn reports whether the last event of the finder begins a turn. The first
// turn_started that takes an exchange over begins none; the next one does.
func (c *counter) beginsTurn() bool {
	at := c.finder.Turn()
	if _, known := c.turns[at]; at == nil || known {
		return false
	}
	c.turns[at] = true
	counted := c.turns[at.Input]
	if at.Input != nil {
		c.turns[at.Input] = false
	}
	return !counted
}

// count adds t to the total, the day and the hour. A session counts once in each.
func (c *counter) count(at time.Time, t Tally) {
	if c.stats.ByDay == nil {
		c.stats.ByDay = map[string]Tally{}
	}
	if c.Hours && c.stats.ByHour == nil {
		c.stats.ByHour = map[string]Tally{}
	}
	add := func(to Tally) Tally {
		to = to.Add(t)
		to.Sessions = 1
		return to
	}
	c.stats.Total = add(c.stats.Total)
	day, hour := Undated, Undated
	if !at.IsZero() {
		day, hour = at.In(c.Days).Format(time.DateOnly), at.UTC().Truncate(time.Hour).Format(time.RFC3339)
	}
	if c.Hours {
		c.stats.ByHour[hour] = add(c.stats.ByHour[hour])
	}
	if day != Undated || t.Messages > 0 || t.Calls > 0 || t.Responses > 0 || t.Cost != 0 { // else nobody asks when
		c.stats.ByDay[day] = add(c.stats.ByDay[day])
	}
}

// Undated is the name of the day of events without a time.
const Undated = "undated"

func (c *counter) message(e *event.Event, t *Tally) error {
	m, err := event.DecodeKept[event.Message](e)
	if err != nil {
		return err
	}
	if m.Role != event.Tool && c.beginsMessage(&m) {
		t.Messages = 1
	}
	for i := range m.Parts {
		t.Calls += c.part(&m.Parts[i])
	}
	return nil
}

// beginsMessage reports whether m has more than tool results, and is the first piece
// of its group.
func (c *counter) beginsMessage(m *event.Message) bool {
	results := len(m.Parts) > 0
	for i := range m.Parts {
		results = results && m.Parts[i].Type == event.ToolResultPart
	}
	if results {
		return false
	}
	if m.Group == "" {
		return true
	}
	group := maphash.String(c.seed, m.Group)
	counted := c.groups[group]
	c.groups[group] = true
	return !counted
}

// part counts a call, or the failure of an earlier call.
func (c *counter) part(p *event.Part) (calls int64) {
	tool := ToolTally{Sessions: 1}
	name := p.Name
	switch p.Type {
	case event.ToolCallPart, event.ServerToolCallPart:
		c.tools[maphash.String(c.seed, p.CallID)] = c.nameIndex(name)
		tool.Calls = 1
	case event.ToolResultPart, event.ServerToolResultPart:
		if !p.IsError {
			return 0
		}
		if i, ok := c.tools[maphash.String(c.seed, p.CallID)]; ok {
			name = cmp.Or(c.names[i], name)
		}
		tool.Failed = 1
	default:
		return 0
	}
	if !c.within {
		return 0
	}
	if c.stats.ByTool == nil {
		c.stats.ByTool = map[string]ToolTally{}
	}
	all := c.stats.ByTool[name].Add(tool)
	all.Sessions = 1
	c.stats.ByTool[name] = all
	return tool.Calls
}

// nameIndex returns the index of a tool in c.names.
func (c *counter) nameIndex(name string) uint32 {
	i, known := c.named[name]
	if !known {
		i = uint32(len(c.names))
		c.names, c.named[name] = append(c.names, name), i
	}
	return i
}

func (c *counter) done() Stats {
	c.stats.Total.Spend = estimate.WithoutDebt(c.stats.Total.Spend)
	for day, t := range c.stats.ByDay {
		t.Spend = estimate.WithoutDebt(t.Spend)
		c.stats.ByDay[day] = t
	}
	for hour, t := range c.stats.ByHour {
		t.Spend = estimate.WithoutDebt(t.Spend)
		c.stats.ByHour[hour] = t
	}
	for model, s := range c.stats.ByModel {
		c.stats.ByModel[model] = estimate.WithoutDebt(s)
	}
	if c.stats.Total.Events > 0 {
		c.stats.BySource = map[string]Tally{c.source: c.stats.Total}
	}
	return c.stats
}
