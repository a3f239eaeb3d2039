package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

func TestPayloadRules(t *testing.T) {
	nonce := strings.Repeat("0a", 16)
	id := ulid.MustParse(sampleID)
	text := []Part{Text("t")}
	result := ToolResult("1", "n")
	extra := jsontext.Value(`[]`)
	for _, test := range []struct {
		payload Payload
		rule    error
		names   string // what the error's text names
	}{
		{Message{Role: "robot", Parts: text}, errRole, "robot"},
		{Message{Parts: text}, errRole, "role"},
		{Message{Role: Assistant}, emptyMessage, "parts"},
		{Message{Role: Assistant, Parts: []Part{Text(""), Reasoning("", "")}}, emptyMessage, "parts"},
		{Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", nil), ToolCall("1", "n", nil)}}, duplicateCall, "call_id"},
		{Message{Role: Assistant, Parts: manyCalls(40, 39)}, duplicateCall, "call_id"},
		{Message{Role: Tool, Parts: text}, OrphanResult, "tool_result"},
		{Message{Role: Tool, Parts: []Part{result, result}}, OrphanResult, "call_id"},
		{Message{Role: User, Usage: Usage{CacheReadTokens: -1}}, ErrInvalidPayload, "usage"},
		{Message{Role: User, Usage: Usage{Extra: extra}}, ErrInvalidPayload, "usage.extra"},
		{Message{Role: User, Extra: extra}, ErrInvalidPayload, "extra"},
		{withPart(Part{}), ErrInvalidPayload, "type"},
		{withPart(Part{Type: TextPart, Extra: extra}), ErrInvalidPayload, "extra"},
		{withPart(ToolCall("", "n", nil)), ErrInvalidPayload, "call_id"},
		{withPart(ToolCall("1", "", nil)), ErrInvalidPayload, "name"},
		{withPart(Part{Type: TextPart, Text: "t", Blob: BlobRef{Blob: "x"}}), ErrInvalidBlob, "blob"},
		{withPart(Part{Type: ServerToolCallPart, Name: "n"}), ErrInvalidPayload, "call_id"},
		{withPart(ToolResult("", "n")), ErrInvalidPayload, "call_id"},
		{withPart(ToolResult("1", "n", Part{Type: ImagePart})), ErrInvalidPayload, "blob"},
		{withPart(Part{Type: ImagePart, URL: "u", Data: []byte("d")}), ErrInvalidPayload, "2 of blob, url and data"},
		{withPart(Image("", BlobRef{Blob: sampleDigest, Bytes: -1})), ErrInvalidBlob, "blob"},
		{withPart(Opaque("", nil)), ErrInvalidPayload, "kind"},

		{ContextEntry{Placement: InHistory}, ErrInvalidPayload, "parts"},
		{ContextEntry{Placement: "above", Parts: text}, ErrInvalidPayload, "placement"},
		{Compaction{Covers: Stretch{From: 3, To: 2}}, ErrInvalidPayload, "covers"},
		{Compaction{Covers: Stretch{From: 0, To: 2}}, ErrInvalidPayload, "covers"},
		{Compaction{Entries: []CompactionEntry{{}}}, ErrInvalidPayload, "entries"},
		{Compaction{Entries: []CompactionEntry{{Seq: 1, Message: &Message{Role: User}}}}, ErrInvalidPayload, "entries"},
		{Compaction{Entries: []CompactionEntry{{Seq: -1, Message: &Message{Role: User}}}}, ErrInvalidPayload, "entries"},
		{Compaction{Entries: []CompactionEntry{{Message: &Message{}}}}, errRole, "entries"},
		{Compaction{TokensAfter: -1}, ErrInvalidPayload, "tokens_after"},
		{External{Extra: extra}, ErrInvalidPayload, "extra"},
		{Handoff{FromAgent: "a"}, ErrInvalidPayload, "to_agent"},
		{Escalation{Attempt: -1}, ErrInvalidPayload, "attempt"},
		{Op{Extra: extra}, ErrInvalidPayload, "extra"},

		{Session{Updated: true, Parent: SessionParent{SessionID: "s"}}, ErrInvalidPayload, "parent"},
		{Session{Labels: map[string]*string{"l": nil}}, ErrInvalidPayload, "labels"},
		{Session{Parent: SessionParent{Seq: -1}}, ErrInvalidPayload, "parent.seq"},
		{TurnStart{Index: -1}, ErrInvalidPayload, "index"},
		{TurnCompletion{}, ErrInvalidPayload, "status"},
		{TurnCompletion{Status: TurnStatusFailed, DurationMS: -1}, ErrInvalidPayload, "duration_ms"},
		{TurnHibernation{Cursor: Cursor{ID: "c", Kind: "k"}}, ErrInvalidPayload, "turn_id"},
		{TurnHibernation{TurnID: id, Cursor: Cursor{Kind: "k"}}, ErrInvalidPayload, "cursor.id"},
		{TurnHibernation{TurnID: id, Cursor: Cursor{ID: "c"}}, ErrInvalidPayload, "cursor.kind"},
		{TurnResumption{CursorID: "c"}, ErrInvalidPayload, "turn_id"},
		{TurnResumption{TurnID: id}, ErrInvalidPayload, "cursor_id"},
		{StepStart{Step: -1}, ErrInvalidPayload, "step"},
		{StepStart{RequestDigest: "md5:1"}, ErrInvalidPayload, "request_digest"},
		{StepCompletion{Usage: Usage{OutputTokens: -1}}, ErrInvalidPayload, "usage"},
		{ToolStart{Name: "n"}, ErrInvalidPayload, "call_id"},
		{ToolStart{CallID: "1"}, ErrInvalidPayload, "name"},
		{ToolCompletion{IdempotencyKey: "k", Name: "n", Content: []Part{{}}}, ErrInvalidPayload, "type"},
		{ApprovalRequest{}, ErrInvalidPayload, "interrupt_id"},
		{ApprovalRequest{InterruptID: "i", ArgumentsDigest: DigestOf(nil)}, ErrInvalidPayload, "nonce"},
		{ApprovalRequest{InterruptID: "i", Nonce: nonce, ArgumentsDigest: "x"}, ErrInvalidPayload, "arguments_digest"},
		{ApprovalResolution{InterruptID: "i", Decision: "maybe"}, ErrInvalidPayload, "decision"},
		{ApprovalCancelation{}, ErrInvalidPayload, "interrupt_id"},
		{Wait{}, ErrInvalidPayload, "wait_id"},
		{Wait{WaitID: "w", Resolved: true, Until: time.Unix(1, 0)}, ErrInvalidPayload, "until"},
		{Wait{WaitID: "w", Value: jsontext.Value(`1`)}, ErrInvalidPayload, "value"},

		{RunClaim{}, ErrInvalidPayload, "epoch"},
		{RunRelease{}, ErrInvalidPayload, "epoch"},
		{Abort{Extra: extra}, ErrInvalidPayload, "extra"},
		{EffectIntent{Class: EffectPure}, ErrInvalidPayload, "key"},
		{EffectIntent{Key: "k"}, ErrInvalidPayload, "class"},
		{EffectIntent{Key: "k", Class: EffectPure, ArgumentsDigest: DigestOf(nil)}, ErrInvalidPayload, "nonce"},
		{EffectIntent{Key: "k", Class: EffectPure, Nonce: "AB"}, ErrInvalidPayload, "nonce"},
		{EffectIntent{Key: "k", Class: EffectPure, Ordinal: "0..2"}, ErrInvalidPayload, "ordinal"},
		{EffectIntent{Key: "k", Class: EffectPure, Ordinal: "a"}, ErrInvalidPayload, "ordinal"},
		{EffectCompletion{}, ErrInvalidPayload, "key"},
		{EffectCompletion{Key: "k", Result: jsontext.Value(`1`), Error: &EffectError{}}, ErrInvalidPayload, "error"},

		{Child{ChildID: "c"}, ErrInvalidPayload, "type"},
		{Child{ChildID: "c", State: "lost"}, ErrInvalidPayload, "child_lost"},
		{Child{State: ChildStarted}, ErrInvalidPayload, "child_id"},
		{Child{ChildID: "c", State: ChildStarted, Mode: "twin"}, ErrInvalidPayload, "mode"},
		{Artifact{Name: "n"}, ErrInvalidPayload, "artifact_id"},
		{Artifact{ArtifactID: "a", Body: BlobRef{Bytes: 3}}, ErrInvalidBlob, "body"},
		{Artifact{ArtifactID: "a", Parts: []Part{Text("x"), {}}}, ErrInvalidPayload, "part 1"},
		{patch(``), ErrInvalidPayload, "patch"},
		{patch(`{}`), ErrInvalidPayload, "patch"},
		{patch(`[{"op":"add","path":"/a"}]`), ErrInvalidPayload, "value"},
		{patch(`[{"op":"add","value":1}]`), ErrInvalidPayload, "path"},
		{patch(`[{"op":"add","path":"a","value":1}]`), ErrInvalidPayload, "path"},
		{patch(`[{"op":"move","path":"/a"}]`), ErrInvalidPayload, "from"},
		{patch(`[{"op":"merge","path":"/a"}]`), ErrInvalidPayload, "op"},
		{Snapshot{}, ErrInvalidPayload, "projection"},
		{Snapshot{Projection: "p", State: jsontext.Value(`1`), Body: BlobRef{Blob: sampleDigest}}, ErrInvalidPayload, "state"},
		{Snapshot{Projection: "p", StateDigest: "x"}, ErrInvalidPayload, "state_digest"},
		{Snapshot{Projection: "p", Index: -1}, ErrInvalidPayload, "index"},
		{Snapshot{Projection: "p", Seq: -1}, ErrInvalidPayload, "seq"},
		{Snapshot{Projection: "p", Body: BlobRef{Blob: "x"}}, ErrInvalidBlob, "body"},

		{HeadMove{To: -1}, ErrInvalidTree, "to"},
		{Fork{Seq: 1, EventID: id, Hash: Hash{1}}, ErrInvalidTree, "parent"},
		{Fork{Parent: "p", Seq: -1}, ErrInvalidTree, "seq"},
		{Fork{Parent: "p", Seq: 1, Hash: Hash{1}}, ErrInvalidTree, "event_id"},
		{Fork{Parent: "p", Seq: 1, EventID: id}, ErrInvalidTree, "hash"},
		{Fork{Parent: "p", EventID: id}, ErrInvalidTree, "event_id"},
		{RedactionNote{}, ErrInvalidPayload, "seqs"},
		{RedactionNote{Seqs: []int64{0}}, ErrInvalidPayload, "seqs"},
		{RedactionNote{Seqs: []int64{1}, Kept: "x"}, ErrInvalidPayload, "kept"},
		{AccountingFlush{}, ErrInvalidPayload, "ledger"},
		{AccountingFlush{Ledger: "l", Total: -1}, errCost, "negative"},
		{Loss{}, ErrInvalidPayload, "reason"},
		{lossAt(-1), ErrInvalidPayload, "source.offset"},
	} {
		err := encodeStrictly(test.payload)
		if !errors.Is(err, test.rule) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v, want %v", test.payload, err, test.rule)
		} else if !strings.Contains(err.Error(), test.names) {
			t.Errorf("%+v: %q does not name %q", test.payload, err, test.names)
		}
	}
}

