package transcript_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// A note has the facts of its event. Its line has no name if readers of a transcript
// need no note.
func TestNotes(t *testing.T) {
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	title := "B"
	for _, tt := range []struct {
		payload event.Payload
		want    string
		text    string
	}{
		{event.HeadMove{To: 2, Reason: "typo"}, "went back to #2 · typo", ""},
		{event.HeadMove{}, "went back to the start", ""},
		{event.Fork{Parent: "p", Seq: 4, Label: "x"}, "forked from p at #4 · x", ""},
		{event.Handoff{ToAgent: "b"}, "handed to b", ""},
		{event.Compaction{Summary: "short", Covers: event.Stretch{From: 1, To: 9}, TokensBefore: 1000}, "context compacted: #1 to #9 · 1,000 tokens before", "short"},
		{event.Compaction{Cleared: []string{"a", "b"}}, "context compacted: 2 tool results cleared", ""},
		{event.ContextEntry{}, "context", ""},
		{event.Loss{Reason: "damaged"}, "lost: damaged", ""},
		{event.Artifact{ArtifactID: "a1", Description: "d"}, "artifact: a1", "d"},
		{event.Artifact{ArtifactID: "a1", Name: "n", Removed: true}, "artifact removed: n", ""},
		{event.Escalation{Scope: "turn", Error: "e"}, "retried after an error: turn", "e"},
		{event.Session{Title: "A", Labels: map[string]*string{"a": nil, "b": &title}}, " title: A · a: removed · b: B", ""},
		{event.TurnHibernation{Cursor: event.Cursor{Kind: "wait"}}, "turn hibernated: wait", ""},
		{event.External{Source: "mail", Messages: []event.Message{user("one\ntwo")}, Value: jsontext.Value(`{}`)}, "input from outside: mail · one …", "{}"},
		{event.Child{State: event.ChildFailed, ChildID: "c", Error: "no", Task: "do"}, "child run failed: c", "no\n\ndo"},
		{event.ApprovalRequest{InterruptID: "i", Name: "run", Arguments: jsontext.Value(`{"x":1}`), Prompt: "Run?", ExpiresAt: until}, "approval asked: run (x: 1) · review i · until 2026-01-02 03:04:05", "Run?"},
		{event.ApprovalResolution{InterruptID: "i", Decision: event.Approved, By: "ann", Arguments: jsontext.Value(`{}`)}, "answer: approved by ann with other arguments () · review i", ""},
		{event.ApprovalResolution{InterruptID: "i", Decision: event.Answered, Answer: jsontext.Value(`4`)}, "answer: answered with 4 · review i", ""},
		{event.ApprovalCancelation{InterruptID: "i"}, "approval canceled: review i", ""},
		{event.EffectIntent{Kind: "tool", Name: "run", Attempt: 2, Class: event.EffectIdempotent}, " tool run · attempt 2 · idempotent", ""},
		{event.EffectCompletion{Error: &event.EffectError{Message: "no"}, By: "ann", Reason: "r"}, " error: no · recorded by ann: r", ""},
		{event.Wait{WaitID: "w", Reason: "mail"}, " mail · wait w", ""},
		{event.RunClaim{Epoch: 3, Runner: "r"}, " run 3 · by r", ""},
		{event.Abort{By: "ann"}, " by ann", ""},
		{event.ToolCompletion{Name: "run"}, " name: run", ""},
	} {
		e := event.New(tt.payload)
		n := transcript.Describe(&e)
		if got := n.Line(); got != tt.want || n.Text != tt.text {
			t.Errorf("%s: %q and %q, want %q and %q", e.Type, got, n.Text, tt.want, tt.text)
		}
	}
}

// An event whose data does not parse, and an event of another program, have the
// members of their data as words. Long members are text.
func TestNotesOfOtherEvents(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, name := range []event.Type{"head_moved", "other:note"} {
		e := event.Event{Type: name, Data: []byte(`{"to":"nowhere","log":"` + long + `"}`)}
		want := transcript.Note{Words: []string{"to: nowhere"}, Text: "log: " + long}
		if diff := cmp.Diff(want, transcript.Describe(&e)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
