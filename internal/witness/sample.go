package witness

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mint"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/erase"
)

// The sessions of a sample.
const (
	// Main has an event of every kind.
	Main = "main"
	// Fork is a fork of Main.
	Fork = "fork"
	// Other is independent of both.
	Other = "other"
)

// sampleSpill is the size above which the sample spills data.
const sampleSpill = 400

// WriteSample fills an empty store with the sessions of a sample. It has appends of
// one and of several events, spilled and redacted data, blobs, a moved head, a cut,
// costs, metadata, and unknown members and types. Every run writes the same bytes.
func WriteSample(t testing.TB, s eventlog.Store) {
	t.Helper()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(1_000_000_007)
		return now
	}
	w := sampler{TB: t, store: s, mint: mint.Minter{Now: clock, Random: rand.NewChaCha8([32]byte{1})}}
	w.log = eventlog.Open(s, eventlog.Options{Now: clock, Random: rand.NewChaCha8([32]byte{2}), SpillOver: sampleSpill})
	w.main()
	w.fork()
	w.add(Other, suite.Note(1))
	w.add(Other, suite.Notes(3)...)
	w.add(Other, suite.User("untouched"))
}

// sampler writes a sample.
type sampler struct {
	testing.TB
	store eventlog.Store
	log   *eventlog.Log
	mint  mint.Minter
}

// add appends events. The ids are the same in every run.
func (w *sampler) add(session string, events ...event.Event) event.Head {
	w.Helper()
	for i := range events {
		events[i].ID = w.mint.NewID()
	}
	head, err := w.log.Append(w.Context(), session, eventlog.Any(), events...)
	if err != nil {
		w.Fatalf("write sample: %v", err)
	}
	return head
}

// main writes the session that tests damage. The comments are its seqs.
func (w *sampler) main() {
	start := suite.NewEvent(event.SessionStarted, `{"title":"a \"sample\"","agent":"support"}`)
	start.Metadata = jsontext.Value(`{"tags":["ä","\u00e9"],"n":1E+2}`)
	asked := suite.Calls("c1")
	asked.Cost = 12_300_000
	started := suite.NewEvent(event.ToolStarted, `{"call_id":"c1","name":"lookup","arguments":{"id":7}}`)
	completed := suite.NewEvent(event.ToolCompleted, `{"call_id":"c1","name":"lookup","content":[{"type":"text","text":"ok"}],"duration_ms":41}`)
	completed.Cost = 1
	updated := suite.NewEvent(event.SessionUpdated, `{"title":"done"}`)
	updated.Metadata = jsontext.Value(`{"long":"` + strings.Repeat("long ", 300) + `"}`)

	w.add(Main, start)                                                                       // 1
	w.add(Main, suite.User("refund it"), suite.NewEvent(event.TurnStarted, `{"agent":"a"}`)) // 2 3
	w.add(Main, asked)                                                                       // 4
	w.add(Main, started, completed, suite.Result("c1"))                                      // 5 6 7
	w.add(Main, suite.User(strings.Repeat("long ", 100)))                                    // 8, spilled
	w.add(Main, suite.User("my secret"))                                                     // 9, redacted below
	w.add(Main, w.image("not really a picture"))                                             // 10, needs a blob
	w.appendLines(w.add(Main, suite.User("go on")),                                          // 11
		suite.Line{Typ: "acme/order/2", Members: `"metadata":{"a":null},"priority":7,"route":{"to":["b"]}`, Data: `[1,2.50,"x"]`}, // 12
		suite.Line{Members: `"überschrift":"ä"`, Data: `{}`})                                                                      // 13
	w.appendLines(w.head(), suite.Line{Cut: strings.Repeat("0f", 32), Data: `{}`}) // 14
	w.add(Main, suite.HeadMove(11))                                                // 15
	w.add(Main, suite.Notes(3)...)                                                 // 16 17 18
	w.redact(9)                                                                    // 19
	w.add(Main, updated)                                                           // 20
	w.add(Main, suite.Note(21), suite.User("bye"))                                 // 21 22
}

// sampleForkPoint is the seq of Main that Fork forks at.
const sampleForkPoint = 13

func (w *sampler) fork() {
	at, err := w.log.Event(w.Context(), Main, sampleForkPoint)
	if err != nil {
		w.Fatalf("write sample: %v", err)
	}
	w.add(Fork, suite.NewEvent(event.SessionForked, fmt.Sprintf(
		`{"parent":%q,"seq":%d,"event_id":%q,"hash":%q,"label":"try"}`, Main, at.Seq, at.ID, at.Hash())))
	w.add(Fork, suite.User("yet another way"), suite.Note(16))
}

func (w *sampler) head() event.Head {
	w.Helper()
	head, err := w.log.Head(w.Context(), Main)
	if err != nil {
		w.Fatalf("write sample: %v", err)
	}
	return head
}

func (w *sampler) redact(seq int64) {
	w.Helper()
	if _, err := erase.Redact(w.Context(), w.log, Main, []int64{seq}, erase.RedactOptions{Reason: "asked for"}); err != nil {
		w.Fatalf("write sample: %v", err)
	}
}

// image returns a message with a body in a blob.
func (w *sampler) image(body string) event.Event {
	w.Helper()
	ref, err := w.log.PutBlob(w.Context(), strings.NewReader(body))
	if err != nil {
		w.Fatalf("write sample: %v", err)
	}
	return suite.Image(ref)
}

// appendLines appends lines that a log would not write.
func (w *sampler) appendLines(after event.Head, lines ...suite.Line) {
	w.Helper()
	for i := range lines {
		lines[i].ID = w.mint.NewID()
	}
	if err := w.store.Append(w.Context(), Main, after, suite.ChainAfter(Main, after, lines...), false); err != nil {
		w.Fatalf("write sample: %v", err)
	}
}
