package flow

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
)

// kindToolResult is the kind of the artifact that has a whole result.
const kindToolResult = "tool_result"

// limit is the number of bytes of text that the model gets of a result; 0 is no limit.
func (c *toolCall) limit() int {
	if c.turn == nil {
		return 0 // a person recorded the outcome
	}
	return c.turn.r.options.Limits.ToolResult
}

// shorten cuts a result that is too long for the model, and records the whole text as an
// artifact, together with the result of the call.
func (c *toolCall) shorten(ctx context.Context, parts []event.Part) ([]event.Part, error) {
	limit := c.limit()
	var whole strings.Builder
	for i := range parts {
		if parts[i].Type == event.TextPart {
			whole.WriteString(parts[i].Text)
		}
	}
	running, ok := FromContext(ctx)
	if limit <= 0 || whole.Len() <= limit || !ok {
		return parts, nil
	}
	a := event.Artifact{ArtifactID: uuid.NewSHA1(uuid.Nil, []byte(kindToolResult+"/"+running.Key)).String(), Kind: kindToolResult, MediaType: "text/plain",
		Description: "the whole result of a call of the tool " + c.call.Name}
	var err error
	if a.Extra, err = json.Marshal(map[string]string{"call_id": c.call.CallID}); err != nil {
		return nil, err
	}
	if err := running.SetArtifact(ctx, a, []byte(whole.String())); err != nil {
		return nil, err
	}
	text := event.Text(shortened(whole.String(), limit, fmt.Sprintf("artifact %q", a.ArtifactID)))
	short := []event.Part{text}
	for _, p := range parts {
		if p.Type != event.TextPart {
			short = append(short, p)
		}
	}
	return short, nil
}

// shortened is a text with at most limit bytes of it, and a mark that says where the whole
// text is.
func shortened(text string, limit int, place string) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	n := limit
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s\n[cut after %d of %d bytes; the whole text is %s]", text[:n], n, len(text), place)
}
