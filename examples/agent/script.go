package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

var number = regexp.MustCompile(`[A-Z]\d+|$`)

// The three steps of the script: look the order up, track or refund it, and tell the
// customer.
func look(_ context.Context, r *flow.Request) (flow.Response, error) {
	return say(r, "Let me look.", "find_order", `{"id":%q}`), nil
}

func act(_ context.Context, r *flow.Request) (flow.Response, error) {
	if strings.Contains(asked(r), "refund") {
		return say(r, "I ask for your money.", "refund", `{"id":%q,"cents":1250}`), nil
	}
	return say(r, "And the parcel.", "track", `{"id":%q}`), nil
}

func tell(_ context.Context, r *flow.Request) (flow.Response, error) {
	result := r.Messages[len(r.Messages)-1].Message.ToolResults()[0].Content[0].Text
	return flow.ScriptText("Here is what I know: " + result + ".").Response, nil
}

// say is a text with a call of a tool about the order in the question.
func say(r *flow.Request, text, tool, arguments string) flow.Response {
	call := event.ToolCall(fmt.Sprint("call-", len(r.Messages)), tool, fmt.Appendf(nil, arguments, number.FindString(asked(r))))
	return flow.ScriptText(text, call).Response
}

// asked is the last text of the user.
func asked(r *flow.Request) (text string) {
	for _, x := range r.Messages {
		if x.Message.Role == event.User {
			text = x.Message.Text()
		}
	}
	return text
}
