package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// sessionRow is a session in a listing. A command has one for each session of the store,
// so it is small.
type sessionRow struct {
	ID     string
	Parent string
	At     int64
	Head   event.Head // zero if the session cannot be read
	Events int64
	Bytes  int64

	first, last moment

	Forks, Runs, Copies int32
	Missing, Partial    bool // as in origin
	begun               bool // the first event is a session_started
	state               bool // of a program, as in fork.Node
	kind                int8 // index of kinds

	*program            // from the first event, or from all events once the session is read
	began    *program   // from the first event
	rare     *rareParts // nil for most sessions
	*content            // nil until the session is read
}

// kinds are the kinds of sessions.
var kinds = []string{fork.KindRoot, fork.KindFork, fork.KindRun, fork.KindCopy}

// Kind is how the session began.
func (row *sessionRow) Kind() string { return kinds[row.kind] }

// moment is a small time.Time in UTC.
type moment struct {
	seconds     int64
	nanoseconds int32
}

func momentOf(t time.Time) moment { return moment{t.Unix(), int32(t.Nanosecond())} }

func (m moment) time() time.Time { return time.Unix(m.seconds, int64(m.nanoseconds)).UTC() }

// First and Last are the times of the first and the last event.
func (row *sessionRow) First() time.Time { return row.first.time() }
func (row *sessionRow) Last() time.Time  { return row.last.time() }

// rareParts are the parts of a row that most sessions do not have.
type rareParts struct {
	label string
	err   error // the session cannot be read
	tail  error // its end is damaged: see eventlog.SessionInfo
}

// label is the label of a fork.
func (row *sessionRow) label() string {
	if row.rare == nil {
		return ""
	}
	return row.rare.label
}

// err is the error of a session that cannot be read.
func (row *sessionRow) err() error {
	if row.rare == nil {
		return nil
	}
	return row.rare.err
}

func (row *sessionRow) fail(err error) { row.rare = &rareParts{label: row.label(), err: err} }

// damage is the error of a session that cannot be read, or not to its end.
func (row *sessionRow) damage() error {
	if row.rare == nil {
		return nil
	}
	return cmp.Or(row.rare.err, row.rare.tail)
}

// content is the part of a row that is read from the session.
type content struct {
	Title  string
	*tally // nil if only the ends of the session were read
}

// isRead reports whether all of the session was read.
func (row *sessionRow) isRead() bool { return row.content != nil && row.tally != nil }

// program is the program and the folder of a session. Rows share it.
type program struct {
	Source string `json:"source,omitzero"`
	Agent  string `json:"agent,omitzero"`
	CWD    string `json:"cwd,omitzero"`
}

// origin is the parent of a session, and the number of its children.
type origin struct {
	Kind    string `json:"kind"`
	Parent  string `json:"parent,omitzero"`
	At      int64  `json:"at,omitzero"`
	Label   string `json:"label,omitzero"`
	Missing bool   `json:"missing,omitzero"` // the parent is not in the store
	Partial bool   `json:"partial,omitzero"` // the session is an unfinished copy
	Forks   int32  `json:"forks"`
	Runs    int32  `json:"runs"`
	Copies  int32  `json:"copies"`
}

