// Package openai asks models over OpenAI's Chat Completions API, which many other servers
// have too.
//
//	model := &openai.Client{Key: key, Model: "gpt-5"}
//	turn := flow.Chat[State](model, flow.Request{System: "Be kind."})
package openai

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/openai"
)

// BaseURL is the default of Client.BaseURL.
const BaseURL = "https://api.openai.com/v1"

// Client is a flow.Model that asks a server with the Chat Completions API. It streams
// each answer. Its fields must not change once it is used. It may be used concurrently.
type Client struct {
	// BaseURL is the address of the API without "/chat/completions"; BaseURL of the
	// package if empty. A query in it is kept.
	BaseURL string
	// Key is sent as a bearer token, unless it is empty.
	Key string
	// Model is the model of requests that name none.
	Model string
	// Provider is the provider of the answers; "openai" if empty.
	Provider string
	// Header is added to each request, or nil.
	Header http.Header
	// HTTP sends the requests; nil is http.DefaultClient. Redirects are not followed.
	HTTP *http.Client
	// Silence is the longest wait for the next bytes of an answer; 10 minutes if 0. The
	// call then fails, and is worth another attempt.
	Silence time.Duration
	// Now returns the time; time.Now if nil. It is used if a server gives the time of the
	// next attempt as a date.
	Now func() time.Time
}

var _ flow.Model = (*Client)(nil)

// format is the format of the answers.
var format = httpmodel.Format{
	Parse: openai.ChatAnswer, ToolName: modelapi.OpenAIToolName, NoFinish: errNoFinish,
	Stops: map[string]string{
		"stop": "stop", "length": "length", "content_filter": "blocked", "tool_calls": "tool_calls", "function_call": "tool_calls",
	},
}

// Generate asks the model and returns its answer. It emits text, reasoning and the
// arguments of calls while they arrive. Generate does not try again after an error.
//
// Parameters of the request are added to the body and may replace any member of it but
// model, messages, stream and n; null removes a member. The tools among them are
// added after the tools of the request.
//
// The stop reason is stop, length, blocked or tool_calls, if the server's word means one
// of them; else it is the server's word. A replaced word is stop_reason in the message's
// Extra. Calls of tools that are not functions, and unknown members, are in the Extra too.
//
// Errors are a *flow.ModelError, also if the answer breaks off, the error of ctx, or
// errors of Request.Blob.
func (c *Client) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	body, err := c.body(r)
	if err != nil {
		return flow.Response{}, err
	}
	call := httpmodel.Call{
		Provider: c.provider(), Key: c.Key, HTTP: c.HTTP, URL: cmp.Or(c.BaseURL, BaseURL), Path: "chat/completions",
		Header: c.header(), Body: body, Silence: c.Silence, Now: c.Now,
	}
	s := stream{call: &call, emit: emit}
	answer, err := call.Do(ctx, s.add)
	if answer == nil && err == nil {
		answer, err = s.answer()
	}
	if err != nil {
		return flow.Response{}, err
	}
	m, err := call.Answer(answer, &format, r, c.Model)
	if err != nil {
		return flow.Response{}, err
	}
	if s.inOrder(m.Parts); len(s.slots) == 0 {
		httpmodel.EmitWhole(m.Parts, emit)
	}
	return flow.Response{Message: m, Cost: costOf(m.Usage)}, nil
}

// costOf returns the cost in dollars that some servers tell with the usage; 0 if there is
// none.
func costOf(u event.Usage) event.Cost {
	var extra struct {
		Cost float64 `json:"cost"`
	}
	if u.Extra == nil || json.Unmarshal(u.Extra, &extra) != nil {
		return 0
	}
	cost, err := event.USD(extra.Cost)
	if err != nil {
		return 0
	}
	return cost
}

func (c *Client) provider() string { return cmp.Or(c.Provider, modelapi.OpenAI) }

func (c *Client) header() http.Header {
	h := http.Header{}
	if c.Key != "" {
		h.Set("Authorization", "Bearer "+c.Key)
	}
	maps.Copy(h, c.Header)
	return h
}
