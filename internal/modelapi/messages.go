package modelapi

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckMessages checks a request to Anthropic's Messages, without model and parameters, against the rules
// of the API:
//
// - Only known members are allowed.
// - Messages alternate between user and assistant; the user comes first.
// - Messages and texts are not empty.
// - The message after one with calls starts with the results, one for each call.
//
// A request without messages is valid: a prompt can be added. An error matches
// ErrRequest and gives the path of the fault.
func CheckMessages(raw jsontext.Value) error {
	o, err := ReadObject("request", raw)
	if err != nil {
		return err
	}
	if err := o.Only([]string{"messages"}, "system"); err != nil {
		return err
	}
	c := messagesChecker{ids: map[string]bool{}}
	if err := c.system(&o); err != nil {
		return err
	}
	messages, err := o.Objects("messages")
	if err != nil {
		return err
	}
	for i := range messages {
		if err := c.message(&messages[i], i); err != nil {
			return err
		}
	}
	if len(c.calls) > 0 {
		return o.Fail("the last message has calls without results: %q", c.calls)
	}
	return nil
}

// messagesChecker carries the state from one message to the next.
type messagesChecker struct {
	ids   map[string]bool // ids of all calls
	calls []string        // calls in the last message without a result
}

func (c *messagesChecker) system(o *Object) error {
	blocks, err := o.Objects("system")
	if err == nil && o.Has("system") && len(blocks) == 0 {
		err = o.Fail("%q is empty", "system")
	}
	for i := 0; i < len(blocks) && err == nil; i++ {
		err = checkText(&blocks[i])
	}
	return err
}

func (c *messagesChecker) message(o *Object, n int) error {
	if err := o.Only([]string{"role", "content"}); err != nil {
		return err
	}
	role, err := o.Text("role")
	if err != nil {
		return err
	}
	if want := []string{"user", "assistant"}[n%2]; role != want {
		return o.Fail("role is %q, not %q", role, want)
	}
	blocks, err := o.Objects("content")
	if err != nil {
		return err
	}
	if len(blocks) == 0 {
		return o.Fail("content is empty")
	}
	if role == "user" {
		return c.user(o, blocks)
	}
	return c.assistant(o, blocks)
}

// user checks the message of a user: results first, then other content.
func (c *messagesChecker) user(o *Object, blocks []Object) error {
	content := false
	for i := range blocks {
		b := &blocks[i]
		kind, err := b.Text("type")
		if err != nil {
			return err
		}
		if kind != "tool_result" {
			content = true
			err = checkBlock(b, kind)
		} else if content {
			err = b.Fail("a result after other content: results come first")
		} else {
			err = c.result(b)
		}
		if err != nil {
			return err
		}
	}
	if len(c.calls) > 0 {
		return o.Fail("no results for the calls %q of the message before", c.calls)
	}
	return nil
}

func (c *messagesChecker) result(b *Object) error {
	if err := b.Only([]string{"type", "tool_use_id"}, "content", "is_error"); err != nil {
		return err
	}
	id, err := b.Text("tool_use_id")
	if err != nil {
		return err
	}
	i := slices.Index(c.calls, id)
	if i < 0 {
		return b.Fail("a result for %q, which is not an open call", id)
	}
	c.calls = slices.Delete(c.calls, i, i+1)
	if v := b.Value("is_error"); v != nil && v.Kind() != 't' && v.Kind() != 'f' {
		return b.Fail("is_error is not a boolean")
	}
	content, err := b.Objects("content")
	for i := 0; i < len(content) && err == nil; i++ {
		var kind string
		if kind, err = content[i].Text("type"); err == nil {
			err = checkBlock(&content[i], kind)
		}
	}
	return err
}

func (c *messagesChecker) assistant(o *Object, blocks []Object) error {
	serverCalls := map[string]string{}
	kind := ""
	for i := range blocks {
		b := &blocks[i]
		var err error
		if kind, err = b.Text("type"); err == nil {
			err = c.assistantBlock(b, kind, serverCalls)
		}
		if err != nil {
			return err
		}
	}
	if len(serverCalls) > 0 {
		return o.Fail("calls of the provider's tools have no results")
	}
	if kind == "thinking" || kind == "redacted_thinking" {
		return o.Fail("the message ends with %s", kind)
	}
	return nil
}

