package lists

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// foreignMembers are members of messages in the histories of programs. They hold calls,
// results, branches or usage that this package would not read.
var foreignMembers = []string{
	"parts", "toolInvocations", "tool_invocations", "experimental_attachments", // AI SDK
	"childrenIds", "children", "parentId", "parentUuid", "parent_id", // trees
	"modelInfo", "condenseParent", "condenseId", "conversationHistoryIndex", // Cline and Roo Code
	"toolRequests", "toolCalls", "toolResults", // other programs
}

// foreignBlocks are types of blocks in the histories of programs, for calls and results.
var foreignBlocks = []string{"tool-call", "tool-result", "toolCall", "toolResult", "toolRequest", "toolResponse", "tool_call", "tool_response"}

// foreignError rejects a list whose messages resemble messages of an API, and are of the
// history of a program that the format cannot read completely.
type foreignError struct {
	message int    // from 1; 0 for a line that is no message
	line    int64  // the line, if it is no message
	sign    string // the member, or the type of the block or the line
}

func (e *foreignError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("line %d is a %q: the file is the event stream of a program, and no list of messages for an API", e.line, e.sign)
	}
	return fmt.Sprintf("message %d has %q: it is the history of a program, and no list of messages for an API", e.message, e.sign)
}

// foreign is the sign that a message is of another program; empty if it has none.
func foreign(v jsontext.Value) string {
	o, err := parts.Open(v)
	if err != nil || !messages.IsRole(o.PeekText("role")) {
		return ""
	}
	for _, name := range foreignMembers {
		if kind := o.Peek(name).Kind(); kind == '[' || kind == '{' || kind == '"' {
			return name
		}
	}
	blocks, err := rawjson.Elements(o.Peek("content"))
	for i := 0; err == nil && i < len(blocks); i++ {
		b, err := parts.Open(blocks[i])
		if err == nil && slices.Contains(foreignBlocks, b.PeekText("type")) {
			return b.PeekText("type")
		}
	}
	return ""
}

// foreignLine is the type of a value between messages on lines that is a call or a result of
// its own, as in the event streams of programs; empty for other values.
func foreignLine(v jsontext.Value) string {
	o, err := parts.Open(v)
	if err != nil || o.Has("role") {
		return ""
	}
	if kind := o.PeekText("type"); kind == "tool_use" || kind == "tool_result" {
		return kind
	}
	return ""
}

// check returns a *foreignError if a message of the conversation is of another program.
func (c *conversation) check() error {
	n := 0
	for e, err := range c.elements() {
		if err != nil {
			return err
		}
		n++
		if sign := foreign(e.value); sign != "" {
			return &foreignError{message: n, sign: sign}
		}
	}
	return nil
}

// isForeign reports whether a message in the first value of a file, or a line after it, is of
// another program. The last value may be truncated.
func isForeign(begin []byte) bool {
	d := lax(begin)
	v, err := d.ReadValue()
	if err != nil {
		v = closeList(begin)
	}
	v = v.Clone()
	for err == nil {
		var line jsontext.Value
		if line, err = d.ReadValue(); err == nil && foreignLine(line) != "" {
			return true
		}
	}
	if foreign(v) != "" {
		return true
	}
	if v.Kind() != '{' && v.Kind() != '[' {
		return false
	}
	for rec := range each(&records.Record{Value: v}) {
		if c, ok := fromElement(rec, rec.Value); ok && c.check() != nil {
			return true
		}
	}
	return false
}
