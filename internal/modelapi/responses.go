package modelapi

import (
	"github.com/go-json-experiment/json/jsontext"
)

// CheckResponses checks the input of a request against the rules of OpenAI's
// Responses API, as CheckChat does. Reasoning must come before another item of the assistant.
func CheckResponses(raw jsontext.Value) error {
	items, err := listOf(raw, "input")
	if err != nil {
		return err
	}
	c := openAIChecker{ids: map[string]bool{}}
	afterReasoning := false
	for i := range items {
		o := &items[i]
		kind, err := o.Text("type")
		if err != nil {
			return err
		}
		role, _ := o.Text("role")
		if afterReasoning && (kind == "function_call_output" || kind == "message" && role != "assistant") {
			return o.Fail("the reasoning before it has no item of the assistant after it")
		}
		afterReasoning = kind == "reasoning"
		if err := c.item(o, kind); err != nil {
			return err
		}
	}
	if afterReasoning {
		return items[len(items)-1].Fail("the input ends with reasoning")
	}
	return c.done("request")
}

func (c *openAIChecker) item(o *Object, kind string) error {
	switch kind {
	case "message":
		return c.messageItem(o)
	case "reasoning":
		return checkReasoning(o)
	case "function_call":
		if err := o.Only([]string{"type", "call_id", "name", "arguments"}); err != nil {
			return err
		}
		return c.openCall(o, "call_id", o, MaxResponsesID)
	case "function_call_output":
		if err := o.Only([]string{"type", "call_id", "output"}); err != nil {
			return err
		}
		if o.Value("output").Kind() != '"' {
			if err := checkParts(o, "output", inputParts); err != nil {
				return err
			}
		}
		return c.closeCall(o, "call_id")
	}
	return o.Fail("item type %q is not allowed", kind)
}

// messageItem checks a message. Messages of the assistant are allowed between its
// calls. Other messages are not allowed between calls and results.
func (c *openAIChecker) messageItem(o *Object) error {
	if err := o.Only([]string{"type", "role", "content"}); err != nil {
		return err
	}
	role, err := o.Text("role")
	if err != nil {
		return err
	}
	switch role {
	case "assistant":
		return checkParts(o, "content", outputParts)
	case "system", "developer", "user":
		if err := c.done(o.Path); err != nil {
			return err
		}
		return checkParts(o, "content", inputParts)
	}
	return o.Fail("role %q is not allowed", role)
}

func checkReasoning(o *Object) error {
	if err := o.Only([]string{"type", "summary", "encrypted_content"}); err != nil {
		return err
	}
	if _, err := o.NonBlank("encrypted_content"); err != nil {
		return err
	}
	parts, err := o.Objects("summary")
	for i := 0; i < len(parts) && err == nil; i++ {
		err = checkPart(&parts[i], map[string]partShape{"summary_text": {members: []string{"text"}}})
	}
	return err
}

var (
	outputParts = map[string]partShape{"output_text": {members: []string{"text"}}}
	inputParts  = map[string]partShape{
		"input_text":  {members: []string{"text"}},
		"input_image": {members: []string{"image_url"}},
	}
)

func checkParts(o *Object, name string, table map[string]partShape) error {
	parts, err := o.Objects(name)
	if err == nil && len(parts) == 0 {
		err = o.Fail("%q is empty", name)
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		p := &parts[i]
		if kind, _ := p.Text("type"); kind == "input_file" {
			err = checkFile(p)
		} else {
			err = checkPart(p, table)
		}
	}
	return err
}

// checkFile checks a document: a URL, or a name and a body.
func checkFile(p *Object) error {
	members := []string{"filename", "file_data"}
	if p.Has("file_url") {
		members = []string{"file_url"}
	}
	if err := p.Only(append([]string{"type"}, members...)); err != nil {
		return err
	}
	for _, name := range members {
		if err := checkMember(p, name); err != nil {
			return err
		}
	}
	return nil
}
