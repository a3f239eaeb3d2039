package openhands

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// response is the answer of the provider, in the format of Chat Completions.
type response struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Stop    string `json:"finish_reason"`
		Message struct {
			Content   jsontext.Value `json:"content"`
			Reasoning string         `json:"reasoning_content"`
			Calls     []struct {
				ID       string `json:"id"`
				Function struct {
					Arguments jsontext.Value `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		tokens
		Read    int64 `json:"cache_read_input_tokens"`
		Written int64 `json:"cache_creation_input_tokens"`
		Details *struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// text is the text of the answer.
func (r *response) text() string {
	if len(r.Choices) == 0 {
		return ""
	}
	content := r.Choices[0].Message.Content
	if len(content) == 0 {
		return ""
	}
	texts, _ := (&parts.Reader{}).Content(content) // a Reader without Put returns no error
	return event.Message{Parts: texts}.Text()
}

func (r *response) reasoning() string {
	if len(r.Choices) == 0 {
		return ""
	}
	return r.Choices[0].Message.Reasoning
}

func (r *response) stop() string {
	if len(r.Choices) == 0 {
		return ""
	}
	return r.Choices[0].Stop
}

// firstCall is the id of the first call; empty if there is none.
func (r *response) firstCall() string {
	for _, choice := range r.Choices {
		for _, c := range choice.Message.Calls {
			return c.ID
		}
	}
	return ""
}

// arguments are the arguments of a call.
func (r *response) arguments(id string) jsontext.Value {
	for _, choice := range r.Choices {
		for _, c := range choice.Message.Calls {
			if c.ID == id && len(c.Function.Arguments) > 0 {
				return parts.Arguments(c.Function.Arguments)
			}
		}
	}
	return nil
}

// usage are the tokens of the response, from the metrics or else from the response.
func (r *response) usage(used map[string]event.Usage) event.Usage {
	if u, ok := used[r.ID]; ok {
		return u
	}
	u := &r.Usage
	read := u.Read
	if u.Details != nil && read == 0 {
		read = u.Details.Cached
	}
	return tokens{u.Prompt, u.Completion, read, u.Written}.usage()
}

// arguments are the arguments of an action without a call.
func arguments(action jsontext.Value) jsontext.Value {
	o, err := parts.Open(action)
	if err != nil {
		return nil
	}
	args, err := parts.Open(o.Peek("args"))
	if err != nil {
		return nil
	}
	for _, name := range []string{"thought", "reasoning_content"} {
		if _, ok := rawjson.Text(args.Peek(name)); ok {
			args.Take(name)
		}
	}
	return args.Rest()
}

// extra is the event without the members that its message has.
func extra(v jsontext.Value, e *step, role event.Role) jsontext.Value {
	o, err := parts.Open(v)
	if err != nil {
		return nil
	}
	if role == event.Tool {
		o.Take("content")
		var metadata struct {
			Response jsontext.Value `json:"model_response"`
		}
		called := o.Peek("tool_call_metadata")
		if len(called) > 0 && json.Unmarshal(called, &metadata) == nil && len(metadata.Response) > 0 {
			m, _ := parts.Open(called) // parsed before without an error
			m.Take("model_response")   // the call has it
			o.Take("tool_call_metadata")
			o.Put("tool_call_metadata", m.Rest())
		}
	}
	if text := o.PeekText("message"); text != "" && text == e.Args.Content {
		o.Take("message")
	}
	return o.Rest()
}
