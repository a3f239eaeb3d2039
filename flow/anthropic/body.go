package anthropic

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel"
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
		Format format `json:"format"`
	}
	format struct {
		Type   string         `json:"type"`
		Schema jsontext.Value `json:"schema"`
	}
)

// body builds the body of a request. Thinking of any model of the provider is rendered:
// the name of a model in an answer is often longer than its name in a request.
func (c *Client) body(r *flow.Request) (jsontext.Value, error) {
	model := cmp.Or(r.Model, c.Model)
	if model == "" {
		return nil, c.refuse(errors.New("no model is named"))
	}
	rendered, err := anthropic.Messages(httpmodel.History(r), anthropic.Options{Provider: c.provider(), Blob: r.Blob})
	if err != nil {
		return nil, err
	}
	members, err := rawjson.Members(rendered)
	if err != nil {
		return nil, c.refuse(err)
	}
	var b httpmodel.Body
	b.Set("model", model)
	b.Set("max_tokens", MaxTokens)
	for _, m := range members {
		b.Set(m.Name, m.Value)
	}
	if len(r.Tools) > 0 {
		b.Set("tools", toolsOf(r.Tools))
	}
	if r.Output != nil {
		b.Set("output_config", outputConfig{format{"json_schema", r.Output}})
	}
	b.Set("stream", true)
	if err := b.Merge(r.Parameters, "model", "messages", "system", "stream"); err != nil {
		return nil, c.refuse(err)
	}
	return b.JSON(), nil
}

func toolsOf(tools []flow.Tool) []tool {
	all := make([]tool, len(tools))
	for i, t := range tools {
		parameters := t.Parameters
		if parameters == nil {
			parameters = httpmodel.NoArguments
		}
		all[i] = tool{anthropic.ToolName(t.Name), t.Description, parameters}
	}
	return all
}
