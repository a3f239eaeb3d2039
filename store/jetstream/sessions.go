package jetstream

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// maxSubjects is the number of subjects in one answer of the server.
const maxSubjects = 100_000

// subjects returns the subjects of the stream that match a filter, as of now.
func (st *stream) subjects(ctx context.Context, filter string) (all []string, err error) {
	for {
		info, err := st.currentInfo(ctx, &infoRequest{Subjects: filter, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		all = slices.AppendSeq(all, maps.Keys(info.State.Subjects))
		if len(info.State.Subjects) < maxSubjects {
			return all, nil
		}
	}
}

// listed is a session in the listing.
type listed struct {
	session string
	stream  *stream
	subject string
	tip     tip
}

// pagesInFlight is the number of pages of a listing that are read at a time.
const pagesInFlight = 3

// tips yields the sessions of a part with their last messages, ordered by id. It reads
// pages while the caller consumes the page before.
func (l *layout) tips(ctx context.Context, part eventlog.Part) iter.Seq2[listed, error] {
	return l.tipsOf(ctx, func(st *stream) ([]string, error) { return st.inPart(ctx, part) })
}

// tipsOf is tips of the sessions that find finds in the shards.
func (l *layout) tipsOf(ctx context.Context, find func(st *stream) ([]string, error)) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		all, newest, err := l.list(ctx, find)
		if err != nil {
			yield(listed{}, err)
			return
		}
		pages := slices.Collect(slices.Chunk(all, maxMulti))
		results := make([]chan error, len(pages))
		for i, page := range pages {
			for k := i; k < min(i+pagesInFlight, len(pages)); k++ {
				if results[k] == nil {
					results[k] = make(chan error, 1)
					go func() { results[k] <- l.fillTips(ctx, pages[k], newest) }()
				}
			}
			if err := <-results[i]; err != nil {
				yield(listed{}, err)
				return
			}
			for _, one := range page {
				if one.tip.at > 0 && (one.tip.frame != nil || one.tip.err != nil) && !yield(one, nil) {
					return
				}
			}
		}
	}
}

// inPart lists the sessions of a part, also removed ones.
func (st *stream) inPart(ctx context.Context, part eventlog.Part) (sessions []string, err error) {
	subjects, err := st.subjects(ctx, st.subject("session", "*", framesSubject))
	for _, subject := range subjects {
		if session, ok := st.sessionOf(subject); ok && part.Has(session) {
			sessions = append(sessions, session)
		}
	}
	return sessions, err
}

// list returns the sessions that find finds in the shards, ordered by id, and the newest
// sequence of each shard at the time.
func (l *layout) list(ctx context.Context, find func(st *stream) ([]string, error)) (all []listed, newest map[*stream]uint64, err error) {
	newest = make(map[*stream]uint64)
	for _, st := range l.shards {
		if newest[st], err = st.newest(ctx); err != nil {
			return nil, nil, err
		}
		sessions, err := find(st)
		if err != nil {
			return nil, nil, err
		}
		for _, session := range sessions {
			all = append(all, listed{session: session, stream: st, subject: st.of(session, framesSubject)})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.session, b.session) })
	return all, newest, nil
}

// fillTips reads the last messages of a page.
func (l *layout) fillTips(ctx context.Context, page []listed, newest map[*stream]uint64) error {
	return parallel(l.shards, func(st *stream) error {
		var subjects []string
		for i := range page {
			if page[i].stream == st {
				subjects = append(subjects, page[i].subject)
			}
		}
		found, err := st.lastOf(ctx, subjects, newest[st])
		for i := range page {
			if m := found[page[i].subject]; err == nil && page[i].stream == st && m != nil {
				page[i].tip = st.tipOf(page[i].session, m)
			}
		}
		return err
	})
}

// Sessions implements eventlog.Store. Ids are compared byte by byte.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.List(ctx, eventlog.Part{})
}

// List implements eventlog.Lister. It asks for the names of all sessions, and reads those
// of the part.
func (s *Store) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		l, err := s.reading(ctx)
		if err != nil {
			yield(eventlog.SessionInfo{}, err)
		}
		if l != nil && err == nil {
			s.rows(ctx, l, l.tips(ctx, part), yield)
		}
	}
}

// rows yields the rows of sessions.
func (s *Store) rows(ctx context.Context, l *layout, tips iter.Seq2[listed, error], yield func(eventlog.SessionInfo, error) bool) {
	page := make([]listed, 0, maxMulti)
	flush := func() bool {
		for _, info := range l.infos(ctx, page) {
			if err := s.usable(ctx); err != nil {
				yield(eventlog.SessionInfo{}, err)
				return false
			}
			if errors.Is(info.Err, eventlog.ErrNotFound) {
				continue // removed since the page was read
			}
			if !yield(info, nil) {
				return false
			}
		}
		page = page[:0]
		return true
	}
	for one, err := range tips {
		if err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		if page = append(page, one); len(page) == maxMulti && !flush() {
			return
		}
	}
	flush()
}

