package logtest

import (
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/suite"
)

// compareHeads checks that the store has exactly the model's sessions, at the heads
// that the appends returned.
func (w *walk) compareHeads() {
	w.Helper()
	infos, err := suite.Collect(w.log().Sessions(w.Ctx))
	w.Must(err)
	var want, got []string
	for _, id := range w.ids() {
		want = append(want, fmt.Sprint(id, " ", w.sessions[id].head))
	}
	for _, info := range infos {
		w.Must(info.Err)
		if info.ID == engine.StoreSession { // the model has no notes of the store
			continue
		}
		got = append(got, fmt.Sprint(info.ID, " ", info.Last.Head()))
	}
	w.WantEqual("heads of the sessions", want, got)
}

// compareLines compares the lineage of a session, unless the session was removed.
func (w *walk) compareLines(s *modelSession) {
	w.Helper()
	if w.sessions[s.id] == s {
		w.WantEqual(s.id, renderModel(s.lineage()), renderEvents(w.Read(w.log(), s.id, eventlog.All())))
	} else if w.sessions[s.id] == nil {
		w.WantMissing(w.log(), s.id)
	}
}

// compareAll compares and verifies every session.
func (w *walk) compareAll() {
	w.Helper()
	w.compareHeads()
	for _, id := range w.ids() {
		w.compareLines(w.sessions[id])
		w.WantVerified(w.log(), id)
	}
}

// compare compares all kinds of reads of a session with the model.
func (w *walk) compare(s *modelSession) {
	w.Helper()
	lineage := s.lineage()
	last := s.last()
	l := w.log()
	head, err := l.Head(w.Ctx, s.id)
	w.Must(err)
	w.WantEqual("head of "+s.id, s.head, head)
	w.ranges(s, "all", eventlog.All(), 1, last)
	from, to := w.seq(0, last+2, "from"), w.seq(0, last+2, "to")
	w.ranges(s, fmt.Sprintf("from %d", from), eventlog.From(from), from, last)
	if to > 0 {
		w.ranges(s, fmt.Sprintf("from %d to %d", from, to), eventlog.Between(from, to), from, to)
	}
	n := w.seq(0, last+2, "last")
	w.ranges(s, fmt.Sprintf("last %d", n), eventlog.Last(int(n)), last-n+1, last)
	path, err := suite.Collect(l.Read(w.Ctx, s.id, eventlog.All().OnPath()))
	w.Must(err)
	w.WantEqual("active path of "+s.id, renderModel(modelPath(lineage)), renderEvents(path))
	w.until(s, lineage[w.drawBelow(len(lineage), "until")])
}

// ranges compares a range with the lineage's events from..to, in both directions, with
// and without the shared prefix.
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
	w.WantEqual(name, renderModel(want), renderEvents(w.Read(w.log(), s.id, r)))
	w.WantEqual(name+", own", renderModel(own), renderEvents(w.Read(w.log(), s.id, r.Own())))
	slices.Reverse(want)
	slices.Reverse(own)
	w.WantEqual(name+", backward", renderModel(want), renderEvents(w.Read(w.log(), s.id, r.Backward())))
	w.WantEqual(name+", own, backward", renderModel(own), renderEvents(w.Read(w.log(), s.id, r.Own().Backward())))
}

func (w *walk) until(s *modelSession, e *modelEvent) {
	w.Helper()
	lineage := s.lineage()
	at := slices.Index(lineage, e)
	w.WantEqual(s.id+" until", renderModel(lineage[:at+1]), renderEvents(w.Read(w.log(), s.id, eventlog.All().Until(e.ID))))
	back := slices.Clone(lineage[at:])
	slices.Reverse(back)
	w.WantEqual(s.id+" back until", renderModel(back), renderEvents(w.Read(w.log(), s.id, eventlog.All().Until(e.ID).Backward())))
	_, err := suite.Collect(w.log().Read(w.Ctx, s.id, eventlog.All().Until(ulid.ULID{1})))
	w.WantErr(eventlog.ErrEventNotFound, err)
}
