package projection_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

func TestRenderings(t *testing.T) {
	made := func(m event.Message, provider, model string) event.Message {
		m.Provider, m.Model = provider, model
		return m
	}
	thought := event.Reasoning("hm", "signature")
	system := event.Message{Role: event.System, Parts: []event.Part{event.Text("obey")}}
	along := event.Message{Role: event.Tool, Parts: []event.Part{
		event.ToolResult("b", "", event.Text("B")), event.Text("by the way"), event.ToolResult("a", "", event.Text("A"))}}
	failed := event.ToolCompletion{CallID: "a", Name: "tool", Error: "no such file"}
	for _, tt := range []struct {
		name   string
		events []event.Payload
		o      projection.RenderOptions
		want   []string
	}{
		{"signed parts for who made them", []event.Payload{made(says(thought, event.Text("yes")), "p", "m")}, projection.RenderOptions{Provider: "p", Model: "m"},
			[]string{"1 assistant reasoning:hm yes"}},
		{"signed parts for another model", []event.Payload{made(says(thought, event.Text("yes")), "p", "m")}, projection.RenderOptions{Provider: "p", Model: "n"},
			[]string{"1 assistant yes"}},
		{"signed parts for another provider", []event.Payload{made(says(thought, event.Opaque("blob", jsontext.Value(`1`)), event.Text("yes")), "p", "m")},
			projection.RenderOptions{Provider: "q"}, []string{"1 assistant yes"}},
		{"parts of nobody known", []event.Payload{says(thought, event.Reasoning("plain", ""))}, projection.RenderOptions{Provider: "q"},
			[]string{"1 assistant reasoning:plain"}},
		{"nothing but signed parts", []event.Payload{made(says(thought), "p", "m"), asks("well?")}, projection.RenderOptions{Provider: "q"},
			[]string{"2 user well?"}},
		{"signed parts before a call", []event.Payload{made(says(thought, calls("a")), "p", "m"), gives("a", "A")}, projection.RenderOptions{Provider: "q"},
			[]string{"1 assistant call:a", "2 tool result:a=A"}},
		{"the system", []event.Payload{system, inPlace("note")}, projection.RenderOptions{}, []string{"1 system obey", "2 user {context} note"}},
		{"the system demoted", []event.Payload{system, inPlace("note")}, projection.RenderOptions{DemoteSystem: true}, []string{"1 user obey", "2 user {context} note"}},
		{"contexts of the developer", []event.Payload{inPlace("note")}, projection.RenderOptions{ContextRole: event.Developer}, []string{"1 developer {context} note"}},
		{"contexts of the developer demoted", []event.Payload{inPlace("note")}, projection.RenderOptions{ContextRole: event.Developer, DemoteSystem: true},
			[]string{"1 user {context} note"}},
		{"results in one message, in another order", []event.Payload{says(calls("a"), calls("b")), along}, projection.RenderOptions{},
			[]string{"1 assistant call:a call:b", "2 tool result:a=A", "2 tool result:b=B", "2 user by the way"}},
		{"a recorded execution", []event.Payload{says(calls("a")), failed}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "2 tool result:a=no such file <execution>"}},
		{"a recorded execution that became a message", []event.Payload{says(calls("a")), failed, gives("a", "A")}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "3 tool result:a=A"}},
		{"a recorded execution that a request saw", []event.Payload{says(calls("a")), failed, stepped, gives("a", "A")}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "2 tool result:a=no such file <execution>"}},
		{"an execution after the request", []event.Payload{says(calls("a")), stepped, failed}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "0 tool result:a=[interrupted: the call gave no result] <interrupted>"}},
		{"an interruption that is noted after the request", []event.Payload{says(calls("a")), stepped,
			event.Message{Role: event.Tool, Parts: []event.Part{event.Part{Type: event.ToolResultPart, CallID: "a", Name: "tool", IsError: true, Interrupted: true, Content: []event.Part{event.Text("gone")}}}}}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "0 tool result:a=[interrupted: the call gave no result] <interrupted>"}},
		{"a call id that comes again", []event.Payload{says(calls("a")), gives("a", "1"), says(calls("a")), gives("a", "2"), gives("a", "3")}, projection.RenderOptions{},
			[]string{"1 assistant call:a", "2 tool result:a=1", "3 assistant call:a", "4 tool result:a=2"}},
		{"a call id that comes again in one message", []event.Payload{piece("g", calls("a")), piece("g", calls("a"), calls("b")), gives("a", "1")}, projection.RenderOptions{},
			[]string{"1 assistant call:a call:b", "3 tool result:a=1", "0 tool result:b=[interrupted: the call gave no result] <interrupted>"}},
		{"calls of nobody who may call", []event.Payload{event.Message{Role: event.User, Parts: []event.Part{calls("a"), event.Text("x")}}, gives("a", "1")},
			projection.RenderOptions{}, []string{"1 user x"}},
		{"what is no conversation", []event.Payload{event.Handoff{ToAgent: "b"}, event.External{Kind: "k"}, event.TurnStart{}}, projection.RenderOptions{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t, plainLog(t), "s")
			s.add(tt.events...)
			entries := s.render(tt.o)
			if diff := cmp.Diff(tt.want, brief(entries)); diff != "" {
				t.Fatal(diff)
			}
			if err := paired(entries); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPiecesOfAMessage(t *testing.T) {
	first, last := piece("g", event.Text("one")), piece("g", event.Text("two"))
	first.Usage, first.Provider = event.Usage{OutputTokens: 1}, "p"
	last.Usage, last.StopReason, last.ResponseID, last.Extra = event.Usage{OutputTokens: 2}, "end", "r", jsontext.Value(`{"x":1}`)
	want := event.Message{Role: event.Assistant, Provider: "p", Group: "g", Usage: last.Usage, StopReason: "end", ResponseID: "r",
		Extra: last.Extra, Parts: []event.Part{event.Text("one"), event.Text("two")}}
	s := newStory(t, plainLog(t), "s")
	s.add(first, asks("wait"), last, event.Message{Role: event.User, Group: "g", Parts: []event.Part{event.Text("mine")}})
	transcript, err := projection.Load(context.Background(), s.log, "s", projection.Transcript())
	if err != nil {
		t.Fatal(err)
	}
	said, err := transcript.State.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][]projection.Entry{"history": s.render(), "transcript": said} {
		if diff := cmp.Diff([]string{"1 assistant one two", "2 user wait", "4 user mine"}, brief(entries)); diff != "" {
			t.Fatalf("%s: %s", name, diff)
		}
		if e := entries[0]; !slices.Equal(e.Seqs, []int64{1, 3}) {
			t.Fatalf("%s: seqs %v", name, e.Seqs)
		}
		if diff := cmp.Diff(want, entries[0].Message); diff != "" {
			t.Fatalf("%s: %s", name, diff)
		}
	}
}

