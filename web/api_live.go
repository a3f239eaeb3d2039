package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/httpapi"
)

func (h *Handler) apiLive(w http.ResponseWriter, r *http.Request) error {
	after, err := afterOf(r)
	if err != nil {
		return err
	}
	return h.follow(w, r, after+1, func(e *event.Event) httpapi.Frame {
		return httpapi.Frame{Data: encoded(httpapi.NewEvent(e))}
	})
}

// liveHead is a frame of the stream of the list: the head of a session, or that the session is
// removed.
type liveHead struct {
	Session string     `json:"session"`
	Seq     int64      `json:"seq,omitzero"`
	Hash    event.Hash `json:"hash,omitzero"`
	Removed bool       `json:"removed,omitzero"`
}

// heads are the heads of all sessions, in the order in which they changed. It lists the sessions
// while a stream follows it.
type heads struct {
	log  *eventlog.Log
	name string // of this start of the server: ids of another start continue nothing

	mu      sync.Mutex
	users   int
	stop    context.CancelFunc
	n       int64 // changes so far
	all     map[string]*changedHead
	changed chan struct{} // closed at the next change
	listed  chan struct{} // closed after the first list
	err     error         // of the newest list
}

// changedHead is a head and the number of its change.
type changedHead struct {
	liveHead
	n    int64
	seen bool // in the newest list
}

func newHeads(log *eventlog.Log) *heads {
	return &heads{log: log, name: event.NewID().String(), all: map[string]*changedHead{}, changed: make(chan struct{}), listed: make(chan struct{})}
}

// listPause is the least time between two lists.
const listPause = 250 * time.Millisecond

// join keeps the heads up to date until leave.
func (x *heads) join() (leave func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users++; x.users == 1 {
		var ctx context.Context
		ctx, x.stop = context.WithCancel(context.Background())
		go x.run(ctx)
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.users--; x.users == 0 {
			x.stop()
		}
	}
}

// run lists the sessions when one has changed. A list that takes long is made less often.
func (x *heads) run(ctx context.Context) {
	changes := x.changes(ctx)
	for ctx.Err() == nil {
		begin := time.Now()
		x.list(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(listPause, 4*time.Since(begin))):
		}
		select {
		case <-ctx.Done():
		case <-changes:
		}
	}
}

// changes receives after a session may have changed. If the store is no eventlog.Notifier, it
// receives always.
func (x *heads) changes(ctx context.Context) <-chan struct{} {
	changes := make(chan struct{}, 1)
	notifier, ok := eventlog.As[eventlog.Notifier](x.log.Store())
	if !ok {
		close(changes)
		return changes
	}
	go func() {
		for ctx.Err() == nil {
			for range notifier.Changes(ctx) { // after an error it begins again
				select {
				case changes <- struct{}{}:
				default:
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(listPause):
			}
		}
	}()
	return changes
}

// list reads the heads of all sessions.
func (x *heads) list(ctx context.Context) {
	var found []liveHead
	for info, err := range x.log.Sessions(ctx) {
		if err != nil {
			x.put(ctx, nil, err)
			return
		}
		head := liveHead{Session: info.ID}
		if info.Err == nil {
			head.Seq, head.Hash = info.Head().Seq, info.Head().Hash
		}
		found = append(found, head)
	}
	x.put(ctx, found, nil)
}

// put takes a list.
func (x *heads) put(ctx context.Context, found []liveHead, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	select {
	case <-x.listed:
	default:
		close(x.listed)
	}
	before := x.n
	if x.err = err; err == nil {
		for _, c := range x.all {
			c.seen = false
		}
		for _, head := range found {
			x.set(head)
		}
		for _, c := range x.all {
			if !c.seen && !c.Removed {
				x.set(liveHead{Session: c.Session, Removed: true})
			}
		}
	}
	if x.n != before || err != nil {
		close(x.changed)
		x.changed = make(chan struct{})
	}
}

// set sets the head of a session. A session that cannot be read keeps its head.
func (x *heads) set(head liveHead) {
	c := x.all[head.Session]
	if c == nil {
		c = &changedHead{liveHead: liveHead{Session: head.Session}}
		x.all[head.Session] = c
	}
	if c.seen = true; c.liveHead != head && (head.Seq > 0 || head.Removed) {
		x.n++
		c.n, c.liveHead = x.n, head
	}
}

// after are the heads that changed after a number, in the order of the changes; changed is closed
// at the next change.
func (x *heads) after(n int64) (found []changedHead, changed <-chan struct{}, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.all {
		if c.n > n {
			found = append(found, *c)
		}
	}
	slices.SortFunc(found, func(a, b changedHead) int { return int(a.n - b.n) })
	return found, x.changed, x.err
}

// newest is the number of the newest change.
func (x *heads) newest(ctx context.Context) (int64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-x.listed:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n, nil
}

// now is the value of the parameter after of a stream without the heads that are known.
const now = "now"

// apiLiveList sends the heads of all sessions, and then each head that changes. A stream
// with the id of a frame of this start continues after the frame.
func (h *Handler) apiLiveList(w http.ResponseWriter, r *http.Request) error {
	last, n := r.Header.Get("Last-Event-ID"), int64(0)
	if _, err := fmt.Sscanf(last, h.heads.name+"-%d", &n); err != nil {
		n = 0
	}
	after := r.URL.Query().Get("after")
	if after != "" && after != now {
		return badRequest{fmt.Sprintf("after is %s, not %q", now, after), "leave it out, and send Last-Event-ID to go on"}
	}
	leaveStreams, err := h.enterStream()
	if err != nil {
		return err
	}
	defer leaveStreams()
	leave := h.heads.join()
	defer leave()
	if after == now && n == 0 {
		if n, err = h.heads.newest(r.Context()); err != nil {
			return err
		}
	}
	s, ctx := httpapi.NewStream(w, r)
	defer s.End()
	for {
		found, changed, err := h.heads.after(n)
		if err != nil {
			s.Send(httpapi.Frame{Event: "problem", Data: encoded(problemOf(err))})
			return nil
		}
		for _, c := range found {
			if n = c.n; !s.Send(httpapi.Frame{ID: fmt.Sprintf("%s-%d", h.heads.name, n), Data: encoded(c.liveHead)}) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
