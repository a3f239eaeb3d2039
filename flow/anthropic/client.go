// Package anthropic asks models over Anthropic's Messages API.
//
//	model := &anthropic.Client{Key: key, Model: "claude-sonnet-4-5"}
//	turn := flow.Chat[State](model, flow.Request{System: "Be kind."})
package anthropic

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
)

// Defaults of the API.
const (
	// BaseURL is the default of Client.BaseURL.
	BaseURL = "https://api.anthropic.com"
	// Version is the default of the header Anthropic-Version.
	Version = "2023-06-01"
	// MaxTokens is the default of the parameter max_tokens: the largest number that all
	// models since Claude 4 accept.
	MaxTokens = 32_000
)

// Client is a flow.Model that asks a server with the Messages API. It streams each
// answer. Its fields must not change once it is used. It may be used concurrently.
type Client struct {
	// BaseURL is the address of the API without "/v1/messages"; BaseURL of the package if
	// empty. A query in it is kept.
	BaseURL string
	// Key is sent in the header X-Api-Key, unless it is empty.
	Key string
	// Model is the model of requests that name none.
	Model string
	// Provider is the provider of the answers; "anthropic" if empty. Requests render
	// thinking and server tools of this provider only.
	Provider string
	// Header is added to each request, or nil: for example Anthropic-Beta.
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
	Parse: anthropic.Answer, ToolName: modelapi.AnthropicToolName, NoFinish: errNoFinish,
	Stops: map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
		"refusal": "blocked", "tool_use": "tool_calls",
	},
}

// Generate asks the model and returns its answer. It emits text, thinking and the
// arguments of calls while they arrive. Generate does not try again after an error.
//
// Parameters of the request are added to the body and may replace any member of it but
// model, messages, system and stream; null removes a member. The tools among them,
// for example the server's own tools, are added after the tools of the request. If
// max_tokens is absent, it is MaxTokens.
//
// The stop reason is stop, length, blocked or tool_calls, if the server's word means one
// of them; else it is the server's word, for example pause_turn. A replaced word is
// stop_reason in the message's Extra. Thinking keeps its signature.
//
// Errors are a *flow.ModelError, also if the answer breaks off, the error of ctx, or
// errors of Request.Blob.
func (c *Client) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	body, err := c.body(r)
	if err != nil {
		return flow.Response{}, err
	}
	call := httpmodel.Call{
		Provider: c.provider(), Key: c.Key, HTTP: c.HTTP, URL: cmp.Or(c.BaseURL, BaseURL), Path: "v1/messages",
		Header: c.header(), Body: body, Silence: c.Silence, Now: c.Now,
	}
	s := stream{call: &call, emit: emit}
	answer, err := call.Do(ctx, s.add)
	streamed := answer == nil
	if streamed && err == nil {
		answer, err = s.answer()
	}
	if err != nil {
		return flow.Response{}, err
	}
	m, err := call.Answer(answer, &format, r, c.Model)
	if err == nil && !streamed {
		httpmodel.EmitWhole(m.Parts, emit)
	}
	return flow.Response{Message: m}, err
}

func (c *Client) provider() string { return cmp.Or(c.Provider, modelapi.Anthropic) }

func (c *Client) header() http.Header {
	h := http.Header{}
	h.Set("Anthropic-Version", Version)
	if c.Key != "" {
		h.Set("X-Api-Key", c.Key)
	}
	maps.Copy(h, c.Header)
	return h
}
