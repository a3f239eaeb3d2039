package genkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firebase/genkit/go/ai/exp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// rowType is the type of the events with the members of a snapshot besides its state.
const rowType event.Type = "genkit:snapshot"

// row is a stored snapshot.
type row[S any] struct {
	snapshot *exp.SessionSnapshot[S] // nil if there is none
	logID    string
	head     event.Head // of the session when it was read
	state    int64      // the state is of the path that ends with this event; 0 if it has none
}

// ownEvent is the state of a row that is of the path of its own event.
const ownEvent = -1

// rowData is the data of a row's event.
type rowData struct {
	Row json.RawMessage `json:"row"` // the snapshot without its state
	// State is row.state, and SessionID the id in the state.
	State     int64  `json:"state"`
	SessionID string `json:"state_session_id,omitempty"`
}

func (r *row[S]) event() (event.Event, error) {
	header := *r.snapshot
	header.State = nil
	raw, err := marshal(header)
	if err != nil {
		return event.Event{}, err
	}
	data := rowData{Row: json.RawMessage(raw), State: r.state}
	if r.snapshot.State != nil {
		data.SessionID = r.snapshot.State.SessionID
	}
	encoded, err := marshal(data)
	return event.Event{ID: event.NewID(), Type: rowType, Data: encoded}, err
}

// decodeRow decodes the event of a row, without its state. ok is false for any other event.
func decodeRow[S any](e *event.Event) (r row[S], ok bool, err error) {
	if e.Type != rowType || e.Redacted() {
		return r, false, nil
	}
	var data rowData
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return r, false, err
	}
	if r.state = data.State; r.state == ownEvent {
		r.state = e.Seq
	}
	if err := json.Unmarshal(data.Row, &r.snapshot); err != nil || r.snapshot == nil {
		return r, false, err
	}
	if r.state != 0 {
		r.snapshot.State = &exp.SessionState[S]{SessionID: data.SessionID}
	}
	return r, true, nil
}

// rowPlace is the event of a row, and the time that orders it.
type rowPlace struct {
	Seq     int64     `json:"seq"`
	Created time.Time `json:"created"`
}

// rows are the places of the newest versions of a session's snapshots, by id.
type rows map[string]rowPlace

// rowsOf folds the rows on all branches. A fork has none at first.
var rowsOf = projection.Projection[rows]{
	Name: "genkit:rows", Version: 1, Scope: event.SessionScope, New: func() rows { return rows{} },
	Apply: func(all *rows, e *event.Event) error {
		if e.Type.Name() == event.SessionForked {
			*all = rows{}
		}
		r, ok, err := decodeRow[json.RawMessage](e)
		if ok {
			(*all)[r.snapshot.SnapshotID] = rowPlace{e.Seq, r.snapshot.CreatedAt}
		}
		return err
	},
}

func loadRows(ctx context.Context, log *eventlog.Log, logID string) (rows, event.Head, error) {
	view, err := projection.Load(ctx, log, logID, rowsOf)
	return view.State, view.Head, err
}

// newest returns the seq of the row with the greatest time, and then the greatest id.
func (all rows) newest() (seq int64, ok bool) {
	var id string
	for candidate, p := range all {
		if order := p.Created.Compare(all[id].Created); id == "" || order > 0 || order == 0 && candidate > id {
			id = candidate
		}
	}
	return all[id].Seq, id != ""
}

// find returns the snapshot with an id. A row without a snapshot means that there is none.
func (s *Store[S]) find(ctx context.Context, id string) (row[S], error) {
	logID, err := s.sessionOf(ctx, id)
	if err != nil {
		return row[S]{}, err
	}
	if logID == "" {
		return s.findEnd(ctx, id)
	}
	all, head, err := loadRows(ctx, s.log, logID)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && all[id].Seq == 0 {
		return row[S]{}, nil
	}
	if err != nil {
		return row[S]{}, err
	}
	found, err := s.read(ctx, logID, all[id].Seq)
	found.head = head
	return found, err
}

// read reads the row at seq with its state.
func (s *Store[S]) read(ctx context.Context, logID string, seq int64) (row[S], error) {
	e, err := s.log.Event(ctx, logID, seq)
	if err != nil {
		return row[S]{}, err
	}
	r, ok, err := decodeRow[S](&e)
	if err != nil || !ok {
		return row[S]{}, errors.Join(err, fmt.Errorf("event %d of session %q is no snapshot", seq, logID))
	}
	r.logID = logID
	if r.state != 0 {
		err = s.decodeState(ctx, logID, r.state, r.snapshot.State)
	}
	return r, err
}

// endPrefix begins the ids of snapshots of a fork's end: then the id in the log, a slash, and the seq.
const endPrefix = "end:"

// ofFork is a snapshot of a session that has none: of the events that a fork shares with its parent, or that another program
// appended. It is not stored.
func (s *Store[S]) ofFork(ctx context.Context, logID string, seq int64) (*exp.SessionSnapshot[S], error) {
	last, err := s.log.Event(ctx, logID, seq)
	if err != nil {
		return nil, err
	}
	id := sessionName(logID)
	out := &exp.SessionSnapshot[S]{
		SnapshotID: fmt.Sprintf("%s%s/%d", endPrefix, logID, seq), SessionID: id, Status: exp.SnapshotStatusCompleted,
		CreatedAt: last.Timestamp, UpdatedAt: last.Timestamp, State: &exp.SessionState[S]{SessionID: id},
	}
	return out, s.decodeState(ctx, logID, seq, out.State)
}

// findEnd returns the snapshot of a fork's end with an id of ofFork.
func (s *Store[S]) findEnd(ctx context.Context, id string) (row[S], error) {
	place, ok := strings.CutPrefix(id, endPrefix)
	i := strings.LastIndexByte(place, '/')
	var seq int64
	if !ok || i < 0 {
		return row[S]{}, nil
	}
	if _, err := fmt.Sscan(place[i+1:], &seq); err != nil {
		return row[S]{}, nil
	}
	logID := place[:i]
	head, err := s.log.Head(ctx, logID)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && (seq < 1 || seq > head.Seq) {
		return row[S]{}, nil
	}
	if err != nil {
		return row[S]{}, err
	}
	out, err := s.ofFork(ctx, logID, seq)
	return row[S]{out, logID, head, seq}, err
}