// assistantBlock checks a block of the assistant. serverCalls are calls of the
// provider's tools without a result, by id.
func (c *messagesChecker) assistantBlock(b *Object, kind string, serverCalls map[string]string) error {
	switch kind {
	case "text":
		return checkText(b)
	case "thinking":
		if err := b.Only([]string{"type", "thinking", "signature"}); err != nil {
			return err
		}
		if _, err := b.Text("thinking"); err != nil {
			return err
		}
		_, err := b.NonBlank("signature")
		return err
	case "redacted_thinking":
		if err := b.Only([]string{"type", "data"}); err != nil {
			return err
		}
		_, err := b.NonBlank("data")
		return err
	case "tool_use", "server_tool_use":
		return c.call(b, kind, serverCalls)
	}
	return checkServerResult(b, kind, serverCalls)
}

// checkServerResult checks the result of a provider's tool. Its tool must be the
// called tool. A web search gives a list or an error object, other tools give an
// object.
func checkServerResult(b *Object, kind string, serverCalls map[string]string) error {
	id, err := b.Text("tool_use_id")
	if err != nil {
		return err
	}
	tool, called := serverCalls[id]
	switch {
	case !strings.HasSuffix(kind, ResultSuffix):
		return b.Fail("block type %q is not allowed here", kind)
	case !called:
		return b.Fail("a result for %q, which is not an open call", id)
	case tool+ResultSuffix != kind:
		return b.Fail("%s does not match the tool %q", kind, tool)
	}
	delete(serverCalls, id)
	if err := b.Only([]string{"type", "tool_use_id", "content"}); err != nil {
		return err
	}
	if list := b.Value("content").Kind() == '['; list && tool == WebSearch {
		found, err := b.Objects("content")
		for i := 0; i < len(found) && err == nil; i++ {
			_, err = found[i].NonBlank("type")
		}
		return err
	}
	one, err := b.Object("content")
	if err != nil {
		return err
	}
	contentType, err := one.NonBlank("type")
	if err == nil && tool == WebSearch && !strings.HasSuffix(contentType, "_error") {
		err = one.Fail("content of type %q: a web search gives a list or an error", contentType)
	}
	return err
}

func (c *messagesChecker) call(b *Object, kind string, serverCalls map[string]string) error {
	if err := b.Only([]string{"type", "id", "name", "input"}); err != nil {
		return err
	}
	id, err := b.Text("id")
	if err != nil {
		return err
	}
	name, err := b.Text("name")
	if err != nil {
		return err
	}
	if _, err := b.Object("input"); err != nil {
		return err
	}
	switch {
	case !IsName(id, MaxMessagesID):
		return b.Fail("id %q is invalid", id)
	case !IsName(name, maxMessagesName):
		return b.Fail("name %q is invalid", name)
	case c.ids[id]:
		return b.Fail("id %q is used twice", id)
	}
	c.ids[id] = true
	if kind != "server_tool_use" {
		c.calls = append(c.calls, id)
		return nil
	}
	if !slices.Contains(ServerTools, name) || !IsServerID(id) {
		return b.Fail("id %q and name %q are not a call of a provider's tool", id, name)
	}
	serverCalls[id] = name
	return nil
}

func checkText(b *Object) error {
	if err := b.Only([]string{"type", "text"}); err != nil {
		return err
	}
	if kind, err := b.Text("type"); err != nil || kind != "text" {
		return b.Fail("not a text block")
	}
	_, err := b.NonBlank("text")
	return err
}

// checkBlock checks a block in a user message or in a result.
func checkBlock(b *Object, kind string) error {
	switch kind {
	case "text":
		return checkText(b)
	case "image", "document":
		return checkMedia(b, kind)
	}
	return b.Fail("block type %q is not allowed here", kind)
}

func checkMedia(b *Object, kind string) error {
	optional := []string{"title"}
	if kind == "image" {
		optional = nil
	}
	if err := b.Only([]string{"type", "source"}, optional...); err != nil {
		return err
	}
	if _, err := b.NonBlank("title"); err != nil && b.Has("title") {
		return err
	}
	s, err := b.Object("source")
	if err != nil {
		return err
	}
	from, err := s.Text("type")
	if err != nil {
		return err
	}
	if from == "url" {
		return firstError(s.Address("url"), s.Only([]string{"type", "url"}))
	}
	if err := s.Only([]string{"type", "media_type", "data"}); err != nil {
		return err
	}
	mediaType, err := s.Text("media_type")
	if err != nil {
		return err
	}
	if !slices.Contains(mediaTypes[kind+" "+from], mediaType) {
		return s.Fail("%s %s has media type %q", from, kind, mediaType)
	}
	if from == "base64" {
		return s.Base64("data")
	}
	_, err = s.NonBlank("data")
	return err
}

// mediaTypes are the media types that the API accepts, by block type and source type.
var mediaTypes = map[string][]string{
	"image base64":    {"image/png", "image/jpeg", "image/gif", "image/webp"},
	"document base64": {"application/pdf"},
	"document text":   {"text/plain"},
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
