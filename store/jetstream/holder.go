package jetstream

import (
	"context"
	"encoding/base64"
	"errors"
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

// close ends the leases. What it cannot remove in time has no holder.
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
