package listing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// Row is a session in a listing. A listing has one for each session of the store, so it is
// small.
type Row struct {
	ID     string
	Parent string
	At     int64
	Head   event.Head // zero if the session cannot be read
	Events int64
	Bytes  int64

	first, last moment

	Forks, Runs, Copies int32
	Missing             bool // the parent is not in the store
	Partial             bool // the session is an unfinished copy
	Begun               bool // the first event is a session_started
	State               bool // of a program, as in fork.Node
	Counted             bool // by the reader of the listing
	kind                int8 // index of kinds

	spent   spendKey // once the session is read
	verdict verdict  // of Query.Choose

	*Program            // from the first event, or from all events once the session is read
	Began    *Program   // from the first event; a fork has its parent's
	rare     *rareParts // nil for most sessions
	*Content            // nil until the session is read
}

// kinds are the kinds of sessions.
var kinds = []string{fork.KindRoot, fork.KindFork, fork.KindRun, fork.KindCopy}

// Kind is how the session began.
func (row *Row) Kind() string { return kinds[row.kind] }

// moment is a small time.Time in UTC.
type moment struct {
	seconds     int64
	nanoseconds int32
}

func momentOf(t time.Time) moment { return moment{t.Unix(), int32(t.Nanosecond())} }

func (m moment) time() time.Time { return time.Unix(m.seconds, int64(m.nanoseconds)).UTC() }

func (m moment) compare(n moment) int {
	return cmp.Or(cmp.Compare(m.seconds, n.seconds), cmp.Compare(m.nanoseconds, n.nanoseconds))
}

// First and Last are the times of the first and the last event.
func (row *Row) First() time.Time { return row.first.time() }
func (row *Row) Last() time.Time  { return row.last.time() }

// rareParts are the parts of a row that most sessions do not have.
type rareParts struct {
	label string
	err   error // the session cannot be read
	tail  error // its end is damaged: see eventlog.SessionInfo
}

// Label is the label of a fork.
func (row *Row) Label() string {
	if row.rare == nil {
		return ""
	}
	return row.rare.label
}

// Err is the error of a session that cannot be read.
func (row *Row) Err() error {
	if row.rare == nil {
		return nil
	}
	return row.rare.err
}

// Fail sets the error of the row.
func (row *Row) Fail(err error) { row.rare = &rareParts{label: row.Label(), err: err} }

// Damage is the error of a session that cannot be read, or not to its end.
func (row *Row) Damage() error {
	if row.rare == nil {
		return nil
	}
	return cmp.Or(row.rare.err, row.rare.tail)
}

// Content is the part of a row that is read from the session.
type Content struct {
	Title  string
	*Tally // nil if only the ends of the session were read
}

// IsRead reports whether all of the session was read.
func (row *Row) IsRead() bool { return row.Content != nil && row.Tally != nil }

// Program is the program and the folder of a session. Rows share it.
type Program struct {
	Source string `json:"source,omitzero"`
	Agent  string `json:"agent,omitzero"`
	CWD    string `json:"cwd,omitzero"`
}

// Tally counts the events of a session. It needs a read of the whole session.
type Tally struct {
	Messages int64       `json:"messages"`
	Orphaned int64       `json:"orphaned"`
	Cost     event.Cost  `json:"cost"`
	Turns    int64       `json:"turns"`
	Calls    int64       `json:"calls"`
	Failed   int64       `json:"-"` // calls
	Usage    event.Usage `json:"usage"`
	Unpriced int         `json:"unpriced,omitzero"` // answers without a cost
	// Estimate is the list price of Estimated of the unpriced answers.
	Estimate  event.Cost `json:"estimate,omitzero"`
	Estimated int        `json:"estimated,omitzero"`
	Models    []string   `json:"models,omitzero"`
}

// Programs has the programs of rows, once each.
type Programs map[Program]*Program

func (all Programs) get(x Program) *Program {
	if all[x] == nil {
		all[x] = &x
	}
	return all[x]
}

// NewRow makes the row of a session.
func NewRow(info eventlog.SessionInfo, all Programs) *Row {
	n := fork.NodeOf(info)
	row := &Row{ID: info.ID, Bytes: info.Bytes, Program: all.get(Program{}), Began: all.get(Program{}),
		kind: int8(slices.Index(kinds, n.Kind)), Parent: n.Parent, At: n.Seq, Partial: n.Partial, State: n.State,
		first: momentOf(time.Time{}), last: momentOf(time.Time{})}
	if n.Label != "" || n.Err != nil || info.Tail != nil {
		row.rare = &rareParts{n.Label, n.Err, info.Tail}
	}
	if n.Err != nil {
		return row
	}
	row.Events, row.Head = info.Events(), info.Head()
	row.first, row.last = momentOf(event.Dated(info.First.Timestamp)), momentOf(event.Dated(info.Last.Timestamp))
	first := &info.First
	if name := first.Type.Name(); name != event.SessionStarted && name != event.SessionUpdated || first.Redacted() {
		return row
	}
	s, err := event.DecodeKept[event.Session](first)
	if err != nil {
		return row
	}
	row.Began = all.get(Program{s.Source.Format, s.Agent, s.CWD})
	if row.Begun = first.Type == event.SessionStarted; row.Begun {
		row.Program = row.Began
	}
	return row
}

// Known gets what the catalog knows of a session while the sessions are listed, so that its row of the
// catalog is read once. Only the columns of the first event are filled then, and forks have no program
// yet. A nil function is not called.
type Known struct {
	Name func(*Row, string)
	Sum  func(*Row, *stats.Summary)
}

