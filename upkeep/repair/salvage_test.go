package repair_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// pieces is a store with a session s in pieces.
type pieces struct {
	*memory.Store
	of []eventlog.Fragment
}

func (p *pieces) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	if session != "s" {
		return p.Store.Fragments(ctx, session)
	}
	return func(yield func(eventlog.Fragment, error) bool) {
		for _, f := range p.of {
			f.Event = f.Event.Clone()
			more := yield(f, nil)
			clear(f.Event.Line())
			clear(f.Event.Data)
			if !more {
				return
			}
		}
	}
}

// Each plan has the lines in the storage and the result of the salvage. The session has
// events 1 2 3, 4 and 5 in one append, 6, 7 to 9 in one append, and 10. A number is the
// line of that event, ! an unreadable line, !8 an unreadable line with seq 8, ~ the
// beginning of a line, x a line of another session, o3 another event 3. In the result, L
// is a lost event, and 4+1 is event 4 with one more event in its append.
var salvagePlans = []struct{ stored, result, torn string }{
	{"1 2 3 4 5 6", "none", ""},
	{"1 2 3 4 5 6 7 8 9 10", "none", ""},
	{"1 ! 3", "1 L 3", ""},
	{"1 3", "1 L 3", ""},
	{"! 2 3", "L 2 3", ""},
	{"3", "L L 3", ""},
	{"1 ! ! 3", "1 L 3", ""},
	{"1 ! 4 5", "1 L L 4+1 5", ""},
	{"1 2 x 3", "1 2 3", ""},
	{"1 x 3", "1 L 3", ""},
	{"1 2 2 3", "1 2 3", ""},
	{"1 o2 2 3", "1 2 3", ""},
	{"1 2 o2 3", "1 2 3", ""},
	{"1 ! o3 3 4 5", "1 L o3 4+1 5", ""}, // neither is known to follow: the first is taken
	{"3 1 2", "1 2 3", ""},
	{"6 4 5 1 2 3", "1 2 3 4+1 5 6", ""},
	// Appends that lack events.
	{"1 2 3 4 ! 6", "1 2 3 4 L 6", ""},
	{"1 2 3 ! 5 6", "1 2 3 L 5 6", ""},
	{"1 2 3 4 5 6 7 ! 9 10", "1 2 3 4+1 5 6 7 L 9 10", ""},
	{"1 2 3 4 5 6 ! 8 9 10", "1 2 3 4+1 5 6 L 8+1 9 10", ""},
	{"1 2 3 4 5 6 7 8 ! 10", "1 2 3 4+1 5 6 7 8 L 10", ""},
	{"1 2 3 4 5 ! ! 8 9 10", "1 2 3 4+1 5 L L 8+1 9 10", ""},
	{"1 2 3 4 ! ! ! 8 9 10", "1 2 3 4 L L L 8+1 9 10", ""},
	// The end.
	{"1 2 3 !", "1 2 3 L", ""},
	{"1 2 3 ! !", "1 2 3 L L", ""},
	{"1 2 3 !4 !5", "1 2 3 L L", ""},
	{"1 2 3 !7", "1 2 3 L L L L", ""},
	{"1 2 3 4", "1 2 3", "4"},
	{"1 2 3 4 5 6 7 8", "1 2 3 4+1 5 6", "7 8"},
	{"1 2 3 4 !", "1 2 3 4 L", ""},
	{"1 2 3 4 x", "1 2 3 4 L", ""},
	{"1 2 3 x", "1 2 3", ""},
	{"1 2 3 ~", "1 2 3", "~"},
	{"1 2 3 4 ~", "1 2 3", "4 ~"},
	{"1 2 ! 4 5 6 7 ~", "1 2 L 4+1 5 6", "7 ~"},
	{"1 2 3 4 5 6 7 ! 9 ~", "1 2 3 4+1 5 6 7 L 9", "~"},
	{"1 2 3 4 5 6 7 ! ~", "1 2 3 4+1 5 6", "7 ! ~"},
	{"! !", "beyond repair", ""},
	{"x x", "beyond repair", ""},
	{"4 ~", "beyond repair", ""},
}

func TestSalvagePlans(t *testing.T) {
	for _, plan := range salvagePlans {
		t.Run(plan.stored, func(t *testing.T) {
			store := &pieces{Store: memory.New()}
			log := eventlog.Open(store)
			was := storedPieces(t, log)
			size := store.take(plan.stored, was)
			done, err := repair.Session(t.Context(), log, "s", repair.Options{})
			got := "none"
			switch {
			case errors.Is(err, eventlog.ErrCorrupt):
				got = "beyond repair"
			case err != nil:
				t.Fatal(err)
			case done.Action != repair.None:
				got = salvagedPieces(t, log, done, was)
			}
			if got != plan.result {
				t.Errorf("%s becomes %s, want %s", plan.stored, got, plan.result)
			}
			if n := int64(len(strings.Fields(plan.torn))); done.Torn.Bytes != 1000*n || n > 0 && done.Torn.Offset != size-1000*n {
				t.Errorf("%s: left out %+v, want %s", plan.stored, done.Torn, plan.torn)
			}
		})
	}
}

