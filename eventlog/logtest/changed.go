package logtest

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var changedCases = []testCase{
	{
		Name:        "before the append",
		Explanation: "An event of event.New whose data is changed in place is checked as any other event: nothing that verify reports gets into the log.",
		Run: func(t *env) {
			t.appendChanged(func(c *dataChange, e event.Event) (event.Head, error) {
				c.apply(e.Data)
				return t.Main().Append(t.Ctx, c.name, eventlog.Any(), e)
			})
		},
	},
	{
		Name:        "by a hook",
		Explanation: "A hook may change the data of an event in place. The changed bytes are checked.",
		Run: func(t *env) {
			t.appendChanged(func(c *dataChange, e event.Event) (event.Head, error) {
				l := t.LogOver(t.Store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
					c.apply(e.Data)
					return nil
				}})
				return l.Append(t.Ctx, c.name, eventlog.Any(), e)
			})
		},
	},
	{
		Name:        "shared by two events",
		Explanation: "A hook changes the data of the second event, which is also the data of the first event. Each event is stored as it was checked.",
		Run:         testChangedShared,
	},
}

// dataChange is a change of the data of an event to as many bytes.
type dataChange struct {
	name     string
	event    event.Event
	from, to string
	want     error // of the append; nil if the event is stored
}

func (c *dataChange) apply(data jsontext.Value) {
	copy(data, bytes.Replace(data, []byte(c.from), []byte(c.to), 1))
}

func dataChanges() []dataChange {
	call := func(id string) event.Event {
		return event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "f", jsontext.Value(`{}`))}})
	}
	developer := event.New(event.Message{Role: event.Developer, Parts: []event.Part{event.Text("hello")}})
	result := event.ToolMessage(event.ToolResult("open", "f", event.Text("done")))
	move := func(to int64) event.Event { return event.New(event.HeadMove{To: to}) }
	return []dataChange{
		{"broken JSON", event.UserMessage("hello"), `hello`, `hel"o`, event.ErrInvalidData},
		{"invalid UTF-8", event.UserMessage("hello"), "hello", "h\xffllo", event.ErrInvalidData},
		{"a role of another kind", event.UserMessage("hello"), `"user"`, `123456`, event.ErrInvalidPayload},
		{"an unknown role", event.UserMessage("hello"), `"user"`, `"usar"`, event.Rule("unknown_role")},
		{"a tool message without a result", event.UserMessage("hello"), `"user"`, `"tool"`, event.OrphanResult},
		{"a result of no call", result, `"open"`, `"none"`, event.OrphanResult},
		{"a move past the head", move(1), `1`, `9`, event.ErrInvalidTree},
		{"a move to no number", move(1), `1`, `x`, event.ErrInvalidData},
		{"another text", event.UserMessage("hello"), `hello`, `h\"lo`, nil},
		{"another role", developer, `"developer"`, `"assistant"`, nil},
		{"another call", call("call-1"), `call-1`, `call-2`, nil},
		{"another move, with a space", move(11), `11`, ` 1`, nil},
		{"a type of a program", suite.NewEvent("test:note", `{"n":1}`), `1`, `}`, event.ErrInvalidData},
	}
}

// blobChanges are changes of a reference to a blob.
func (t *env) blobChanges() []dataChange {
	first, second := t.putBlob(t.Main(), "first"), t.putBlob(t.Main(), "other")
	e := func() event.Event { return event.New(event.Artifact{ArtifactID: "a", Body: first}) }
	missing := event.DigestOf([]byte("missing"))
	return []dataChange{
		{"a missing blob", e(), string(first.Blob), string(missing), event.ErrInvalidBlob},
		{"a malformed digest", e(), string(first.Blob[:7]), "sha257:", event.ErrInvalidBlob},
		{"another blob", e(), string(first.Blob), string(second.Blob), nil},
	}
}

// appendChanged appends the event of each change to a session of its own. The session has an
// open call.
func (t *env) appendChanged(appendTo func(c *dataChange, e event.Event) (event.Head, error)) {
	changes := dataChanges()
	if _, ok := eventlog.As[eventlog.Blobs](t.Store()); ok {
		changes = append(changes, t.blobChanges()...)
	}
	for i := range changes {
		c := &changes[i]
		t.Append(t.Main(), c.name, eventlog.New(), event.UserMessage("hi"),
			event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("open", "f", jsontext.Value(`{}`))}}))
		before := t.Lines(t.Main(), c.name)
		changed := c.event.Data.Clone()
		c.apply(changed)
		t.WantEqual(c.name+": the change", false, bytes.Equal(changed, c.event.Data))
		_, err := appendTo(c, c.event)
		if c.want != nil || err != nil {
			t.wantChangeRefused(c, err)
			t.WantEqual(c.name+": lines", before, t.Lines(t.Main(), c.name))
		} else {
			clear(c.event.Data) // the log has bytes of its own
			t.wantChangeStored(c, changed)
		}
		t.WantVerified(t.Main(), c.name)
	}
}

func (t *env) wantChangeRefused(c *dataChange, err error) {
	t.Helper()
	if !errors.Is(err, c.want) {
		t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
	}
	if err != nil && !strings.Contains(err.Error(), string(c.event.Type)) {
		t.Errorf("%s: the error does not name the event: %v", c.name, err)
	}
}

// wantChangeStored checks that the log has the changed bytes, and decides by them.
func (t *env) wantChangeStored(c *dataChange, changed jsontext.Value) {
	t.Helper()
	t.Must(changed.Compact())
	e := t.Read(t.Reopen(), c.name, eventlog.Last(1))[0]
	t.WantEqual(c.name+": data", string(changed), string(e.Data))
	facts, err := e.Check()
	t.Must(err)
	answer := func(id string) event.Event { return event.ToolOutput(id, "f", []byte("done"), false) }
	switch c.name {
	case "another call":
		t.WantAppendError(event.OrphanResult, t.Main(), c.name, eventlog.Any(), answer("call-1"))
		t.Append(t.Main(), c.name, eventlog.Any(), answer("call-2"))
	case "another move, with a space":
		t.WantEqual("target", int64(1), facts.To)
		t.WantAppendError(event.OrphanResult, t.Main(), c.name, eventlog.Any(), answer("open"))
	}
}

func testChangedShared(t *env) {
	n := 0
	l := t.LogOver(t.Store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
		if n++; n == 2 {
			copy(e.Data, bytes.Replace(e.Data, []byte("hello"), []byte(`h\"lo`), 1))
		}
		return nil
	}})
	first := event.UserMessage("hello")
	second := first
	second.ID = event.NewID()
	t.Append(l, "a", eventlog.New(), first, second)
	events := t.Read(t.Reopen(), "a", eventlog.All())
	t.WantEqual("first", `{"role":"user","parts":[{"type":"text","text":"hello"}]}`, string(events[0].Data))
	t.WantEqual("second", `{"role":"user","parts":[{"type":"text","text":"h\"lo"}]}`, string(events[1].Data))
	t.WantVerified(t.Main(), "a")
}