// Read lists all sessions of a catalog's log by id, with their programs and parents. It calls step with
// the number of rows so far.
func Read(ctx context.Context, catalog *stats.Catalog, step func(n int), known Known) (all []*Row, err error) {
	shared := Programs{}
	for s, err := range catalog.Sessions(ctx, known.Sum != nil) {
		if err != nil {
			return nil, err
		}
		step(len(all))
		row := NewRow(s.SessionInfo, shared)
		if known.Name != nil && s.Named {
			known.Name(row, s.Name)
		}
		if s.Sum != nil {
			known.Sum(row, s.Sum)
		}
		all = append(all, row)
	}
	slices.SortFunc(all, func(x, y *Row) int { return cmp.Compare(x.ID, y.ID) })
	relate(all, shared)
	return all, ctx.Err()
}

// relate counts the children of each session, marks missing parents, and gives
// forks the agent and the folder of their parents. rows are all sessions of a store, by
// id.
func relate(rows []*Row, all Programs) {
	for _, row := range rows {
		parent := Find(rows, row.Parent)
		switch {
		case row.Parent == "":
		case parent == nil:
			row.Missing = true
		case row.Kind() == fork.KindFork:
			parent.Forks++
		case row.Kind() == fork.KindRun:
			parent.Runs++
		case row.Kind() == fork.KindCopy:
			parent.Copies++
		}
		if parent != nil {
			row.Parent = parent.ID // one text in memory
		}
		// In a damaged store, sessions can be ancestors of each other: stop then.
		for n := len(rows); n > 0 && row.Began.CWD == "" && parent != nil && row.Kind() == fork.KindFork; n-- {
			forked := parent.Kind() == fork.KindFork
			if forked || parent.Begun {
				row.Began = all.get(Program{"", parent.Began.Agent, parent.Began.CWD})
			}
			if !forked {
				break
			}
			parent = Find(rows, parent.Parent)
		}
		if row.Kind() == fork.KindFork {
			row.Program = all.get(Program{row.Source, cmp.Or(row.Agent, row.Began.Agent), cmp.Or(row.CWD, row.Began.CWD)})
		}
	}
}

// InfoOf lists one session.
func InfoOf(ctx context.Context, log *eventlog.Log, session string) (eventlog.SessionInfo, error) {
	for info, err := range log.List(ctx, eventlog.Part{Prefix: session}) {
		if err != nil || info.ID == session {
			return info, err
		}
		break // the ids are in order
	}
	_, err := log.Head(ctx, session)
	return eventlog.SessionInfo{}, cmp.Or(err, eventlog.ErrNotFound)
}

// ReadOne is the row of one session as Read has it. It lists the session, its relatives and its
// ancestors only.
func ReadOne(ctx context.Context, log *eventlog.Log, session string) (*Row, error) {
	shared := Programs{}
	found := map[string]*Row{}
	for id := session; id != "" && found[id] == nil; id = found[id].Parent {
		info, err := InfoOf(ctx, log, id)
		if errors.Is(err, eventlog.ErrNotFound) && id != session {
			break // a missing parent
		}
		if err != nil {
			return nil, err
		}
		found[id] = NewRow(info, shared)
	}
	for info, err := range log.Related(ctx, session) {
		if err != nil {
			return nil, err
		}
		if found[info.ID] == nil {
			found[info.ID] = NewRow(info, shared)
		}
	}
	all := slices.SortedFunc(maps.Values(found), func(x, y *Row) int { return cmp.Compare(x.ID, y.ID) })
	relate(all, shared)
	return found[session], nil
}

// Find finds a session in rows, by id; nil if it is missing. The rows are in the order of their
// ids.
func Find(rows []*Row, id string) *Row {
	i, found := slices.BinarySearchFunc(rows, id, func(row *Row, id string) int { return cmp.Compare(row.ID, id) })
	if !found {
		return nil
	}
	return rows[i]
}

// IDs are the ids of rows.
func IDs(rows []*Row) (ids []string) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// WithoutState leaves out the sessions that have the state of a program.
func WithoutState(rows []*Row) []*Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool { return row.State })
}

// Spend is the spend of the session; zero unless the session was read.
func (row *Row) Spend() projection.Spend {
	if !row.IsRead() {
		return projection.Spend{}
	}
	t := row.Tally
	return projection.Spend{Cost: t.Cost, Usage: t.Usage, Unpriced: t.Unpriced, Estimate: t.Estimate, Estimated: t.Estimated}
}

// Remember takes what Fill took before.
func (row *Row) Remember(c *Content, p *Program) {
	row.Content, row.Program = c, p
	if row.IsRead() {
		row.spent = spendKey{c.Cost.Add(c.Estimate), c.Usage.OutputTokens}
	}
}

// KnownTitle is the title; empty before the session is read.
func (row *Row) KnownTitle() string {
	if row.Content == nil {
		return ""
	}
	return row.Title
}

// About is the parent of a fork, or the agent and the folder of another session, for a
// session without a title.
func (row *Row) About() string {
	s := row.Began
	switch {
	case row.Kind() == fork.KindFork:
		return "fork of " + row.Parent + " at " + transcript.At(row.At)
	case s.CWD != "":
		return s.Agent + " in " + s.CWD[strings.LastIndexAny(s.CWD, `/\`)+1:]
	}
	return s.Agent
}