// encodeStrictly applies the payload's own rules, then encodes it.
func encodeStrictly(p Payload) error {
	if err := Validate(p); err != nil {
		return err
	}
	return ptr(New(p)).Normalize()
}

func ptr[T any](v T) *T { return &v }

// A lenient append forgives rules of conversation only, so structure is
// looked at first.
func TestStructureComesBeforeConversation(t *testing.T) {
	broken := Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", nil), ToolCall("1", "", nil)}}
	if err := Validate(broken); !errors.Is(err, ErrInvalidPayload) {
		t.Errorf("duplicate call without a name: %v", err)
	}
}

func TestParseRefusesAnotherShape(t *testing.T) {
	for name, data := range map[Type]string{
		MessageAdded:      `{"role":"user","parts":{"type":"text"}}`,
		ToolCompleted:     `{"call_id":1}`,
		TurnCompleted:     `{"turn_id":"not a ulid, but 26 long!!!"}`,
		SessionForked:     `{"hash":"abc"}`,
		HeadMoved:         `{"to":"1"}`,
		SessionStarted:    `{"labels":{"a":1}}`,
		WaitStarted:       `{"until":"tomorrow"}`,
		ArtifactRecorded:  `{"body":"` + sampleDigest + `"}`,
		AccountingFlushed: `{"total":-1}`,
		CustomPatched:     `[]`,
		TurnStarted:       `null`,
		SessionUpdated:    ` null`,
	} {
		if p, err := vocabulary[name].decode(name, jsontext.Value(data)); err == nil {
			t.Errorf("%s: %s parsed as %+v", name, data, p)
		}
	}
}

