package adk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// sessions is the session.Service.
type sessions struct{ log *eventlog.Log }

var _ session.Service = (*sessions)(nil)

func (s *sessions) bodies() bodies { return bodies{s.log} }

// Create stores a session with its state. An existing session is an error.
func (s *sessions) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("app_name and user_id are required, got app_name: %q, user_id: %q", req.AppName, req.UserID)
	}
	who := identity{req.AppName, req.UserID, req.SessionID}
	if who.Session == "" {
		who.Session = platform.NewUUID(ctx)
	}
	h, err := s.create(ctx, who, req.State)
	if errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrExists) {
		return nil, fmt.Errorf("session %s already exists: %w", who.Session, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", who.Session, err)
	}
	return &session.CreateResponse{Session: h}, nil
}

func (s *sessions) create(ctx context.Context, who identity, state map[string]any) (*handle, error) {
	logID := who.logID()
	app, user, own := split(state)
	empty := event.CustomPatch{Name: member, Patch: jsontext.Value("[" + emptyState + "]")}
	events := []event.Event{event.New(event.Session{Agent: valid(who.App)}), event.New(empty)}
	events[0].Metadata = who.metadata()
	if len(own) > 0 {
		patch, err := setMembers(own)
		if err != nil {
			return nil, err
		}
		events = append(events, event.New(patch))
	}
	var head event.Head
	c := change{session: logID, event: events[0].ID, app: app, user: user}
	err := s.share(ctx, who, c, func() (err error) {
		return eventlog.UntilKnown(ctx, func() error {
			head, err = s.log.Append(ctx, logID, eventlog.New(), events...)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	h := &handle{identity: who, logID: logID, tip: tip{head: head}, state: maps.Clone(own), updated: time.Now()}
	return h, s.shared().add(ctx, who, h.state)
}

// Get returns a session as of its newest event. With NumRecentEvents it reads these events and the
// events since the newest snapshot of the state, not the whole session.
func (s *sessions) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if req.AppName == "" || req.UserID == "" || req.SessionID == "" {
		return nil, fmt.Errorf("app_name, user_id, session_id are required, got app_name: %q, user_id: %q, session_id: %q", req.AppName, req.UserID, req.SessionID)
	}
	h, err := s.get(ctx, identity{req.AppName, req.UserID, req.SessionID}, req.NumRecentEvents)
	if err != nil {
		return nil, fmt.Errorf("get session %q: %w", req.SessionID, err)
	}
	if !req.After.IsZero() {
		h.events = slices.DeleteFunc(h.events, func(e *session.Event) bool { return e.Timestamp.Before(req.After) })
	}
	return &session.GetResponse{Session: h}, nil
}

func (s *sessions) get(ctx context.Context, who identity, newest int) (*handle, error) {
	logID, err := s.find(ctx, who)
	if err != nil {
		return nil, err
	}
	h := &handle{identity: who, logID: logID}
	if err := s.loadOwn(ctx, h); err != nil {
		return nil, err
	}
	last, err := s.log.Event(ctx, logID, h.head.Seq)
	if err != nil {
		return nil, err
	}
	h.updated = last.Timestamp
	if err := s.shared().add(ctx, who, h.state); err != nil {
		return nil, err
	}
	h.events, err = s.read(ctx, h, newest)
	return h, err
}

// loadOwn loads the tip and the own state of a handle.
func (s *sessions) loadOwn(ctx context.Context, h *handle) (err error) {
	if h.head, err = loadState(ctx, s.log, h.logID, member, &h.state); err != nil {
		return err
	}
	if h.blank = h.state == nil; h.blank {
		h.state = map[string]any{}
	}
	return nil
}

// read returns the newest ADK events of the active path, oldest first, or all of them if newest is 0.
func (s *sessions) read(ctx context.Context, h *handle, newest int) (events []*session.Event, err error) {
	r := eventlog.Between(0, h.head.Seq).OnPath()
	if newest > 0 {
		r = r.Backward()
	}
	for e, err := range s.log.Read(ctx, h.logID, r) {
		if err != nil {
			return nil, err
		}
		own, ok, err := s.bodies().decode(ctx, &e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if ok {
			events = append(events, own)
		}
		if newest > 0 && len(events) == newest {
			break
		}
	}
	if newest > 0 {
		slices.Reverse(events)
	}
	nameAuthors(h.identity.App, events)
	return events, nil
}

// find returns the id in the log of a session. A fork may have any id: it is the session with that name if its first
// ancestor belongs to the user.
func (s *sessions) find(ctx context.Context, who identity) (logID string, err error) {
	_, err = s.log.Head(ctx, who.logID())
	if err == nil || !errors.Is(err, eventlog.ErrNotFound) || event.CheckSessionID(who.Session) != nil {
		return who.logID(), err
	}
	root, forked, rootErr := s.root(ctx, who.Session)
	if rootErr != nil && !errors.Is(rootErr, eventlog.ErrNotFound) {
		return "", rootErr
	}
	if rootErr != nil || !forked || !(identity{App: who.App, User: who.User}).owns(root) {
		return "", err
	}
	return who.Session, nil
}

// root returns the identity of the first ancestor of a session.
func (s *sessions) root(ctx context.Context, logID string) (i identity, forked bool, err error) {
	for e, err := range s.log.Read(ctx, logID, eventlog.Between(1, 1).Bare()) {
		if err != nil {
			return identity{}, false, err
		}
		i, ok := identityOf(&e)
		return i, ok && e.SessionID != logID, nil
	}
	return identity{}, false, nil
}

// List returns the sessions of a user, or of an app, without their events.
func (s *sessions) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req.AppName == "" {
		return nil, fmt.Errorf("app_name is required, got app_name: %q", req.AppName)
	}
	list, err := s.list(ctx, identity{App: req.AppName, User: req.UserID})
	if err != nil {
		return nil, fmt.Errorf("list sessions of app %q: %w", req.AppName, err)
	}
	return &session.ListResponse{Sessions: list}, nil
}

func (s *sessions) list(ctx context.Context, of identity) ([]session.Session, error) {
	var handles []*handle
	add := func(who identity, logID string, updated time.Time) {
		handles = append(handles, &handle{identity: who, logID: logID, updated: updated})
	}
	owners := map[string]identity{}
	for info, err := range s.log.List(ctx, eventlog.Part{Prefix: of.listed()}) {
		if err == nil {
			err = info.Err
		}
		if err != nil {
			return nil, err
		}
		if who, ok := identityOf(&info.First); ok && of.owns(who) {
			owners[info.ID] = who
			add(who, info.ID, info.Last.Timestamp)
		}
	}
	if err := s.eachFork(ctx, owners, add); err != nil {
		return nil, err
	}
	list := []session.Session{}
	shared := s.shared()
	failed := s.loadEach(ctx, handles)
	for i, h := range handles {
		err := failed[i]
		if errors.Is(err, eventlog.ErrNotFound) { // it was removed meanwhile
			continue
		}
		if err == nil {
			err = shared.add(ctx, h.identity, h.state)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// loadEach is loadOwn for handles, several at a time. It returns the error of each.
func (s *sessions) loadEach(ctx context.Context, handles []*handle) []error {
	errs := make([]error, len(handles))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(len(handles), 2*runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(handles); i = int(next.Add(1)) - 1 {
				errs[i] = s.loadOwn(ctx, handles[i])
			}
		})
	}
	group.Wait()
	return errs
}

// eachFork calls add for each fork of the sessions, and for the forks of these, whose id does not name a session of ADK.
func (s *sessions) eachFork(ctx context.Context, owners map[string]identity, add func(who identity, logID string, updated time.Time)) error {
	parents := slices.Sorted(maps.Keys(owners))
	if len(parents) == 0 {
		return nil
	}
	forks, err := s.log.Forks(ctx, parents...)
	for ; err == nil && len(parents) > 0; parents = parents[1:] {
		for _, f := range forks.ByParent[parents[0]] {
			if _, listed := owners[f.Session]; listed {
				continue
			}
			who := owners[parents[0]]
			who.Session = f.Session
			owners[f.Session], parents = who, append(parents, f.Session)
			for last, err := range s.log.Read(ctx, f.Session, eventlog.Last(1).Bare()) {
				if err != nil && !errors.Is(err, eventlog.ErrNotFound) { // it may be removed meanwhile
					return err
				}
				if err == nil {
					add(who, f.Session, last.Timestamp)
				}
			}
		}
	}
	return err
}

// Delete removes a session. A missing session is no error. A session with forks is eventlog.ErrInUse: remove the
// forks first.
func (s *sessions) Delete(ctx context.Context, req *session.DeleteRequest) error {
	if req.AppName == "" || req.UserID == "" || req.SessionID == "" {
		return fmt.Errorf("app_name, user_id, session_id are required, got app_name: %q, user_id: %q, session_id: %q", req.AppName, req.UserID, req.SessionID)
	}
	who := identity{req.AppName, req.UserID, req.SessionID}
	logID, err := s.find(ctx, who)
	if err == nil {
		err = s.settle(ctx, who)
	}
	if err == nil {
		err = erase.Remove(ctx, s.log, logID, erase.RemoveOptions{Reason: "deleted by the program", By: "adk"})
	}
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("delete session %q: %w", req.SessionID, err)
	}
	return nil
}

// AppendEvent stores an event after the newest event of the session, whatever cur has seen of it. It stores nothing of
// a partial event, and nothing of an event that is stored.
func (s *sessions) AppendEvent(ctx context.Context, cur session.Session, e *session.Event) error {
	if cur == nil {
		return errors.New("session is nil")
	}
	if e == nil {
		return errors.New("event is nil")
	}
	if e.Partial {
		return nil
	}
	if err := s.appendEvent(ctx, cur, e); err != nil {
		return fmt.Errorf("append event %q to session %q: %w", e.ID, cur.ID(), err)
	}
	return nil
}

func (s *sessions) appendEvent(ctx context.Context, cur session.Session, e *session.Event) error {
	who := identity{cur.AppName(), cur.UserID(), cur.ID()}
	h, ok := cur.(*handle)
	if !ok {
		logID, err := s.find(ctx, who)
		if err != nil {
			return err
		}
		h = &handle{identity: who, logID: logID, state: map[string]any{}}
	}
	if hasBlobs(e.Content) {
		return s.log.Hold(ctx, func(ctx context.Context) error { return s.store(ctx, h, e) })
	}
	return s.store(ctx, h, e)
}

func (s *sessions) store(ctx context.Context, h *handle, e *session.Event) error {
	events, err := s.bodies().encode(ctx, h.logID, e)
	if err != nil {
		return err
	}
	before, head := h.known(), event.Head{}
	c := change{session: h.logID, event: events[0].ID}
	c.app, c.user, _ = split(e.Actions.StateDelta)
	if len(c.app)+len(c.user) > 0 { // the newest head: an event that is stored before it is no event of this change
		if before, err = s.newest(ctx, h.logID, events); err != nil {
			return err
		}
		c.after = before.head.Seq
	}
	err = s.share(ctx, h.identity, c, func() (err error) {
		before, head, err = s.append(ctx, h.logID, before, events)
		return err
	})
	if err == nil {
		h.appended(e, snapshot(ctx, s.log, h.logID, before.head, head))
	}
	return err
}

// newest returns the newest tip of a session. If the events have no patch, it does not find out whether the session is blank.
func (s *sessions) newest(ctx context.Context, logID string, events []event.Event) (tip, error) {
	if len(events) == 1 {
		head, err := s.log.Head(ctx, logID)
		return tip{head: head}, err
	}
	h := &handle{logID: logID}
	err := s.loadOwn(ctx, h)
	return h.tip, err
}

// append appends the events after the newest event of an existing session. It tries the tip that the caller knows
// first. It returns the tip before the events, too.
func (s *sessions) append(ctx context.Context, logID string, known tip, events []event.Event) (before tip, after event.Head, err error) {
	before = known
	for {
		if before.head.IsZero() {
			if before, err = s.newest(ctx, logID, events); err != nil {
				return before, after, err
			}
		}
		fitting := events
		if before.blank {
			if fitting, err = beginState(events); err != nil {
				return before, after, err
			}
		}
		expect := eventlog.At(before.head).Lenient()
		err = eventlog.UntilKnown(ctx, func() (err error) {
			after, err = s.log.Append(ctx, logID, expect, fitting...)
			return err
		})
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) || ctx.Err() != nil {
			return before, after, err
		}
		if conflict.ID != "" { // the session has an event with the id: it is stored, or another one
			after, err = s.log.Append(ctx, logID, eventlog.Any().Lenient(), fitting...)
			return tip{head: after}, after, err
		}
		before = tip{}
	}
}