func TestTheTranscriptKeepsCoveredMessages(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.add(prefix("rules"))
		s.exchange("a")
		s.add(gives("b", "nobody asked"), event.Compaction{Replace: true, Summary: "all"})
		v, err := projection.Load(context.Background(), log, "s", projection.Transcript())
		if err != nil {
			t.Fatal(err)
		}
		said, err := v.State.Messages()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"2 user ask a", "3 assistant call:a", "4 tool result:a=found a", "5 assistant answer a", "6 tool result:b=nobody asked"}
		if diff := cmp.Diff(want, brief(said)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestRedactedPayloadsKeepTheirPairs(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.add(prefix("secret"), asks("secret"), says(event.Text("secret"), calls("a"), calls("b")), gives("a", "secret"),
			event.ToolCompletion{CallID: "b", Name: "tool", Content: []event.Part{event.Text("secret")}},
			event.Compaction{Covers: covers(2, 2), Summary: "secret"})
		var seqs []int64
		for seq := range s.seq {
			seqs = append(seqs, seq+1)
		}
		if _, err := erase.Redact(context.Background(), log, "s", seqs, erase.RedactOptions{Reason: "asked for"}); err != nil {
			t.Fatal(err)
		}
		entries := s.render()
		want := []string{"1 user {rules} [redacted] <redacted>", "0 user [redacted] <redacted>", "3 assistant [redacted] call:a call:b <redacted>",
			"4 tool result:a=[redacted] <redacted>", "5 tool result:b=[redacted] <execution>"}
		if diff := cmp.Diff(want, brief(entries)); diff != "" {
			t.Fatal(diff)
		}
		if err := paired(entries); err != nil {
			t.Fatal(err)
		}
		body, err := projection.History().Encode(s.history())
		if err != nil || strings.Contains(string(body), "secret") {
			t.Fatalf("%s, %v", body, err)
		}
		h, err := projection.History().Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.Messages()
		if diff := cmp.Diff(entries, again); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
		c := event.Compaction{Covers: covers(3, 3), Summary: "s"}
		if err := projection.CheckCompaction(context.Background(), log, "s", c); reasonOf(err) != "split" {
			t.Fatalf("a redacted call may leave its result: %v", err)
		}
	})
}

