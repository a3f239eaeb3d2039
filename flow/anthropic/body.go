package anthropic

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/anthropic"
)

// The members of a request besides system and messages.
type (
	tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitzero"`
		InputSchema jsontext.Value `json:"input_schema"`
	}
	outputConfig struct {
		Format outputFormat `json:"format"`
	}
	outputFormat struct {
		Type   string         `json:"type"`
		Schema jsontext.Value `json:"schema"`
	}
)

// body builds the body of a request. Thinking of any model of the provider is rendered:
// the name of a model in an answer is often longer than its name in a request.
func (c *Client) body(r *flow.Request) (jsontext.Value, error) {
	model := cmp.Or(r.Model, c.Model)
	if model == "" {
		return nil, httpmodel.Refuse(c.provider(), errors.New("no model is named"))
	}
	rendered, err := anthropic.Messages(httpmodel.History(r), anthropic.Options{Provider: c.provider(), Blob: r.Blob})
	if err != nil {
		return nil, err
	}
	members, err := rawjson.Members(rendered)
	if err != nil {
		return nil, httpmodel.Refuse(c.provider(), err)
	}
	var b httpmodel.Body
	b.Set("model", model)
	b.Set("max_tokens", MaxTokens)
	for _, m := range members {
		b.Set(m.Name, m.Value)
	}
	b.SetTools(r.Tools, func(t flow.ToolSpec) any {
		return tool{modelapi.AnthropicToolName(t.Name), t.Description, t.Parameters}
	})
	if r.Output != nil {
		b.Set("output_config", outputConfig{outputFormat{"json_schema", r.Output}})
	}
	b.Set("stream", true)
	if err := b.Merge(r.Parameters, "model", "messages", "system", "stream"); err != nil {
		return nil, httpmodel.Refuse(c.provider(), err)
	}
	return b.JSON(), nil
}
