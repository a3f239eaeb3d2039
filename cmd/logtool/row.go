package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/listing"
)

// sessionRow is a session in a listing. A command has one for each session of the store.
type sessionRow = listing.Row

// about is the parent of a fork, or the agent and the folder of another session, for a
// session without a title.
func about(row *sessionRow) string {
	if text := brief(row.About(), 60); text != "" {
		return "(" + text + ")"
	}
	return ""
}

// nameOf is the label of a fork and the title, else a description.
func nameOf(row *sessionRow) string {
	label, title := brief(row.Label(), 40), brief(row.KnownTitle(), titleColumns)
	switch {
	case label == "" || row.Kind() != fork.KindFork:
		return cmp.Or(title, about(row), "-")
	case title == "":
		return label + " " + about(row)
	}
	return label + " · " + title
}

// fromOf describes the parent: "fork of order-42@7".
func fromOf(row *sessionRow, ids []string) string {
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
	State           bool `json:"state,omitzero"`
	listing.Program `json:",inline"`
	*listing.Tally  `json:",inline"`
	Error           string `json:"error,omitzero"`
}

// jsonOf is a row with --json.
func jsonOf(row *sessionRow) listedSession {
	x := listedSession{ID: row.ID, Events: row.Events, First: row.First(), Last: row.Last(), Bytes: row.Bytes, Seq: row.Head.Seq, Hash: row.Head.Hash, State: row.State, Program: *row.Program,
		origin: origin{row.Kind(), row.Parent, row.At, row.Label(), row.Missing, row.Partial, row.Forks, row.Runs, row.Copies}}
	if row.Content != nil {
		x.Title, x.Tally = row.Title, row.Tally
	}
	if err := row.Damage(); err != nil {
		x.Error = err.Error()
	}
	return x
}
