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

// step is an answer of a script.
type step func(context.Context, *flow.Request) (flow.Response, error)

// The three steps of the support: look the order up, ask the carrier or refund it, and tell
// the customer. Without tools, the request is for a summary.
func look(_ context.Context, r *flow.Request) (flow.Response, error) {
	if len(r.Tools) == 0 {
		return answer("The customer asked about orders, and got answers."), nil
	}
	return calls(r, "Let me look.", "find_order", `{"id":%q}`), nil
}

func act(_ context.Context, r *flow.Request) (flow.Response, error) {
	if strings.Contains(asked(r), "refund") {
		return calls(r, "I ask for your money.", "refund", `{"id":%q,"cents":1250}`), nil
	}
	return calls(r, "I ask the carrier.", "carrier", `{"task":"Where is the parcel of %s?"}`), nil
}

func tell(_ context.Context, r *flow.Request) (flow.Response, error) {
	return answer("Here is what I know: " + result(r) + "."), nil
}

// result is the result of the last call.
func result(r *flow.Request) string {
	return r.Messages[len(r.Messages)-1].Message.ToolResults()[0].Content[0].Text
}

// calls is a text with a call of a tool about the order in the question.
func calls(r *flow.Request, text, tool, arguments string) flow.Response {
	call := event.ToolCall(fmt.Sprint("call-", len(r.Messages)), tool, fmt.Appendf(nil, arguments, number.FindString(asked(r))))
	return answer(text, call)
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
