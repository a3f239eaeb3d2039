package jetstream

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// holder is the message that keeps leases.
type holder struct {
	record
	id     string
	leases map[string]*lease // by name, with those that are being taken or released
}

// holding returns the holder of the store, and makes it if there is none.
func (ls *leases) holding(ctx context.Context, y *layout) (*holder, error) {
	select {
	case ls.making <- struct{}{}:
		defer func() { <-ls.making }()
	case <-ls.store.lifetime.Done():
		return nil, eventlog.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h := ls.current(); h != nil && !h.isExpired() {
		return h, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ls.store.lifetime, stop)()
	h := &holder{id: newID(), leases: make(map[string]*lease)}
	h.check = func(ctx context.Context) { ls.check(ctx, h) }
	if err := h.record.store(ctx, y.control, y.control.subject(holderSubject, h.id)); err != nil {
		return nil, ls.store.failure(err)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.holder = h
	go func() {
		select {
		case <-h.expired:
			ls.endAll(h)
			h.remove(afterAll) // a renewal may have been stored without an answer
		case <-h.ended:
		}
	}()
	return h, nil
}

func (ls *leases) current() *holder {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.holder
}

// check ends the leases whose messages are gone: an operator removed them, or a server lost
// them with its power.
func (ls *leases) check(ctx context.Context, h *holder) {
	held, since := ls.held(h)
	found, err := h.stream.lastOf(ctx, slices.Collect(maps.Keys(held)), max(since, h.at))
	if err != nil {
		return // the next renewal checks again
	}
	for subject, l := range held {
		if m := found[subject]; m == nil || string(m.body) != l.body {
			l.end()
			ls.remove(l)
		}
	}
}

// held returns the leases whose messages are stored, by subject, and the sequence of the
// newest of these messages.
func (ls *leases) held(h *holder) (held map[string]*lease, newest uint64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	held = make(map[string]*lease, len(h.leases))
	for _, l := range h.leases {
		if l.isHeld {
			held[l.subject()] = l
			newest = max(newest, l.at)
		}
	}
	return held, newest
}

// endAll ends the leases of a holder in this process, and returns them.
func (ls *leases) endAll(h *holder) (ended []*lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range h.leases {
		l.end()
		ended = append(ended, l)
	}
	return ended
}

// stop ends the leases in this process. The holder is renewed no more.
func (ls *leases) stop() {
	if h := ls.current(); h != nil {
		ls.endAll(h)
	}
}

// close ends the leases and removes them. What it cannot remove in time is held until the
// message of the holder expires.
func (ls *leases) close() {
	h := ls.current()
	if h == nil {
		return
	}
	ended := ls.endAll(h)
	h.end()
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	_ = parallel(ended, func(l *lease) error { return l.erase(ctx) })
}

// holderOf returns the id of the holder of a lease.
func (st *stream) holderOf(m *message) (id string, err error) {
	id, _, _ = strings.Cut(string(m.body), ".")
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(id); err != nil || len(raw) != 16 {
		return "", &eventlog.CorruptError{Path: st.place(m.at), Offset: -1, Cause: errors.New("a lease names no holder")}
	}
	return id, nil
}

// isHolder reports whether a holder has its message.
func (st *stream) isHolder(ctx context.Context, id string) (bool, error) {
	m, err := st.last(ctx, st.subject(holderSubject, id))
	return m != nil, err
}

// unheld returns the messages of leases whose holders are gone.
func (l *layout) unheld(ctx context.Context) (all []*message, err error) {
	st := l.control
	subjects, err := st.subjects(ctx, st.subject(leaseSubject, "*"))
	if err != nil || len(subjects) == 0 {
		return nil, err
	}
	found, err := st.lastOf(ctx, subjects, st.reached.Load())
	if err != nil {
		return nil, err
	}
	alive := make(map[string]bool)
	for _, m := range found {
		id, err := st.holderOf(m)
		known, ok := alive[id]
		if err == nil && !ok {
			if known, err = st.isHolder(ctx, id); err != nil {
				return nil, err
			}
			alive[id] = known
		}
		if !known {
			all = append(all, m)
		}
	}
	return all, nil
}
