package openai

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/openai"
)

// The members of a request besides the messages.
type (
	tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitzero"`
		Parameters  jsontext.Value `json:"parameters"`
	}
	responseFormat struct {
		Type   string `json:"type"`
		Schema schema `json:"json_schema"`
	}
	schema struct {
		Name   string         `json:"name"`
		Schema jsontext.Value `json:"schema"`
	}
	streamOptions struct {
		Usage bool `json:"include_usage"`
	}
)

// outputName is the name of the schema of the answer.
const outputName = "answer"

// body builds the body of a request.
func (c *Client) body(r *flow.Request) (jsontext.Value, error) {
	model := cmp.Or(r.Model, c.Model)
	if model == "" {
		return nil, httpmodel.Refuse(c.provider(), errors.New("no model is named"))
	}
	rendered, err := openai.Chat(httpmodel.History(r), openai.Options{Provider: c.provider(), Model: model, Blob: r.Blob})
	if err != nil {
		return nil, err
	}
	messages, _, err := rawjson.Lookup(rendered, "messages")
	if err != nil {
		return nil, httpmodel.Refuse(c.provider(), err)
	}
	var b httpmodel.Body
	b.Set("model", model)
	b.Set("messages", messages)
	b.SetTools(r.Tools, func(t flow.ToolSpec) any {
		return tool{"function", function{modelapi.OpenAIToolName(t.Name), t.Description, t.Parameters}}
	})
	if r.Output != nil {
		b.Set("response_format", responseFormat{"json_schema", schema{outputName, r.Output}})
	}
	b.Set("stream", true)
	b.Set("stream_options", streamOptions{true})
	if err := b.Merge(r.Parameters, "model", "messages", "stream", "n"); err != nil {
		return nil, httpmodel.Refuse(c.provider(), err)
	}
	return b.JSON(), nil
}
