package importtest

import (
	"bytes"
	"errors"
	"regexp"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/verify"
)

// Sessions are the ids of the sessions of a log, without the notes of its store.
func Sessions(t TB, log *eventlog.Log) (ids []string) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if info.ID != "convlog:store" {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// Events are all events of a session.
func Events(t TB, log *eventlog.Log, session string) []event.Event {
	t.Helper()
	return read(t, log, session, eventlog.All())
}

// ActivePath are the events of the active path.
func ActivePath(t TB, log *eventlog.Log, session string) []event.Event {
	t.Helper()
	return read(t, log, session, eventlog.All().OnPath())
}

func read(t TB, log *eventlog.Log, session string, events eventlog.Range) (all []event.Event) {
	t.Helper()
	for e, err := range log.Read(t.Context(), session, events) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// Start is the payload of the session_started.
func Start(t TB, log *eventlog.Log, session string) event.Session {
	t.Helper()
	all := Events(t, log, session)
	about, ok, err := event.Decode[event.Session](&all[0])
	if err != nil || !ok {
		t.Fatalf("%s starts with %s, %v", session, all[0].Type, err)
	}
	return about
}

// Messages are the messages of the active path.
func Messages(t TB, log *eventlog.Log, session string) (all []event.Message) {
	t.Helper()
	for _, e := range ActivePath(t, log, session) {
		m, ok, err := event.Decode[event.Message](&e)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			all = append(all, m)
		}
	}
	return all
}

// History is the effective history that a model gets.
func History(t TB, log *eventlog.Log, session string, options ...projection.Options) []projection.Entry {
	t.Helper()
	h, err := projection.Load(t.Context(), log, session, projection.History(), options...)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := h.State.Messages()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// Say appends each payload to a session in its own append. The events are a second
// apart, and may break rules of conversation.
func Say(t TB, log *eventlog.Log, session string, payloads ...event.Payload) {
	t.Helper()
	for _, p := range payloads {
		e := event.New(p)
		head, err := log.Head(t.Context(), session)
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			t.Fatal(err)
		}
		e.Timestamp = time.Date(2026, 3, 1, 10, 0, int(head.Seq), 0, time.UTC)
		e.ID = ulid.MustNew(ulid.Timestamp(e.Timestamp), bytes.NewReader(make([]byte, 10)))
		if _, err := log.Append(t.Context(), session, eventlog.At(head).Lenient(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// Rewind moves the head of a session.
func Rewind(t TB, log *eventlog.Log, session string, to int64) {
	t.Helper()
	move := event.New(event.HeadMove{To: to})
	if _, err := log.Append(t.Context(), session, eventlog.Any(), move); err != nil {
		t.Fatal(err)
	}
}

// Content is an event without its salt, its hashes and its place in an append.
type Content struct {
	Seq            int64
	ID, Session    string
	Type           event.Type
	At             time.Time
	Cost           event.Cost
	Metadata, Data string
	// Kept is the structure of a redacted event.
	Kept string
}

// hash matches a hash in a payload, for example the parent's in a fork.
var hash = regexp.MustCompile(`"hash":"[0-9a-f]{64}"`)

// Contents are the contents of all events of a log.
func Contents(t TB, log *eventlog.Log) (all []Content) {
	t.Helper()
	for _, id := range Sessions(t, log) {
		for _, e := range Events(t, log, id) {
			all = append(all, Content{
				Seq: e.Seq, ID: e.ID.String(), Session: e.SessionID, Type: e.Type, At: e.Timestamp, Cost: e.Cost,
				Metadata: string(e.Metadata), Data: hash.ReplaceAllString(string(e.Data), `"hash":"…"`), Kept: string(e.Kept()),
			})
		}
	}
	return all
}

// Dump is Contents without metadata.
func Dump(t TB, log *eventlog.Log) []Content {
	t.Helper()
	all := Contents(t, log)
	for i := range all {
		all[i].Metadata = ""
	}
	return all
}

// Verify fails the test if a session is damaged or breaks a rule.
func Verify(t TB, log *eventlog.Log) {
	t.Helper()
	for _, id := range Sessions(t, log) {
		if report, err := verify.Session(t.Context(), log, id); err != nil || len(report.Defects) > 0 {
			t.Fatalf("verify %q: %v, %v", id, report.Defects, err)
		}
	}
}

// Same fails the test if two values differ.
func Same[T any](t TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
