package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/eventlog"
)

var modelCases = []testCase{
	{
		name:        "random histories",
		explanation: "Whatever is appended, moved, forked, redacted, retried and removed, in any order and through logs that remember little, is what a plain model in memory says.",
		needs:       []Need{Blobs, Rewriter, Remover},
		run: func(t *env) {
			for seed := range uint64(modelRuns) {
				newWalk(t, seed, t.log()).run(modelSteps)
				t.clear()
			}
		},
	},
	{
		name:        "random histories across handles",
		explanation: "The same holds when two handles take turns.",
		needs:       []Need{Blobs, Rewriter, Remover, Handles},
		run: func(t *env) {
			for seed := range uint64(modelRuns) {
				newWalk(t, seed, t.log(), t.over(t.open(), eventlog.Options{SpillOver: 150, HotSessions: 2})).run(modelSteps)
				t.clear()
			}
		},
	},
}

const modelRuns, modelSteps = 3, 60

// modelEvent is what the model knows of an event.
type modelEvent struct {
	eventlog.Event
	session string
	results []string
	calls   []string
	move    int64 // where a head_moved goes; -1 for other events
	more    int
}

// modelSession is a session of the model. Events of a parent do not change, but
// for redaction, which changes what the pointers lead to.
type modelSession struct {
	id     string
	parent *modelSession
	shared []*modelEvent // the lineage up to the fork point
	own    []*modelEvent
	tries  []modelTry
}

// modelTry is an append that was accepted.
type modelTry struct {
	before, after eventlog.Head
	events        []eventlog.Event
}

func (s *modelSession) lineage() []*modelEvent { return slices.Concat(s.shared, s.own) }

func (s *modelSession) last() int64 { return int64(len(s.shared) + len(s.own)) }

// path is the chain from the newest event back, oldest first.
func modelPath(lineage []*modelEvent) (path []*modelEvent) {
	for at := int64(len(lineage)); at > 0; {
		e := lineage[at-1]
		path = append(path, e)
		if at--; e.move >= 0 {
			at = e.move
		}
	}
	slices.Reverse(path)
	return path
}

func modelPending(lineage []*modelEvent) map[string]bool {
	pending := map[string]bool{}
	for _, e := range modelPath(lineage) {
		for _, id := range e.results {
			delete(pending, id)
		}
		for _, id := range e.calls {
			pending[id] = true
		}
	}
	return pending
}

// walk is a random walk over logs of one store and the model of it.
type walk struct {
	*env
	*rand.Rand
	seed     uint64
	logs     []*eventlog.Log
	sessions map[string]*modelSession
	made     int
	step     int
}

func newWalk(t *env, seed uint64, logs ...*eventlog.Log) *walk {
	return &walk{env: t, Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, logs: logs, sessions: map[string]*modelSession{}}
}

// clear removes what a walk left.
func (t *env) clear() {
	t.Helper()
	for range 100 {
		infos, err := collect(t.log().Sessions(t.ctx))
		t.must(err)
		if len(infos) == 0 {
			return
		}
		for _, info := range infos {
			if err := t.log().Remove(t.ctx, info.ID); !errors.Is(err, eventlog.ErrInUse) {
				t.must(err)
			}
		}
	}
	t.Fatalf("sessions that cannot be removed")
}

func (w *walk) run(steps int) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Logf("seed %d, step %d", w.seed, w.step)
		}
	}()
	for w.step = range steps {
		w.do()
		if w.step%10 == 9 {
			w.compareAll()
		}
		if w.Failed() {
			return
		}
	}
	w.compareAll()
}

func (w *walk) do() {
	w.Helper()
	s := w.pick()
	switch n := w.IntN(20); {
	case s == nil || n == 0:
		w.append(&modelSession{id: w.newID()})
	case n <= 12:
		w.append(s)
	case n == 13:
		w.retry(s)
	case n <= 15:
		w.fork(s)
	case n == 16:
		w.redact(s)
	case n == 17:
		w.remove(s)
	default:
		w.compare(s)
	}
}

