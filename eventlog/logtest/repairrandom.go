package logtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

func testRepairRandom(t *env) {
	for seed := range uint64(testsize.Fewer(40)) {
		w := randomDamage{env: t, Rand: rand.New(rand.NewPCG(seed, 7)), session: fmt.Sprintf("s%d", seed)}
		w.run()
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.did, "; "))
		}
	}
}

// randomDamage is a session of random events with random damage.
type randomDamage struct {
	*env
	*rand.Rand
	session string
	did     []string

	before  []event.Event // the events before the damage, in order of seq
	lines   []string      // the lines of before
	damaged []string      // the lines after the damage
}

func (w *randomDamage) run() {
	w.build()
	w.damage()
	l := w.Main()
	opts := repair.Options{}
	if _, able := eventlog.As[eventlog.Salvager](l.Store()); able && w.IntN(3) == 0 {
		opts.InPlace = true
	}
	done, err := repair.Session(w.Ctx, l, w.session, opts)
	if len(strings.Join(w.damaged, "")) == 0 && errors.Is(err, eventlog.ErrNotFound) {
		return
	}
	if errors.Is(err, eventlog.ErrCorrupt) && len(w.survivors(eventlog.TornTail{Bytes: 1})) == 0 {
		return // no lines are left
	}
	w.Must(err)
	if done.Action == repair.Cut && done.Torn.Offset == 0 {
		w.compare(nil, done.Torn)
		w.WantMissing(l, w.session)
		return
	}
	as := done.As
	if done.Action != repair.Salvage {
		as = w.session
	}
	got := w.Read(l, as, eventlog.All().Own())
	w.compare(got, done.Torn)
	w.wantVerifiedExcept(l, as, got)
	w.WantEqual("head", done.Head, w.Head(l, as))
	again, err := repair.Session(w.Ctx, l, w.session, opts)
	w.Must(err)
	w.WantEqual("stored again", int64(0), again.Stored)
	w.Append(l, as, eventlog.Any(), suite.Note(99))
	w.wantVerifiedExcept(w.Reopen(), as, got)
}

// wantVerifiedExcept is WantVerified, except for events whose redaction event was in a
// torn tail.
func (w *randomDamage) wantVerifiedExcept(l *eventlog.Log, session string, got []event.Event) {
	w.Helper()
	report, err := verify.Session(w.Ctx, l, session)
	w.Must(err)
	last := &w.before[len(w.before)-1]
	gone := last.Type == event.Redacted && !slices.ContainsFunc(got, func(e event.Event) bool { return e.Seq == last.Seq })
	for _, d := range report.Defects {
		if !gone || d.Rule != "redaction" {
			w.Errorf("the repaired session is damaged: %v", d)
		}
	}
}

// build appends random events, in appends of random sizes.
func (w *randomDamage) build() {
	l := w.LogOver(w.Store(), eventlog.Options{SpillOver: 200})
	if w.IntN(3) == 0 {
		point := w.Append(l, w.session+"-parent", eventlog.New(), suite.Notes(1+w.IntN(5))...)
		e, err := l.Event(w.Ctx, w.session+"-parent", point.Seq)
		w.Must(err)
		w.Append(l, w.session, eventlog.New(), suite.ForkOf(w.session+"-parent", &e))
	}
	for range 2 + w.IntN(12) {
		batch := make([]event.Event, 1+w.IntN(4))
		for i := range batch {
			batch[i] = w.event()
		}
		w.Append(l, w.session, eventlog.Any(), batch...)
	}
	if _, able := eventlog.As[eventlog.Eraser](l.Store()); able && w.IntN(3) == 0 {
		// A parent with a blob would need all sessions, and some are damaged.
		if e := w.Read(l, w.session, eventlog.Last(1))[0]; len(e.Blobs()) == 0 && e.Type != event.SessionForked {
			_, err := erase.Redact(w.Ctx, l, w.session, []int64{e.Seq}, erase.RedactOptions{Reason: "asked for"})
			w.Must(err)
		}
	}
	w.before = w.Read(l, w.session, eventlog.All().Own())
	w.lines = w.env.Lines(l, w.session)
}

