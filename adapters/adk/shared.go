package adk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// The state of an app and the state of a user are sessions of their own. An event that changes them is three appends: the
// change is pending in the shared state, then the event is stored in its session, then the change is settled. A pending change
// counts for all readers as soon as its event is stored, and never without it. So a process may be killed between the appends.
// The next writer settles the change.

// shared is the state of an app or of a user, as stored.
type shared struct {
	Values  map[string]any `json:"values"`
	Pending []pending      `json:"pending"`
}

// pending is a change of a shared state by an event that may be stored or not.
type pending struct {
	Session string         `json:"session"` // in the log
	After   int64          `json:"after"`   // the event is after this seq; 0 if it is the first one
	Event   ulid.ULID      `json:"event"`
	At      time.Time      `json:"at"`
	Values  map[string]any `json:"values"`
}

// abandoned is the age of a pending change whose event will not be stored any more.
const abandoned = 24 * time.Hour

// change is a change of the shared states of a session by one event.
type change struct {
	session   string
	after     int64
	event     ulid.ULID
	app, user map[string]any
}

// share calls store, which stores the event of the change, and changes the shared states if it succeeds.
func (s *sessions) share(ctx context.Context, who identity, c change, store func() error) error {
	states := map[string]map[string]any{who.appID(): c.app, who.userID(): c.user}
	maps.DeleteFunc(states, func(_ string, values map[string]any) bool { return len(values) == 0 })
	for id, values := range states {
		p := pending{c.session, c.after, c.event, time.Now().UTC(), values}
		if err := s.update(ctx, id, who, &p); err != nil {
			return err
		}
	}
	if err := store(); err != nil {
		return err
	}
	for id := range states {
		_ = s.update(ctx, id, who, nil) // the change counts already; the next writer settles it
	}
	return nil
}

// settle settles the pending changes of the session's app and user whose events are stored.
func (s *sessions) settle(ctx context.Context, who identity) error {
	return errors.Join(s.update(ctx, who.appID(), who, nil), s.update(ctx, who.userID(), who, nil))
}

// update settles the pending changes of a shared state, and adds one.
func (s *sessions) update(ctx context.Context, id string, who identity, add *pending) error {
	for {
		var doc *shared
		head, err := loadState(ctx, s.log, id, member, &doc)
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return err
		}
		ops, err := s.operations(ctx, doc, add)
		if err != nil || len(ops) == 0 {
			return err
		}
		patch, err := patchOf(ops...)
		if err != nil {
			return err
		}
		events := []event.Event{event.New(patch)}
		if head.IsZero() {
			started := event.New(event.Session{Agent: valid(who.App), State: true})
			events = slices.Insert(events, 0, started)
		}
		var after event.Head
		err = eventlog.UntilKnown(ctx, func() (err error) {
			after, err = s.log.Append(ctx, id, eventlog.At(head), events...)
			return err
		})
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			snapshot(ctx, s.log, id, head, after)
		}
		return err
	}
}

// operations are the operations that settle the pending changes of doc and add one. A nil doc has no values.
func (s *sessions) operations(ctx context.Context, doc *shared, add *pending) (ops []operation, err error) {
	if doc == nil {
		if add == nil {
			return nil, nil
		}
		doc, ops = new(shared), []operation{{"add", "", shared{Values: map[string]any{}, Pending: []pending{}}}}
	}
	var removed []operation
	for i, p := range doc.Pending {
		stored, err := s.stored(ctx, &p)
		if err != nil {
			return nil, err
		}
		if stored {
			for _, key := range slices.Sorted(maps.Keys(p.Values)) {
				ops = append(ops, operation{"add", "/values/" + pointer.Replace(key), p.Values[key]})
			}
		}
		if stored || time.Since(p.At) > abandoned {
			removed = append(removed, operation{Op: "remove", Path: "/pending/" + strconv.Itoa(i)})
		}
	}
	slices.Reverse(removed) // so that the places of the others stay
	ops = append(ops, removed...)
	if add != nil {
		ops = append(ops, operation{"add", "/pending/-", add})
	}
	return ops, nil
}

// stored reports whether the event of a pending change is stored.
func (s *sessions) stored(ctx context.Context, p *pending) (bool, error) {
	for e, err := range s.log.Read(ctx, p.Session, eventlog.From(p.After+1).Bare()) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return false, nil
		}
		if err != nil || e.ID == p.Event {
			return err == nil, err
		}
		if p.After == 0 {
			break
		}
	}
	return false, nil
}

// values are the values of a shared state, with the pending changes that count.
func (s *sessions) values(ctx context.Context, id string) (map[string]any, error) {
	var doc *shared
	_, err := loadState(ctx, s.log, id, member, &doc)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && doc == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range doc.Pending {
		stored, err := s.stored(ctx, &p)
		if err != nil {
			return nil, err
		}
		if stored {
			maps.Copy(doc.Values, p.Values)
		}
	}
	return doc.Values, nil
}

// sharedStates remembers the shared states of one call.
type sharedStates struct {
	*sessions
	states map[string]map[string]any
}

func (s *sessions) shared() *sharedStates { return &sharedStates{s, map[string]map[string]any{}} }

// add adds the states of the app and of the user to the state of a session.
func (s *sharedStates) add(ctx context.Context, who identity, state map[string]any) error {
	for prefix, id := range map[string]string{"app:": who.appID(), "user:": who.userID()} {
		values, ok := s.states[id]
		if !ok {
			var err error
			if values, err = s.values(ctx, id); err != nil {
				return err
			}
			s.states[id] = values
		}
		for key, value := range values {
			state[prefix+key] = value
		}
	}
	return nil
}