// Folding events into a state does not change a copy of it.
func TestACopyOfAStateStays(t *testing.T) {
	ctx := context.Background()
	s := newStory(t, plainLog(t), "s")
	s.exchange("a")
	s.add(says(calls("b")), event.ToolCompletion{CallID: "b", Name: "tool", Error: "e"})
	live, err := projection.Resume(ctx, s.log, "s", projection.Of("", projection.History()))
	if err != nil {
		t.Fatal(err)
	}
	state, _ := projection.State(live, projection.History())
	kept := *state
	before, err := kept.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []event.Payload{gives("b", "B"), stepped, event.Compaction{Cleared: []string{"a"}},
		event.Compaction{Covers: covers(2, 3), Summary: "short"}, asks("more"), event.Compaction{Replace: true}} {
		s.add(p)
		if err := live.Follow(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := kept.Messages()
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Fatalf("after %T: %s, %v", p, diff, err)
		}
	}
}

// Append refuses these payloads; a log of a newer program may have them.
func TestPayloadsOfNewerVersionsAreRefused(t *testing.T) {
	for _, typ := range []event.Type{"message_added/9", "context_added/9", "compaction_triggered/9", "step_started/9"} {
		var h projection.HistoryState
		e := event.Event{Seq: 1, Type: typ, Data: jsontext.Value(`{"later":true}`)}
		if err := projection.History().Apply(&h, &e); !errors.Is(err, event.ErrVersion) {
			t.Fatalf("%s: %v", typ, err)
		}
		var said projection.TranscriptState
		if err := projection.Transcript().Apply(&said, &e); typ.Name() == event.MessageAdded && !errors.Is(err, event.ErrVersion) {
			t.Fatalf("transcript, %s: %v", typ, err)
		}
	}
}

func FuzzDecodeHistory(f *testing.F) {
	s := newStory(f, plainLog(f), "s")
	s.exchange("a")
	s.add(stepped, says(calls("b")), event.ToolCompletion{CallID: "b", Name: "tool"}, event.Compaction{Covers: covers(1, 1), Summary: "s",
		Cleared: []string{"a"}, ReadFiles: []string{"f"}}, stepped, event.StepCompletion{Step: 1})
	body, err := projection.History().Encode(s.history())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(body))
	for _, text := range []string{`{}`, `{"items":[["f",1]]}`, `{"items":[["m",1]]}`, `{"items":[["x",1,{}]]}`, `{"items":[["l",1,{},1]]}`, `{"items":[["",1,{}]]}`, `{"items":[["m",1,{},2]]}`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := projection.History().Decode(text)
		if err != nil {
			return
		}
		again, err := projection.History().Encode(&h)
		if err != nil {
			t.Fatal(err)
		}
		h, err = projection.History().Decode(again)
		if err != nil {
			t.Fatalf("%s became %s, which is none: %v", text, again, err)
		}
		if third, err := projection.History().Encode(&h); err != nil || string(third) != string(again) {
			t.Fatalf("%s became %s and then %s, %v", text, again, third, err)
		}
		if entries, err := h.Messages(); err == nil {
			if err := paired(entries); err != nil {
				t.Fatal(err)
			}
		}
	})
}