// listedSession is a sessionRow with --json.
type listedSession struct {
	ID     string `json:"session"`
	origin `json:",inline"`
	Title  string    `json:"title,omitzero"`
	Events int64     `json:"events"`
	First  time.Time `json:"first,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Bytes  int64     `json:"bytes"`
	// Seq and Hash are the head, as append and store heads print it.
	Seq  int64      `json:"seq,omitzero"`
	Hash event.Hash `json:"hash,omitzero"`
	// State says that the session has the state of a program.
	State   bool `json:"state,omitzero"`
	program `json:",inline"`
	*tally  `json:",inline"`
	Error   string `json:"error,omitzero"`
}

func (row *sessionRow) json() listedSession {
	x := listedSession{ID: row.ID, Events: row.Events, First: row.First(), Last: row.Last(), Bytes: row.Bytes, Seq: row.Head.Seq, Hash: row.Head.Hash, State: row.state, program: *row.program,
		origin: origin{row.Kind(), row.Parent, row.At, row.label(), row.Missing, row.Partial, row.Forks, row.Runs, row.Copies}}
	if row.content != nil {
		x.Title, x.tally = row.Title, row.tally
	}
	if err := row.damage(); err != nil {
		x.Error = err.Error()
	}
	return x
}

// tally counts the events of a session. It needs a read of the whole session.
type tally struct {
	Messages int64       `json:"messages"`
	Orphaned int64       `json:"orphaned"`
	Cost     event.Cost  `json:"cost"`
	Turns    int64       `json:"turns"`
	Calls    int64       `json:"calls"`
	Usage    event.Usage `json:"usage"`
	Unpriced int         `json:"unpriced,omitzero"` // answers without a cost
	// Estimate is the list price of Estimated of the unpriced answers.
	Estimate  event.Cost `json:"estimate,omitzero"`
	Estimated int        `json:"estimated,omitzero"`
	Models    []string   `json:"models,omitzero"`
}

// programs has the programs of rows, once each.
type programs map[program]*program

func (all programs) get(x program) *program {
	if all[x] == nil {
		all[x] = &x
	}
	return all[x]
}

func newSessionRow(info eventlog.SessionInfo, all programs) *sessionRow {
	n := fork.NodeOf(info)
	row := &sessionRow{ID: info.ID, Bytes: info.Bytes, program: all.get(program{}), began: all.get(program{}),
		kind: int8(slices.Index(kinds, n.Kind)), Parent: n.Parent, At: n.Seq, Partial: n.Partial, state: n.State,
		first: momentOf(time.Time{}), last: momentOf(time.Time{})}
	if n.Label != "" || n.Err != nil || info.Tail != nil {
		row.rare = &rareParts{n.Label, n.Err, info.Tail}
	}
	if n.Err != nil {
		return row
	}
	row.Events, row.Head = info.Events(), info.Last.Head()
	row.first, row.last = momentOf(event.Dated(info.First.Timestamp)), momentOf(event.Dated(info.Last.Timestamp))
	s, ok, err := event.Decode[event.Session](&info.First)
	if !ok || err != nil {
		return row
	}
	row.began = all.get(program{s.Source.Format, s.Agent, s.CWD})
	if row.begun = info.First.Type == event.SessionStarted; row.begun {
		row.program = row.began
	}
	return row
}

// about is the parent of a fork, or the agent and the folder of another session, for a
// session without a title.
func (row *sessionRow) about() string {
	s := row.began
	switch {
	case row.Kind() == fork.KindFork:
		return "(" + brief("fork of "+row.Parent+" at "+at(row.At), 60) + ")"
	case s.CWD != "":
		return "(" + brief(s.Agent+" in "+s.CWD[strings.LastIndexAny(s.CWD, `/\`)+1:], 60) + ")"
	case s.Agent != "":
		return "(" + brief(s.Agent, 60) + ")"
	}
	return ""
}

// relate counts the children of each session, marks missing parents, and gives
// forks the agent and the folder of their parents. rows are all sessions of a store, by
// id.
func relate(rows []*sessionRow, all programs) {
	for _, row := range rows {
		parent := rowOf(rows, row.Parent)
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
		for n := len(rows); n > 0 && row.CWD == "" && parent != nil && row.Kind() == fork.KindFork; n-- {
			if row.program = all.get(program{row.Source, parent.Agent, parent.CWD}); parent.Kind() != fork.KindFork {
				break
			}
			parent = rowOf(rows, parent.Parent)
		}
	}
}

// rowOf finds a session in rows, by id; nil if it is missing.
func rowOf(rows []*sessionRow, id string) *sessionRow {
	i, found := slices.BinarySearchFunc(rows, id, func(row *sessionRow, id string) int { return cmp.Compare(row.ID, id) })
	if !found {
		return nil
	}
	return rows[i]
}

// spend is the spend of the session; zero unless the session was read.
func (row *sessionRow) spend() projection.Spend {
	if !row.isRead() {
		return projection.Spend{}
	}
	t := row.tally
	return projection.Spend{Cost: t.Cost, Usage: t.Usage, Unpriced: t.Unpriced, Estimate: t.Estimate, Estimated: t.Estimated}
}

// title is the title; empty before the session is read.
func (row *sessionRow) title() string {
	if row.content == nil {
		return ""
	}
	return row.Title
}

// name is the label of a fork and the title, else a description.
func (row *sessionRow) name() string {
	label, title := brief(row.label(), 40), brief(row.title(), titleColumns)
	switch {
	case label == "" || row.Kind() != fork.KindFork:
		return cmp.Or(title, row.about(), "-")
	case title == "":
		return label + " " + row.about()
	}
	return label + " · " + title
}

// from describes the parent: "fork of order-42@7".
func (row *sessionRow) from(ids []string) string {
	if row.Parent == "" {
		return "-"
	}
	parent := row.Parent
	if !row.Missing {
		parent = abbreviate(parent, ids)
	}
	text := string(row.Kind()) + " of " + clean(parent)
	if row.At > 0 || row.Kind() == fork.KindFork {
		text += "@" + strconv.FormatInt(row.At, 10)
	}
	if row.Missing {
		text += ", missing"
	}
	return text
}

// idsOf are the ids of rows, by id.
func idsOf(rows []*sessionRow) (ids []string) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}
