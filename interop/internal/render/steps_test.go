package render_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// Law: the request of a step is, byte for byte, a prefix of every later request of
// its path, until a compaction. Rewinds, forks and snapshots do not change this.
func TestARequestStaysABeginningUntilACompaction(t *testing.T) {
	for name, open := range map[string]func(dir string) eventlog.Store{
		"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: true}) },
		"sqlite": func(dir string) eventlog.Store {
			return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{NoSync: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				w := &work{T: r, t: t, log: log, names: []string{"s0"}}
				w.add("s0", event.Message{Role: event.User, Parts: []event.Part{event.Text("begin")}})
				for range rapid.IntRange(3, 20).Draw(r, "events") {
					w.act()
				}
				for _, name := range w.names {
					w.check(name)
				}
			})
		})
	}
}

// work generates sessions of an agent.
type work struct {
	*rapid.T
	t     *testing.T
	log   *eventlog.Log
	names []string
	calls int
}

func (w *work) must(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

func (w *work) add(name string, p event.Payload) {
	_, err := w.log.Append(w.t.Context(), name, eventlog.Any().Lenient(), event.New(p))
	w.must(err)
}

func (w *work) act() {
	name := rapid.SampledFrom(w.names).Draw(w.T, "session")
	head, err := w.log.Head(w.t.Context(), name)
	w.must(err)
	seq := rapid.Int64Range(1, head.Seq).Draw(w.T, "seq")
	switch kind := rapid.IntRange(0, 19).Draw(w.T, "kind"); kind {
	case 0, 1, 2:
		w.add(name, event.StepStart{Step: 1})
	case 3, 4, 5:
		w.calls++
		w.add(name, w.call(fmt.Sprint("c", w.calls)))
	case 6, 7, 8:
		id := fmt.Sprint("c", rapid.IntRange(1, w.calls+1).Draw(w.T, "call"))
		w.add(name, event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(id, "look", w.part())}})
	case 9:
		id := fmt.Sprint("c", rapid.IntRange(1, w.calls+1).Draw(w.T, "call"))
		w.add(name, event.ToolCompletion{CallID: id, Name: "look", Content: []event.Part{event.Text("ran")}})
	case 10, 11:
		place := rapid.SampledFrom([]event.Placement{event.AsPrefix, event.InHistory}).Draw(w.T, "place")
		w.add(name, event.ContextEntry{Kind: "rules", Placement: place, Parts: []event.Part{w.part()}})
	case 12:
		w.add(name, event.HeadMove{To: seq})
	case 13:
		if child, err := fork.At(w.t.Context(), w.log, name, fork.AtSeq(seq), fork.Options{Force: true}); err == nil {
			w.names = append(w.names, child.ID)
		}
	case 14:
		live, err := projection.Resume(w.t.Context(), w.log, name, projection.Of("", projection.History()))
		w.must(err)
		_, _, err = live.Snapshot(w.t.Context(), projection.Request{Trigger: projection.Manual, Body: true})
		w.must(err)
	case 15:
		w.add(name, event.Compaction{Covers: event.Stretch{From: 1, To: seq}, Summary: "what was said", ReadFiles: []string{"a.go"}})
	default:
		roles := []event.Role{event.User, event.Assistant, event.System, event.Developer}
		m := event.Message{Role: rapid.SampledFrom(roles).Draw(w.T, "role"), Parts: []event.Part{w.part()}}
		m.Group = rapid.SampledFrom([]string{"", "", "g"}).Draw(w.T, "group")
		w.add(name, m)
	}
}

// call is an answer with reasoning, text and calls.
func (w *work) call(id string) event.Message {
	thought := event.Reasoning("hm", "signed")
	thought.Encrypted = "secret"
	return event.Message{Role: event.Assistant, Provider: rapid.SampledFrom([]string{"anthropic", "openai"}).Draw(w.T, "provider"),
		Parts: []event.Part{thought, w.part(), event.ToolCall(id, "look", jsontext.Value(`{"at":1.0}`))}}
}

func (w *work) part() event.Part {
	return event.Text(rapid.SampledFrom([]string{"yes", "no", "<é>"}).Draw(w.T, "text"))
}

// check compares the requests along the path of each event of a session.
func (w *work) check(name string) {
	sent := []map[string][]byte{nil} // the last request on the path that ends with each event
	for e, err := range w.log.Read(w.t.Context(), name, eventlog.All()) {
		w.must(err)
		before, err := e.Parent()
		w.must(err)
		view, err := projection.Load(w.t.Context(), w.log, name, projection.History(), projection.Options{At: e.Seq})
		w.must(err)
		entries, err := view.State.Messages()
		w.must(err)
		last := sent[before]
		if e.Type.Name() == event.CompactionTriggered {
			last = nil
		}
		now := map[string][]byte{}
		for _, s := range shapes {
			raw := rendered(w.T, s, entries)
			w.must(s.check(raw))
			if !bytes.HasPrefix(raw, last[s.name]) {
				w.Fatalf("%s: %s %d of %s begins otherwise:\n%s\n%s", s.name, e.Type, e.Seq, name, last[s.name], raw)
			}
			now[s.name] = []byte(strings.TrimSuffix(string(raw), s.end))
		}
		if e.Type.Name() == event.StepStarted {
			last = now
		}
		sent = append(sent, last)
	}
}
