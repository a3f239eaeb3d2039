package logtest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// request is an append before it is tried.
type request struct {
	expect eventlog.Expect
	fresh  []*modelEvent
	splits []int // start indexes of the appends of AppendEach, after the first
	want   error // the expected error
}

func (r *request) events() (events []event.Event) {
	for _, e := range r.fresh {
		events = append(events, e.Event)
	}
	return events
}

// appends returns the events of each append.
func (r *request) appends() (all [][]event.Event) {
	events, from := r.events(), 0
	for _, at := range append(r.splits, len(events)) {
		all = append(all, events[from:at])
		from = at
	}
	return all
}

// append appends up to four events with a random expectation.
func (w *walk) append(s *modelSession) {
	w.Helper()
	req := request{}
	lineage := s.lineage()
	for i := range 1 + w.drawBelow(4, "events") {
		e := w.drawEvent(int64(len(lineage)))
		if len(s.own) > 0 && w.drawBelow(24, "taken id") == 23 {
			e = &modelEvent{Event: suite.NewEvent("test:other", `{}`), move: -1}
			e.ID = s.own[max(0, len(s.own)-1-w.drawBelow(8, "back"))].ID
			if req.want == nil {
				req.want = eventlog.ErrConflict
			}
		}
		req.want = modelError(req.want, lineage, e)
		if i > 0 && w.drawBelow(4, "split") == 3 {
			req.splits = append(req.splits, i)
		}
		lineage, req.fresh = append(lineage, e), append(req.fresh, e)
	}
	if w.expects(s, &req) {
		w.submit(s, &req)
	}
}

// expects draws the expectation of the append. It returns false if the outcome is not
// determined.
func (w *walk) expects(s *modelSession, req *request) bool {
	w.Helper()
	wrong := s.head
	wrong.Hash[7]++
	switch w.drawBelow(8, "expect") {
	case 0, 1:
		req.expect = eventlog.Any()
	case 2, 3:
		req.expect = eventlog.At(s.head)
	case 4:
		req.expect = eventlog.Any().After(s.head)
	case 5:
		if req.expect = eventlog.New(); len(s.own) > 0 {
			req.want = eventlog.ErrConflict
		}
	case 6:
		wrong.Seq = max(1, wrong.Seq-int64(w.drawBelow(3, "earlier")))
		if req.expect, req.want = eventlog.At(wrong), eventlog.ErrConflict; len(s.own) == 0 {
			req.want = eventlog.ErrNotFound
		}
	default:
		if len(s.tries) == 0 {
			return false
		}
		before := s.tries[w.drawBelow(len(s.tries), "try")].before
		if before == s.head {
			return false
		}
		req.expect, req.want = eventlog.At(before), eventlog.ErrConflict
	}
	if w.drawBelow(4, "durable") == 3 {
		req.expect = req.expect.Durable()
	}
	return true
}

// submit appends and adds accepted events to the model.
func (w *walk) submit(s *modelSession, req *request) {
	w.Helper()
	var head event.Head
	var err error
	if l := w.log(); req.splits == nil {
		head, err = l.Append(w.Ctx, s.id, req.expect, req.events()...)
	} else {
		head, err = l.AppendEach(w.Ctx, s.id, req.expect, req.appends()...)
	}
	if !errors.Is(err, req.want) || req.want == nil && err != nil {
		w.Fatalf("append %d events to %q: got error %v, want %v", len(req.fresh), s.id, err, req.want)
	}
	if err != nil {
		return
	}
	if head.Seq != s.last()+int64(len(req.fresh)) {
		w.Fatalf("append %d events to %q at %d: the head is %v", len(req.fresh), s.id, s.last(), head)
	}
	i := 0
	for _, one := range req.appends() {
		for n := range one {
			req.fresh[i].more = len(one) - 1 - n
			i++
		}
	}
	s.tries = append(s.tries, modelAppend{s.head, head, req.events()})
	s.accept(req.fresh, head)
	w.sessions[s.id] = s
}

// retry repeats an append at its own head. It succeeds, even after later appends. With
// other content it is a conflict.
func (w *walk) retry(s *modelSession) {
	w.Helper()
	at := w.drawBelow(len(s.tries), "try")
	try := s.tries[at]
	x := eventlog.At(try.before)
	switch w.drawBelow(3, "expect") {
	case 1:
		x = eventlog.Any().After(try.before)
	case 2:
		if s.head.Seq-try.before.Seq < 32 { // Any compares recent ids only
			x = eventlog.Any()
		}
	}
	events := slices.Clone(try.events)
	if i := w.drawBelow(3*len(events), "changed"); i >= 2*len(events) {
		e := &events[i-2*len(events)]
		if s.find(e).Data == nil {
			return // the old content is unknown
		}
		e.Data = jsontext.Value(strings.Replace(string(e.Data), "{", `{"other":1,`, 1))
		if e.Data.Kind() != jsontext.KindBeginObject || bytes.HasSuffix(e.Data, []byte(",}")) {
			return
		}
		_, err := w.log().Append(w.Ctx, s.id, x, events...)
		w.WantErr(eventlog.ErrConflict, err)
		return
	}
	head, err := w.log().Append(w.Ctx, s.id, x, events...)
	w.Must(err)
	w.WantEqual("head of a retry", try.after, head)
}

