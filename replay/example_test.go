//go:build !js

package replay_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/store/jsonl"
)

// words counts words.
func words(n *int, e *event.Event) error {
	m, ok, err := event.Decode[event.Message](e)
	if ok && err == nil {
		for _, p := range m.Parts {
			*n += len(strings.Fields(p.Text))
		}
	}
	return err
}

// conversation is a session with a question, an answer, a move back to the question,
// and a better answer.
func conversation(dir string) *eventlog.Log {
	log := eventlog.Open(jsonl.New(dir))
	question := event.UserMessage("Where is my parcel?")
	answer := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("No idea.")}})
	back := event.New(event.HeadMove{To: 1})
	better := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("In the post.")}})
	if _, err := log.Append(context.Background(), "parcel", eventlog.New(), question, answer, back, better); err != nil {
		panic(err)
	}
	return log
}

// A fold over the active path of a session.
func ExampleReplay() {
	dir, _ := os.MkdirTemp("", "replay")
	defer func() { _ = os.RemoveAll(dir) }()
	log := conversation(dir)
	defer func() { _ = log.Close() }()

	n, err := replay.Replay(log.Read(context.Background(), "parcel", eventlog.All().OnPath()), 0, words)
	fmt.Println(n, err)
	// Output: 7 <nil>
}

// The session as of event 2, read from an export without a store.
func ExampleReplayer() {
	dir, _ := os.MkdirTemp("", "replay")
	defer func() { _ = os.RemoveAll(dir) }()
	log := conversation(dir)
	defer func() { _ = log.Close() }()
	then := replay.Replayer[int]{UntilSeq: 2, ActiveOnly: true, Reducers: []replay.Reducer[int]{words}}
	n, err := then.Replay(log.Read(context.Background(), "parcel", eventlog.All()), 0)
	fmt.Println(n, err)
	// Output: 6 <nil>
}

// The newest event of a type: the replay reads backward and stops there.
func ExampleCheck() {
	dir, _ := os.MkdirTemp("", "replay")
	defer func() { _ = os.RemoveAll(dir) }()
	log := conversation(dir)
	defer func() { _ = log.Close() }()

	events := log.Read(context.Background(), "parcel", eventlog.All().Backward())
	for e, err := range replay.Check(events, replay.Options{Session: "parcel", Backward: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Type == event.HeadMoved {
			fmt.Println(e.Seq)
			return
		}
	}
	// Output: 3
}
