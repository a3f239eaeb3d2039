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
	ID string
	origin
	// Head is zero if the session cannot be read.
	Head        event.Head
	Events      int64
	First, Last time.Time
	Bytes       int64
	Title       string // set for the rows that are printed
	*program           // from the first event, or from all events once the session is read
	began       *program
	begun       bool // the first event is a session_started
	*tally
	err error // the session cannot be read
}

// program is the program and the folder of a session. Rows share it.
type program struct {
	Source string `json:"source,omitzero"`
	Agent  string `json:"agent,omitzero"`
	CWD    string `json:"cwd,omitzero"`
}

// origin is the parent of a session, and the number of its children.
type origin struct {
	Kind    fork.Kind `json:"kind"`
	Parent  string    `json:"parent,omitzero"`
	At      int64     `json:"at,omitzero"`
	Label   string    `json:"label,omitzero"`
	Missing bool      `json:"missing,omitzero"` // the parent is not in the store
	Partial bool      `json:"partial,omitzero"` // the session is an unfinished copy
	Forks   int32     `json:"forks"`
	Runs    int32     `json:"runs"`
	Copies  int32     `json:"copies"`
}

// listedSession is a sessionRow with --json.
type listedSession struct {
	ID      string `json:"id"`
	origin  `json:",inline"`
	Title   string    `json:"title,omitzero"`
	Events  int64     `json:"events"`
	First   time.Time `json:"first,omitzero"`
	Last    time.Time `json:"last,omitzero"`
	Bytes   int64     `json:"bytes"`
	program `json:",inline"`
	*tally  `json:",inline"`
	Error   string `json:"error,omitzero"`
}

func (row *sessionRow) json() listedSession {
	x := listedSession{row.ID, row.origin, row.Title, row.Events, row.First, row.Last, row.Bytes, *row.program, row.tally, ""}
	if row.err != nil {
		x.Error = row.err.Error()
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
	Models   []string    `json:"models,omitzero"`
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
		origin: origin{Kind: n.Kind, Parent: n.Parent, At: n.Seq, Label: n.Label, Partial: n.Partial}}
	if n.Info.Err != nil {
		row.err = n.Info.Err
		return row
	}
	row.Events, row.Head = info.Events(), info.Last.Head()
	row.First, row.Last = event.Dated(info.First.Timestamp), event.Dated(info.Last.Timestamp)
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
	case row.Kind == fork.KindFork:
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
		case row.Kind == fork.KindFork:
			parent.Forks++
		case row.Kind == fork.KindRun:
			parent.Runs++
		case row.Kind == fork.KindCopy:
			parent.Copies++
		}
		if parent != nil {
			row.Parent = parent.ID // one text in memory
		}
		// In a damaged store, sessions can be ancestors of each other: stop then.
		for n := len(rows); n > 0 && row.CWD == "" && parent != nil && row.Kind == fork.KindFork; n-- {
			if row.program = all.get(program{row.Source, parent.Agent, parent.CWD}); parent.Kind != fork.KindFork {
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
	if row.tally == nil {
		return projection.Spend{}
	}
	return projection.Spend{Cost: row.tally.Cost, Usage: row.tally.Usage, Unpriced: row.tally.Unpriced}
}

// name is the label of a fork and the title, else a description.
func (row *sessionRow) name() string {
	label, title := brief(row.Label, 40), brief(row.Title, titleColumns)
	switch {
	case label == "" || row.Kind != fork.KindFork:
		return cmp.Or(title, row.about(), "-")
	case title == "":
		return label + " " + row.about()
	}
	return label + " · " + title
}

// from describes the parent: "fork of order-42@7".
func (o *origin) from(ids []string) string {
	if o.Parent == "" {
		return "-"
	}
	parent := o.Parent
	if !o.Missing {
		parent = abbreviate(parent, ids)
	}
	text := string(o.Kind) + " of " + clean(parent)
	if o.At > 0 || o.Kind == fork.KindFork {
		text += "@" + strconv.FormatInt(o.At, 10)
	}
	if o.Missing {
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