func (w *randomDamage) event() event.Event {
	switch w.IntN(5) {
	case 0:
		return suite.User(suite.Text("words ", 1+w.IntN(400)))
	case 1:
		e := suite.NoteWithMetadata(w.IntN(1000), fmt.Sprintf(`{"k":[%d,"\"{"]}`, w.IntN(100)))
		e.Cost = event.Cost(w.Int64N(1e9))
		return e
	case 2:
		return suite.NewEvent("test:big", `"`+suite.Text("big", 100+w.IntN(1000))+`"`)
	default:
		return suite.Note(w.IntN(1000))
	}
}

// damage damages the stored lines.
func (w *randomDamage) damage() {
	w.Close()
	w.Must(w.Harness.Damage(w.session, func(lines []string) []string {
		w.damaged = lines
		for range 1 + w.IntN(4) {
			if len(w.damaged) > 0 {
				w.damaged = w.damageOnce(w.damaged)
			}
		}
		return w.damaged
	}))
}

func (w *randomDamage) damageOnce(lines []string) []string {
	i, k := w.IntN(len(lines)), w.IntN(len(lines))
	n := 1 + w.IntN(min(3, len(lines)-i))
	note := func(format string, args ...any) { w.did = append(w.did, fmt.Sprintf(format, args...)) }
	switch w.IntN(8) {
	case 0, 1:
		b := []byte(lines[i])
		if at := w.IntN(max(len(b)-1, 1)); len(b) > 1 {
			b[at] ^= 1 << w.IntN(8)
			note("flip byte %d of line %d", at, i)
		}
		lines[i] = string(b)
	case 2:
		note("drop %d lines at %d", n, i)
		return slices.Delete(lines, i, i+n)
	case 3:
		note("repeat line %d at %d", i, k)
		return slices.Insert(lines, k, lines[i])
	case 4:
		note("exchange lines %d and %d", i, k)
		lines[i], lines[k] = lines[k], lines[i]
	case 5:
		other := suite.ChainAfter("another", event.Head{}, suite.Line{Data: "1"})
		note("a line of another session at %d", i)
		return slices.Insert(lines, i, string(other[0].Line())+"\n")
	case 6:
		note("garbage of %d lines at %d", n, i)
		return slices.Replace(lines, i, i+n, strings.Repeat("x", w.IntN(300))+"\n")
	default:
		last := lines[len(lines)-1]
		cut := w.IntN(len(last) + 1)
		note("cut the end at byte %d of the last line", cut)
		if lines = lines[:len(lines)-1]; cut > 0 {
			return append(lines, last[:cut])
		}
	}
	return lines
}

// survivors returns the indexes of the events that must survive: the events with
// undamaged lines, except incomplete appends in a torn tail.
func (w *randomDamage) survivors(torn eventlog.TornTail) (due []int) {
	place := map[string]int64{}
	at := int64(0)
	for _, line := range w.damaged {
		place[strings.TrimSuffix(line, "\n")] = at
		at += int64(len(line))
	}
	for i := 0; i < len(w.before); {
		var found []int
		n := w.before[i].More() + 1
		for k := i; k < i+n; k++ {
			if slices.Contains(w.damaged, w.lines[k]+"\n") {
				found = append(found, k)
			}
		}
		for _, k := range found {
			if len(found) == n || torn.Bytes == 0 || place[w.lines[k]] < torn.Offset {
				due = append(due, k)
			}
		}
		i += n
	}
	return due
}

// compare checks that the repaired session has all surviving events and that no event
// changed.
func (w *randomDamage) compare(got []event.Event, torn eventlog.TornTail) {
	w.Helper()
	found := map[int64]*event.Event{}
	for i := range got {
		found[got[i].Seq] = &got[i]
		if i > 0 && got[i].Seq != got[i-1].Seq+1 {
			w.Errorf("seq %d follows %d", got[i].Seq, got[i-1].Seq)
		}
	}
	for _, i := range w.survivors(torn) {
		if e := found[w.before[i].Seq]; e == nil || e.Type == event.Lost {
			w.Errorf("event %d is lost, but its line is undamaged", w.before[i].Seq)
		}
	}
	for i := range w.before {
		if e := found[w.before[i].Seq]; e != nil && e.Type != event.Lost {
			w.WantEqual(fmt.Sprintf("event %d", e.Seq), contentOf(&w.before[i]), contentOf(e))
		}
	}
}
