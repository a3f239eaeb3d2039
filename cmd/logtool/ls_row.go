package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// listed is one session in a listing.
type sessionRow struct {
	ID     string `json:"id"`
	origin `json:",inline"`
	Title  string    `json:"title,omitzero"`
	Events int64     `json:"events"`
	First  time.Time `json:"first,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Bytes  int64     `json:"bytes"`
	// Source, Agent and CWD are those that the first event tells, or, where it was
	// read, the session.
	Source string `json:"source,omitzero"`
	Agent  string `json:"agent,omitzero"`
	CWD    string `json:"cwd,omitzero"`
	*tally `json:",inline"`
	Error  string `json:"error,omitzero"`
	about  string // who and where, for a session without a title
	begun  bool   // the first event tells the source and the folder
}

// tally is what only reading a session tells.
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

func newSessionRow(info eventlog.SessionInfo) *sessionRow {
	n := fork.NodeOf(info)
	row := &sessionRow{ID: info.ID, Bytes: info.Bytes, origin: newOrigin(n)}
	if n.Info.Err != nil {
		row.Error = n.Info.Err.Error()
		return row
	}
	row.Events = info.Events()
	row.First, row.Last = info.First.Timestamp, info.Last.Timestamp
	row.about = aboutOf(n)
	if s, ok, err := event.Decode[event.Session](&info.First); ok && err == nil && info.First.Type == event.SessionStarted {
		row.Source, row.Agent, row.CWD, row.begun = s.Source.Format, s.Agent, s.CWD, true
	}
	return row
}

// inherit gives forks the agent and the folder of their parents.
func inherit(rows []*sessionRow) {
	byID := map[string]*sessionRow{}
	for _, row := range rows {
		byID[row.ID] = row
	}
	for _, row := range rows {
		above := row
		for range rows { // at most, where damage made them ancestors of each other
			if row.CWD != "" || above == nil || above.Kind != fork.KindFork {
				break
			}
			if above = byID[above.Parent]; above != nil {
				row.Agent, row.CWD = above.Agent, above.CWD
			}
		}
	}
}

// spend is what the session spent; nothing if it was not read.
func (row *sessionRow) spend() projection.Spend {
	if row.tally == nil {
		return projection.Spend{}
	}
	return projection.Spend{Cost: row.tally.Cost, Usage: row.tally.Usage, Unpriced: row.tally.Unpriced}
}

// called is what people are told that the session is: the label of a fork, and
// the title, or else what else is known.
func (row *sessionRow) called() string {
	label := brief(row.Label, 40)
	switch {
	case label == "" || row.Kind != fork.KindFork:
		return cmp.Or(row.Title, row.about, "-")
	case row.Title == "":
		return label + " " + row.about
	}
	return label + " · " + row.Title
}

// aboutOf says what a session's first event tells of a session without a title:
// what it is a fork of, or the agent and the folder.
func aboutOf(n *fork.Node) string {
	if n.Kind == fork.KindFork {
		return "(" + brief("fork of "+n.Parent+" at "+at(n.Seq), 60) + ")"
	}
	s, ok, err := event.Decode[event.Session](&n.Info.First)
	if !ok || err != nil || s.Agent+s.CWD == "" {
		return ""
	}
	if s.CWD == "" {
		return "(" + brief(s.Agent, 60) + ")"
	}
	folder := s.CWD[strings.LastIndexAny(s.CWD, `/\`)+1:]
	return "(" + brief(s.Agent+" in "+folder, 60) + ")"
}
