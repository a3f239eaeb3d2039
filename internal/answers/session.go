package answers

import (
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/listing"
)

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

// Session is a row of a listing.
type Session struct {
	ID     string `json:"session"`
	origin `json:",inline"`
	Title  string    `json:"title,omitzero"`
	Events int64     `json:"events"`
	First  time.Time `json:"first,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Bytes  int64     `json:"bytes"`
	// Seq and Hash are the head.
	Seq  int64      `json:"seq,omitzero"`
	Hash event.Hash `json:"hash,omitzero"`
	// State says that the session has the state of a program.
	State           bool `json:"state,omitzero"`
	listing.Program `json:",inline"`
	*listing.Tally  `json:",inline"`
	Error           string `json:"error,omitzero"`
}

// NewSession is the JSON of a row.
func NewSession(row *listing.Row) Session {
	x := Session{ID: row.ID, Events: row.Events, First: row.First(), Last: row.Last(), Bytes: row.Bytes, Seq: row.Head.Seq, Hash: row.Head.Hash, State: row.State, Program: *row.Program,
		origin: origin{row.Kind(), row.Parent, row.At, row.Label(), row.Missing, row.Partial, row.Forks, row.Runs, row.Copies}}
	if row.Content != nil {
		x.Title, x.Tally = row.Title, row.Tally
	}
	if err := row.Damage(); err != nil {
		x.Error = err.Error()
	}
	return x
}