func (w *walk) log() *eventlog.Log { return w.logs[w.IntN(len(w.logs))] }

func (w *walk) newID() string {
	w.made++
	return fmt.Sprintf("s%d", w.made)
}

// pick is any session; nil if there is none.
func (w *walk) pick() *modelSession {
	if len(w.sessions) == 0 {
		return nil
	}
	ids := w.ids()
	return w.sessions[ids[w.IntN(len(ids))]]
}

func (w *walk) ids() (ids []string) {
	for id := range w.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// random makes an event that may or may not be allowed.
func (w *walk) random(last int64) *modelEvent {
	id := fmt.Sprintf("c%d", w.IntN(4))
	switch w.IntN(8) {
	case 0, 1:
		return &modelEvent{Event: calls(id), calls: []string{id}, move: -1}
	case 2, 3:
		return &modelEvent{Event: result(id), results: []string{id}, move: -1}
	case 4:
		to := w.Int64N(last + 1)
		if w.IntN(8) == 0 {
			to = last + 1 + w.Int64N(2)
		}
		return &modelEvent{Event: moved(to), move: to}
	case 5:
		return &modelEvent{Event: event("test:big", `"`+text(fmt.Sprint(w.IntN(5)), 300)+`"`), move: -1}
	default:
		return &modelEvent{Event: noted(w.IntN(100), `{"m":1}`), move: -1}
	}
}

// append appends up to four events under some expectation.
func (w *walk) append(s *modelSession) {
	w.Helper()
	lineage, events := s.lineage(), []eventlog.Event(nil)
	fresh := []*modelEvent{}
	var want error
	for range w.IntN(4) * w.IntN(2) {
		e := w.random(int64(len(lineage)))
		want = modelRefuses(want, lineage, e)
		lineage, fresh, events = append(lineage, e), append(fresh, e), append(events, e.Event)
	}
	e := w.random(int64(len(lineage)))
	if len(s.own) > 0 && w.IntN(15) == 0 {
		e = &modelEvent{Event: event("test:other", `{}`), move: -1}
		e.ID = s.own[max(0, len(s.own)-1-w.IntN(8))].ID
		if want == nil {
			want = eventlog.ErrConflict
		}
	}
	want = modelRefuses(want, lineage, e)
	fresh, events = append(fresh, e), append(events, e.Event)
	before := w.headOf(s)
	x := eventlog.Any
	switch w.IntN(6) {
	case 0, 1:
		x = eventlog.At(before)
	case 2:
		if len(s.own) > 0 {
			x, want = eventlog.New, eventlog.ErrConflict
		}
	case 3:
		if len(s.tries) > 0 {
			x, want = eventlog.At(s.tries[w.IntN(len(s.tries))].before), eventlog.ErrConflict
			if x == eventlog.At(before) {
				return
			}
		}
	}
	w.submit(s, x, want, fresh, events)
}

// modelRefuses says which rule e breaks behind a lineage, unless an event
// before it broke one: events are judged in order.
func modelRefuses(before error, lineage []*modelEvent, e *modelEvent) error {
	if before != nil {
		return before
	}
	if e.move > int64(len(lineage)) {
		return eventlog.ErrInvalidTree
	}
	pending := modelPending(lineage)
	for _, id := range e.results {
		if !pending[id] {
			return eventlog.ErrInvalidResult
		}
	}
	return nil
}

// submit appends and takes what was accepted into the model.
func (w *walk) submit(s *modelSession, x eventlog.Expect, want error, fresh []*modelEvent, events []eventlog.Event) {
	w.Helper()
	before := w.headOf(s)
	head, err := w.log().Append(w.ctx, s.id, x, events...)
	if !errors.Is(err, want) || want == nil && err != nil {
		w.Fatalf("append %d events to %q: got error %v, want %v", len(events), s.id, err, want)
	}
	if err != nil {
		return
	}
	if head.Seq != s.last()+int64(len(fresh)) {
		w.Fatalf("append %d events to %q at %d: the head is %v", len(events), s.id, s.last(), head)
	}
	for i, e := range fresh {
		e.session, e.more = s.id, len(fresh)-1-i
		s.own = append(s.own, e)
	}
	w.sessions[s.id] = s
	s.tries = append(s.tries, modelTry{before, head, events})
}

// headOf is the session's head, which must be the model's.
func (w *walk) headOf(s *modelSession) eventlog.Head {
	w.Helper()
	head, err := w.log().Head(w.ctx, s.id)
	if len(s.own) == 0 {
		w.wantErr(eventlog.ErrNotFound, err)
		return head
	}
	w.must(err)
	w.same("head of "+s.id, s.last(), head.Seq)
	return head
}

// retry repeats an append at its own head: it stands, whatever came since.
func (w *walk) retry(s *modelSession) {
	w.Helper()
	if len(s.tries) == 0 {
		return
	}
	try := s.tries[w.IntN(len(s.tries))]
	x := eventlog.At(try.before)
	if w.IntN(3) == 0 {
		x = eventlog.AnyAfter(try.before)
	}
	head, err := w.log().Append(w.ctx, s.id, x, try.events...)
	w.must(err)
	w.same("head of a retry", try.after, head)
	w.headOf(s)
}

// fork forks at any seq, which may lie inside an append.
func (w *walk) fork(s *modelSession) {
	w.Helper()
	lineage := s.lineage()
	at := lineage[w.IntN(len(lineage))]
	seq := int64(slices.Index(lineage, at)) + 1
	stored, err := w.log().Event(w.ctx, s.id, seq)
	w.must(err)
	var want error
	if at.more > 0 {
		want = eventlog.ErrInvalidTree
	}
	child := &modelSession{id: w.newID(), parent: s, shared: lineage[:seq:seq]}
	e := &modelEvent{Event: forkOf(s.id, &stored), move: -1}
	fresh, events := []*modelEvent{e}, []eventlog.Event{e.Event}
	for range w.IntN(2) {
		more := w.random(seq + 1)
		want = modelRefuses(want, append(slices.Clone(child.shared), e), more)
		fresh, events = append(fresh, more), append(events, more.Event)
	}
	w.submit(child, eventlog.New, want, fresh, events)
}

// redact erases an event, if its type and place allow it.
func (w *walk) redact(s *modelSession) {
	w.Helper()
	seq := 1 + w.Int64N(s.last())
	l := w.log()
	_, err := l.Redact(w.ctx, s.id, "model", seq)
	if seq <= int64(len(s.shared)) {
		w.wantErr(eventlog.ErrInvalidTree, err)
		return
	}
	e := s.own[seq-1-int64(len(s.shared))]
	if e.Type == eventlog.HeadMoved || e.Type == eventlog.SessionForked || e.Type == eventlog.Redacted {
		w.wantErr(eventlog.ErrInvalidType, err)
		return
	}
	w.must(err)
	if e.Data == nil {
		w.headOf(s)
		return // it was redacted already
	}
	e.Data, e.Metadata = nil, nil
	note, err := l.Event(w.ctx, s.id, s.last()+1)
	w.must(err)
	w.same("type of the note", eventlog.Redacted, note.Type)
	s.own = append(s.own, &modelEvent{Event: note, session: s.id, move: -1})
}

// remove removes a session unless forks need it.
func (w *walk) remove(s *modelSession) {
	w.Helper()
	err := w.log().Remove(w.ctx, s.id)
	for _, other := range w.sessions {
		if other.parent == s {
			w.wantErr(eventlog.ErrInUse, err)
			return
		}
	}
	w.must(err)
	delete(w.sessions, s.id)
	if w.IntN(2) == 0 { // create it anew
		w.append(&modelSession{id: s.id})
	}
}

// compareAll compares every session, and that there are no others.
func (w *walk) compareAll() {
	w.Helper()
	infos, err := collect(w.log().Sessions(w.ctx))
	w.must(err)
	var got []string
	for _, info := range infos {
		got = append(got, info.ID)
	}
	slices.Sort(got)
	w.same("sessions", w.ids(), got)
	for _, id := range w.ids() {
		w.compare(w.sessions[id])
		w.sound(w.log(), id)
	}
}

// compare compares what a log reads of a session with the model.
func (w *walk) compare(s *modelSession) {
	w.Helper()
	lineage := s.lineage()
	last := s.last()
	l := w.log()
	w.ranges(s, "all", eventlog.All, 1, last)
	from, to := w.Int64N(last+3), w.Int64N(last+3)
	w.ranges(s, fmt.Sprintf("from %d", from), eventlog.From(from), from, last)
	if to > 0 {
		w.ranges(s, fmt.Sprintf("from %d to %d", from, to), eventlog.Between(from, to), from, to)
	}
	n := w.Int64N(last + 3)
	w.ranges(s, fmt.Sprintf("last %d", n), eventlog.Last(int(n)), last-n+1, last)
	path, err := collect(l.ActivePath(w.ctx, s.id))
	w.must(err)
	w.same("active path of "+s.id, renderModel(modelPath(lineage)), renderEvents(path))
	w.until(s, lineage[w.IntN(len(lineage))])
}

// ranges compares a range with the lineage's events from..to, in both
// directions, with the shared prefix and without.
func (w *walk) ranges(s *modelSession, name string, r eventlog.Range, from, to int64) {
	w.Helper()
	lineage := s.lineage()
	from, to = max(from, 1), min(to, s.last())
	want, own := []*modelEvent{}, []*modelEvent{}
	for seq := from; seq <= to; seq++ {
		want = append(want, lineage[seq-1])
		if seq > int64(len(s.shared)) {
			own = append(own, lineage[seq-1])
		}
	}
	name = s.id + " " + name
	w.same(name, renderModel(want), renderEvents(w.read(w.log(), s.id, r)))
	w.same(name+", own", renderModel(own), renderEvents(w.read(w.log(), s.id, r.Own())))
	slices.Reverse(want)
	slices.Reverse(own)
	w.same(name+", backward", renderModel(want), renderEvents(w.read(w.log(), s.id, r.Backward())))
	w.same(name+", own, backward", renderModel(own), renderEvents(w.read(w.log(), s.id, r.Own().Backward())))
}

func (w *walk) until(s *modelSession, e *modelEvent) {
	w.Helper()
	lineage := s.lineage()
	at := slices.Index(lineage, e)
	w.same(s.id+" until", renderModel(lineage[:at+1]), renderEvents(w.read(w.log(), s.id, eventlog.Until(e.ID))))
	back := slices.Clone(lineage[at:])
	slices.Reverse(back)
	w.same(s.id+" back until", renderModel(back), renderEvents(w.read(w.log(), s.id, eventlog.Until(e.ID).Backward())))
	_, err := collect(w.log().Read(w.ctx, s.id, eventlog.Until(ulid.ULID{1})))
	w.wantErr(eventlog.ErrEventNotFound, err)
}

func renderModel(events []*modelEvent) []string {
	lines := []string{}
	for _, e := range events {
		lines = append(lines, renderEvent(e.session, &e.Event))
	}
	return lines
}

func renderEvents(events []eventlog.Event) []string {
	lines := []string{}
	for i := range events {
		lines = append(lines, renderEvent(events[i].SessionID, &events[i]))
	}
	return lines
}

func renderEvent(session string, e *eventlog.Event) string {
	return fmt.Sprintf("%s %s %s %s %s", session, e.ID, e.Type, e.Metadata, e.Data)
}