func withPart(p Part) Message { return Message{Role: User, Parts: []Part{p}} }

func patch(text string) CustomPatch { return CustomPatch{Patch: jsontext.Value(text)} }

// manyCalls are n calls; the last has the id of call twin.
func manyCalls(n, twin int) (parts []Part) {
	for i := range n {
		parts = append(parts, ToolCall(string(rune('a'+i)), "n", nil))
	}
	return append(parts, parts[twin])
}

// An unknown word counts as the careful one, as docs/FORMAT.md lists them.
func TestUnknownWordsAreCareful(t *testing.T) {
	for _, x := range []struct {
		name                  string
		known, unknown, empty any
		want                  string
	}{
		{"decision", Approved.Known(), Decision("waved").Known(), Decision("").Known(), "approved, denied, denied"},
		{"class", EffectPure.Known(), EffectClass("twice").Known(), EffectClass("").Known(), "pure, unsafe_once, unsafe_once"},
		{"status", TurnStatusFailed.Known(), TurnStatus("paused").Known(), TurnStatus("").Known(), "failed, interrupted, interrupted"},
		{"mode", ChildFork.Known(), ChildMode("twin").Known(), ChildMode("").Known(), "fork, fresh, "},
		{"outcome", WaitExpired.Known(), WaitOutcome("maybe").Known(), WaitOutcome("").Known(), "expired, canceled, resolved"},
		{"lapse", LapseFail.Known(), Lapse("ask").Known(), Lapse("").Known(), "fail, wait, wait"},
	} {
		if got := fmt.Sprintf("%s, %s, %s", x.known, x.unknown, x.empty); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

func lossAt(offset int64) Loss {
	l := Loss{Reason: "r"}
	l.Source.Offset = offset
	return l
}

func TestNoPayloadHasNoBlobs(t *testing.T) {
	var noPayload *Artifact
	if blobs := append(blobsOf(nil), blobsOf(noPayload)...); blobs != nil {
		t.Errorf("blobs of nil: %v", blobs)
	}
}