// infos describes the sessions of a page.
func (l *layout) infos(ctx context.Context, page []listed) []eventlog.SessionInfo {
	infos := make([]eventlog.SessionInfo, len(page))
	starts := l.starts(ctx, page)
	var further []int
	for i := range page {
		infos[i].ID = page[i].session
		if !page[i].describe(&infos[i], starts[page[i].stream]) {
			further = append(further, i)
		}
	}
	_ = parallel(further, func(i int) error {
		page[i].readEnds(ctx, &infos[i])
		return nil
	})
	return infos
}

// starts reads the first messages of the sessions of a page, by shard and sequence, as far
// as the last messages name them.
func (l *layout) starts(ctx context.Context, page []listed) map[*stream]map[uint64]*message {
	seqs := make(map[*stream][]uint64)
	for i := range page {
		if f := page[i].tip.frame; page[i].tip.err == nil && f.start.at > 0 && f.index == 0 {
			seqs[page[i].stream] = append(seqs[page[i].stream], f.start.at)
		}
	}
	var mu sync.Mutex
	starts := make(map[*stream]map[uint64]*message)
	_ = parallel(slices.Collect(maps.Keys(seqs)), func(st *stream) error {
		found, err := st.several(ctx, seqs[st])
		mu.Lock()
		defer mu.Unlock()
		starts[st] = found
		return err // without its first message, a session is read by readEnds
	})
	return starts
}

// describe describes a session if its last message, and its first one, are read and have
// its first and its last event. Otherwise it returns false.
func (one *listed) describe(info *eventlog.SessionInfo, starts map[uint64]*message) bool {
	f := one.tip.frame
	if info.Err = one.tip.err; info.Err != nil {
		return true
	}
	info.Bytes = f.bytes
	first := f
	if m := starts[f.start.at]; m != nil {
		first, info.Err = one.stream.frameOf(one.session, f.start, m)
	} else if f.start.at > 0 {
		return false
	}
	if f.count == 0 || first.count == 0 || info.Err != nil {
		return info.Err != nil
	}
	if info.First, info.Err = first.event(one.session, one.stream.place(first.at), first.first); info.Err != nil {
		return true
	}
	if info.Last = info.First; f.head().Seq > first.first {
		info.Last, info.Err = f.event(one.session, one.stream.place(f.at), f.head().Seq)
	}
	return true
}

// readEnds reads the first and the last event of a session. If it was rewritten, or removed,
// since the page was read, readEnds begins with a current view. A session that is removed is
// ErrNotFound.
func (one *listed) readEnds(ctx context.Context, info *eventlog.SessionInfo) {
	v := &view{stream: one.stream, session: one.session, tip: one.tip.frame}
	v.index, info.Err = one.stream.index(ctx, one.session, v.tip.index)
	if info.Err == nil {
		info.Err = v.ends(ctx, info)
	}
	for errors.Is(info.Err, errIndex) || errors.Is(info.Err, eventlog.ErrNotFound) {
		if v, info.Err = one.stream.view(ctx, one.session); info.Err != nil {
			return
		}
		info.Bytes, info.Err = v.tip.bytes, v.ends(ctx, info)
	}
}

// ends reads the first and the last event of the view.
func (v *view) ends(ctx context.Context, info *eventlog.SessionInfo) (err error) {
	if info.First, err = v.event(ctx, v.first()); err == nil {
		info.Last, err = v.event(ctx, v.tip.head().Seq)
	}
	return err
}

// event reads one event.
func (v *view) event(ctx context.Context, seq int64) (event.Event, error) {
	c := cursor{view: v, from: seq, to: seq, page: 1}
	if start := v.tip.beginning(); seq == start.first {
		c.pos = start.at
	}
	frames, err := c.fetchAt(ctx)
	if err != nil {
		return event.Event{}, err
	}
	f := frames[len(frames)-1]
	return f.event(v.session, v.stream.place(f.at), seq)
}

// fetchAt reads the frame of the cursor's event by its sequence, if it is known.
func (c *cursor) fetchAt(ctx context.Context) ([]*frame, error) {
	if c.pos > 0 && c.index.find(c.from) == nil && c.from < c.tip.first {
		f, err := c.frameAt(ctx, place{c.from, c.pos})
		if f != nil || err != nil {
			return []*frame{f}, err
		}
	}
	return c.fetchAll(ctx, c.tip)
}