// fork forks at any seq, also inside an append or before the first one.
func (w *walk) fork(s *modelSession) {
	w.Helper()
	seq := w.seq(0, s.last(), "fork point")
	child := &modelSession{id: w.newID(), parent: s, shared: s.lineage()[:seq:seq]}
	req := request{expect: eventlog.New()}
	e := &modelEvent{Event: suite.NewEvent(event.SessionForked, `{"parent":"`+s.id+`","seq":0,"hash":"`+event.Hash{}.String()+`"}`), move: -1}
	if seq > 0 {
		stored, err := w.log().Event(w.Ctx, s.id, seq)
		w.Must(err)
		e.Event = suite.ForkOf(s.id, &stored)
		if child.shared[seq-1].more > 0 {
			req.want = event.ErrInvalidTree
		}
		if w.drawBelow(10, "another's hash") == 9 {
			e.Data = jsontext.Value(strings.Replace(string(e.Data), stored.Hash().String(), event.Hash{1}.String(), 1))
			req.want = event.ErrInvalidTree
		}
	}
	req.fresh = []*modelEvent{e}
	for range w.drawBelow(2, "more") {
		more := w.drawEvent(seq + 1)
		req.want = modelError(req.want, append(slices.Clone(child.shared), e), more)
		req.fresh = append(req.fresh, more)
	}
	w.submit(child, &req)
}

func (w *walk) forkOfNothing() {
	w.Helper()
	absent := suite.BatchAfter("absent", event.Head{}, 1)[0]
	w.submit(&modelSession{id: w.newID()}, &request{
		expect: eventlog.New(),
		fresh:  []*modelEvent{{Event: suite.ForkOf("absent", &absent), move: -1}}, want: eventlog.ErrNotFound,
	})
}

// redact redacts events. The types and places of the events may not allow it.
func (w *walk) redact(s *modelSession) {
	w.Helper()
	var seqs []int64
	for range 1 + w.drawBelow(2, "seqs") {
		seqs = append(seqs, w.seq(1, s.last()+int64(w.drawBelow(10, "beyond")/9), "seq"))
	}
	erased, want := modelErases(s, seqs)
	l := w.log()
	_, err := erase.Redact(w.Ctx, l, s.id, seqs, erase.RedactOptions{Reason: "model"})
	if want != nil {
		w.WantErr(want, err)
		return
	}
	if w.Must(err); len(erased) == 0 {
		return // the events were redacted already
	}
	for _, e := range erased {
		e.Data, e.Metadata = nil, nil
	}
	w.addNote(l, s)
	for _, other := range w.sessions {
		if slices.ContainsFunc(other.shared, func(e *modelEvent) bool { return slices.Contains(erased, e) }) {
			w.addNote(l, other)
		}
	}
}

// addNote adds the redaction event to the model.
func (w *walk) addNote(l *eventlog.Log, s *modelSession) {
	w.Helper()
	note, err := l.Event(w.Ctx, s.id, s.last()+1)
	w.Must(err)
	w.WantEqual("type of the redaction event", event.Redacted, note.Type)
	s.accept([]*modelEvent{{Event: note, move: -1}}, note.Head())
}

// remove removes a session unless it has forks. It may recreate the session.
func (w *walk) remove(s *modelSession) {
	w.Helper()
	err := erase.Remove(w.Ctx, w.log(), s.id)
	for _, other := range w.sessions {
		if other.parent == s {
			w.WantErr(eventlog.ErrInUse, err)
			return
		}
	}
	w.Must(err)
	delete(w.sessions, s.id)
	if w.drawBelow(2, "anew") == 1 {
		w.append(&modelSession{id: s.id})
	}
}

// watch watches a session from any seq, through later appends.
func (w *walk) watch(s *modelSession) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Ctx)
	defer cancel()
	from := w.seq(0, s.last()+1, "from")
	next, stop := iter.Pull2(w.log().Watch(ctx, s.id, from))
	defer stop()
	for range 1 + w.drawBelow(2, "appends") {
		want := []string{}
		got := []event.Event{}
		for from = max(from, 1); from <= s.last(); from++ {
			e, err, _ := next()
			w.Must(err)
			got, want = append(got, e), append(want, renderModel(s.lineage()[from-1:from])...)
		}
		w.WantEqual("watched of "+s.id, want, renderEvents(got))
		w.append(s)
	}
	for ; from <= s.last(); from++ {
		e, err, _ := next()
		w.Must(err)
		w.WantEqual("watched of "+s.id, renderModel(s.lineage()[from-1:from]), renderEvents([]event.Event{e}))
	}
}

// export exports a session to another store, and imports the export into the walk's
// store.
func (w *walk) export(s *modelSession) {
	w.Helper()
	var stream bytes.Buffer
	w.Must(transfer.Export(w.Ctx, w.log(), &stream, s.id))
	other := w.OtherLog(memory.New(), eventlog.Options{SpillOver: 250})
	for _, l := range []*eventlog.Log{other, w.log()} {
		adopted, err := transfer.Import(w.Ctx, l, bytes.NewReader(stream.Bytes()))
		w.Must(err)
		for _, a := range adopted {
			if l != other && a.Stored > 0 {
				w.Fatalf("the import stored %d existing events of %q again", a.Stored, a.Session)
			}
		}
		w.WantEqual("head of "+s.id, s.head, w.Head(l, s.id))
	}
	w.WantEqual("export of "+s.id, renderModel(s.lineage()), renderEvents(w.Read(other, s.id, eventlog.All())))
	w.WantVerified(other, s.id)
}

// convert copies the store into a store in memory.
func (w *walk) convert(*modelSession) {
	w.Helper()
	other := w.OtherLog(memory.New())
	_, err := suite.Collect(transfer.Convert(w.Ctx, other, w.log()))
	w.Must(err)
	for _, id := range w.ids() {
		s := w.sessions[id]
		w.WantEqual("head of "+id, s.head, w.Head(other, id))
		w.WantEqual("copy of "+id, renderModel(s.lineage()), renderEvents(w.Read(other, id, eventlog.All())))
	}
}