// storedPieces appends the session, another one, and one that has another
// event 2 and 3; it gives their events by name.
func storedPieces(t *testing.T, log *eventlog.Log) map[string]event.Event {
	t.Helper()
	named := map[string]event.Event{}
	for _, session := range []struct{ id, prefix string }{{"x", "x"}, {"s", ""}} {
		for _, size := range []int{1, 1, 1, 2, 1, 3, 1} {
			batch := make([]event.Event, size)
			for i := range batch {
				batch[i] = event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)}
			}
			if _, err := log.Append(t.Context(), session.id, eventlog.Any(), batch...); err != nil {
				t.Fatal(err)
			}
		}
		for e, err := range log.Read(t.Context(), session.id, eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			named[session.prefix+strconv.FormatInt(e.Seq, 10)] = e
		}
	}
	other := eventlog.Open(memory.New())
	for i := range 3 {
		e := event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)}
		head, err := other.Append(t.Context(), "s", eventlog.Any(), e)
		if err != nil {
			t.Fatal(err)
		}
		if named[fmt.Sprint("o", i+1)], err = other.Event(t.Context(), "s", head.Seq); err != nil {
			t.Fatal(err)
		}
	}
	return named
}

// take makes the store's pieces of a plan's words; each seems to have 1000
// bytes.
func (p *pieces) take(words string, named map[string]event.Event) (size int64) {
	for _, word := range strings.Fields(words) {
		f := eventlog.Fragment{Path: "here", Offset: size, Bytes: 1000}
		switch claim, bad := strings.CutPrefix(word, "!"); {
		case bad:
			f.Seq, _ = strconv.ParseInt(claim, 10, 64)
			f.Err = errors.New("bad")
		case word == "~":
			f.Err, f.Unended = errors.New("half"), true
		case word == "x":
			f.Event = named["x2"]
		default:
			f.Event = named[word]
		}
		p.of = append(p.of, f)
		size += 1000
	}
	return size
}

// salvagedPieces writes down the session that a repair gave, which must be
// sound.
func salvagedPieces(t *testing.T, log *eventlog.Log, done repair.Report, was map[string]event.Event) string {
	t.Helper()
	report, err := verify.Session(t.Context(), log, done.As)
	if err != nil || len(report.Defects) > 0 || report.Head != done.Head {
		t.Errorf("verify: %+v, %v", report, err)
	}
	var words []string
	for e, err := range log.Read(t.Context(), done.As, eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		word := "L"
		for name, old := range was {
			if old.ID == e.ID && old.SessionID == "s" {
				word = name
			}
		}
		if e.More() > 0 {
			word += fmt.Sprint("+", e.More())
		}
		if word == "L" && e.Type != event.Lost {
			word = "?"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// A lost event has the members that the documentation of package repair says.
func TestLostEvents(t *testing.T) {
	store := &pieces{Store: memory.New()}
	log := eventlog.Open(store)
	was := storedPieces(t, log)
	store.take("1 2 ! 4 5", was)
	done, err := repair.Session(t.Context(), log, "s", repair.Options{As: "t"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := log.Event(t.Context(), "t", 3)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("lost\x00s\x00"), 3))
	before := was["2"]
	if entropy := e.ID.Entropy(); hex.EncodeToString(entropy) != hex.EncodeToString(h[:10]) || e.ID.Time() != uint64(before.Timestamp.UnixMilli()) {
		t.Errorf("id %s", e.ID)
	}
	if !e.Timestamp.Equal(before.Timestamp) {
		t.Errorf("time %s, the event before has %s", e.Timestamp, before.Timestamp)
	}
	if salt := `"salt":"` + hex.EncodeToString(h[16:]) + `"`; !strings.Contains(string(e.Line()), salt) {
		t.Errorf("no %s in %s", salt, e.Line())
	}
	if want := `{"reason":"bad","source":{"session_id":"s","offset":2000,"bytes":1000}}`; string(e.Data) != want {
		t.Errorf("data %s, want %s", e.Data, want)
	}
	if got := fmt.Sprintf("%+v", done.Lost); got != "[{Session:s From:3 To:3 Offset:2000 Bytes:1000 Reason:bad}]" {
		t.Errorf("lost %s", got)
	}
}
