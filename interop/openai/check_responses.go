package openai

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/render"
)

// CheckResponses holds the input of a request to the rules of the Responses API,
// as Check does; reasoning must stand before another item of the assistant.
func CheckResponses(raw jsontext.Value) error {
	items, err := listOf(raw, "input")
	if err != nil {
		return err
	}
	c := checker{ids: map[string]bool{}}
	reasoned := false
	for i := range items {
		o := &items[i]
		kind, err := o.Text("type")
		if err != nil {
			return err
		}
		role, _ := o.Text("role")
		if reasoned && (kind == "function_call_output" || kind == "message" && role != "assistant") {
			return o.Fail("reasoning that nothing follows stands before it")
		}
		reasoned = kind == "reasoning"
		if err := c.item(o, kind); err != nil {
			return err
		}
	}
	if reasoned {
		return items[len(items)-1].Fail("reasoning that nothing follows")
	}
	return c.done("request")
}

func (c *checker) item(o *render.Object, kind string) error {
	switch kind {
	case "message":
		return c.said(o)
	case "reasoning":
		return checkReasoning(o)
	case "function_call":
		if err := o.Only([]string{"type", "call_id", "name", "arguments"}); err != nil {
			return err
		}
		return c.opens(o, "call_id", o, maxResponsesID)
	case "function_call_output":
		if err := o.Only([]string{"type", "call_id", "output"}); err != nil {
			return err
		}
		if o.Value("output").Kind() != '"' {
			if err := checkParts(o, "output", inputParts); err != nil {
				return err
			}
		}
		return c.closes(o, "call_id")
	}
	return o.Fail("an item of type %q", kind)
}

// said checks a message: those of the assistant may stand between its calls,
// others may not stand between calls and results.
func (c *checker) said(o *render.Object) error {
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
	return o.Fail("role is %q", role)
}

func checkReasoning(o *render.Object) error {
	if err := o.Only([]string{"type", "summary", "encrypted_content"}); err != nil {
		return err
	}
	if _, err := o.NonBlank("encrypted_content"); err != nil {
		return err
	}
	parts, err := o.Objects("summary")
	for i := 0; i < len(parts) && err == nil; i++ {
		err = checkPart(&parts[i], map[string]known{"summary_text": {members: []string{"text"}}})
	}
	return err
}

var (
	outputParts = map[string]known{"output_text": {members: []string{"text"}}}
	inputParts  = map[string]known{
		"input_text":  {members: []string{"text"}},
		"input_image": {members: []string{"image_url"}},
	}
)

func checkParts(o *render.Object, name string, table map[string]known) error {
	parts, err := o.Objects(name)
	if err == nil && len(parts) == 0 {
		err = o.Fail("nothing in %q", name)
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

// checkFile checks a document: an address, or a name and a body.
func checkFile(p *render.Object) error {
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
