package event

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestMasked(t *testing.T) {
	e := UserMessage("hello")
	if e.Masked() {
		t.Error("a fresh event is masked")
	}
	for _, rule := range []string{"jwt", "npm-token", "jwt"} {
		if err := e.MarkMasked(rule); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(e.Metadata); !e.Masked() || got != `{"masked":["jwt","npm-token"]}` {
		t.Errorf("metadata %s", got)
	}
}

func TestStructural(t *testing.T) {
	for _, test := range []struct {
		t       Type
		pointer jsontext.Pointer
		want    bool
	}{
		{MessageAdded, "/role", true}, {MessageAdded, "/parts/0/call_id", true}, {MessageAdded, "/parts/0/text", false},
		{MessageAdded, "/parts/0/arguments/call_id", false}, {MessageAdded, "/extra/role", false}, {MessageAdded, "/calls", true},
		{"message_added/2", "/role", true}, {ToolCompleted, "/call_id", true}, {ToolCompleted, "/content/0/text", false},
		{CompactionTriggered, "/entries/0/message/parts/0/text", false}, {CompactionTriggered, "/summary", false},
		{ChildRequested.Type(), "/usage/extra/note", false}, {SessionForked, "/label", false}, {SessionForked, "/parent", true},
		{"shop:order", "/role", false}, {MessageAdded, "", false},
	} {
		if got := test.t.Structural(test.pointer); got != test.want {
			t.Errorf("%s %s: %v", test.t, test.pointer, got)
		}
	}
}
