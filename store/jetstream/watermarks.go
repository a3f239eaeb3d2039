package jetstream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// watermarkTime and watermarkAppends bound the age of the watermarks of an open store: a
	// store writes them a second after an append, or after 100 appends.
	watermarkTime    = time.Second
	watermarkAppends = 100
	// maxUnmarked bounds the sessions that wait for a watermark while the control stream
	// cannot be written.
	maxUnmarked = maxHeads
)

// watermarks writes the watermarks of the sessions to which this store appends, after the
// appends. A watermark that cannot be written fails no append: the store tries again.
type watermarks struct {
	store *Store

	mu      sync.Mutex
	ends    map[string]ending // of the sessions whose watermark is due
	appends int               // since the last writing began
	due     *time.Timer       // nil if none runs
	closed  bool

	writing sync.Mutex
}

// ending is the newest frame of a session that this store has appended.
type ending struct {
	stream *stream
	watermark
}

// note makes the watermark of a session due, after an append.
func (ws *watermarks) note(st *stream, session string, f *frame) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.add(session, ending{st, f.ending()})
	if ws.appends++; ws.appends == watermarkAppends {
		ws.appends = 0
		go ws.flush(ws.store.lifetime)
	}
}

// add makes a watermark due, unless a newer one is. The caller has mu.
func (ws *watermarks) add(session string, e ending) {
	if ws.ends == nil {
		ws.ends = make(map[string]ending)
	}
	if due, ok := ws.ends[session]; ok && due.at > e.at || !ok && len(ws.ends) >= maxUnmarked {
		return
	}
	ws.ends[session] = e
	if ws.due == nil && !ws.closed {
		ws.due = time.AfterFunc(watermarkTime, func() { ws.flush(ws.store.lifetime) })
	}
}

// forget drops a due watermark.
func (ws *watermarks) forget(session string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.ends, session)
}

// flush writes the watermarks that are due. It keeps those that it cannot write.
func (ws *watermarks) flush(ctx context.Context) {
	ws.writing.Lock()
	defer ws.writing.Unlock()
	ws.mu.Lock()
	ends := ws.ends
	ws.ends, ws.appends = nil, 0
	if ws.due != nil {
		ws.due.Stop()
		ws.due = nil
	}
	ws.mu.Unlock()
	for some := range slices.Chunk(slices.Sorted(maps.Keys(ends)), watermarkAppends) {
		if err := ws.write(ctx, some, ends); err == nil {
			continue
		}
		ws.mu.Lock()
		for _, session := range some {
			ws.add(session, ends[session])
		}
		ws.mu.Unlock()
	}
}

// close writes the watermarks that are due for the last time.
func (ws *watermarks) close() {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	ws.mu.Lock()
	ws.closed = true
	ws.mu.Unlock()
	ws.flush(ctx)
}

// errBusyWatermarks: other stores write the same watermarks all the time.
var errBusyWatermarks = errors.New("other stores write the same watermarks")

// write writes the watermarks of sessions in one batch, and the newest ones of their shards.
// Another store may have written newer ones. A watermark replaces an older one only.
func (ws *watermarks) write(ctx context.Context, sessions []string, ends map[string]ending) error {
	for range maxTries {
		due := markingOf(sessions, ends)
		if err := due.compare(ctx); err != nil || len(due.batch) == 0 {
			return err
		}
		last, err := due.control.publishAll(ctx, due.batch) // of consecutive messages
		if err == nil {
			due.stored(ctx, last)
			return nil
		}
		if !isCode(err, codeWrongSequence) {
			return err
		}
	}
	return errBusyWatermarks
}

// marking is one write of watermarks.
type marking struct {
	control  *stream
	subjects []string // of the watermarks that are due
	due      map[string]watermark
	names    map[string]string  // the sessions by subject
	shards   map[string]*stream // by subject of their newest watermarks
	batch    []*nats.Msg        // of the watermarks that are newer than the stored ones
}

// markingOf collects the watermarks of sessions, and the newest ones of their shards.
func markingOf(sessions []string, ends map[string]ending) *marking {
	m := &marking{control: ends[sessions[0]].stream.control, due: map[string]watermark{}, names: map[string]string{}, shards: map[string]*stream{}}
	for _, session := range sessions {
		e := ends[session]
		subject := e.stream.watermarkOf(encodeName(session))
		m.subjects = append(m.subjects, subject)
		m.due[subject], m.names[subject] = e.watermark, session
	}
	for _, session := range sessions {
		e := ends[session]
		subject := e.stream.watermarkOf()
		if newest, ok := m.due[subject]; !ok || newest.at < e.at {
			if m.due[subject], m.shards[subject] = e.watermark, e.stream; !ok {
				m.subjects = append(m.subjects, subject)
			}
		}
	}
	return m
}

// compare reads the stored watermarks, and makes the batch of the newer ones.
func (m *marking) compare(ctx context.Context) error {
	stored, err := m.control.lastOf(ctx, m.subjects, 0)
	if err != nil {
		return err
	}
	for _, subject := range m.subjects {
		next := m.due[subject]
		if old := stored[subject]; old != nil {
			w, err := parseWatermark(old)
			if err == nil && w.at >= next.at {
				continue
			}
			next.number = old.at
		}
		m.batch = append(m.batch, next.message(subject))
	}
	return nil
}

// stored remembers the sequences of the watermarks; last is the one of the last message.
func (m *marking) stored(ctx context.Context, last uint64) {
	for i, sent := range m.batch {
		number := last - uint64(len(m.batch)-1-i)
		if session, ok := m.names[sent.Subject]; ok {
			m.control.store.heads.mark(session, number)
		} else {
			m.shards[sent.Subject].countersign(ctx, number)
		}
	}
}
