package anthropic

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/render"
)

// ErrRequest is what Check says of a request that the API would refuse.
var ErrRequest = render.ErrRequest

// Check holds the system text and the messages of a request, as Messages makes
// them, to the rules of the API: only members that it knows; the user first, and
// then in turns with the assistant; no empty message and no empty text; results
// at the start of the message right after the one that has their calls, one for
// each. No messages at all pass: a prompt may be added. It matches ErrRequest
// and says where the fault is.
func Check(raw jsontext.Value) error {
	o, err := render.ReadObject("request", raw)
	if err != nil {
		return err
	}
	if err := o.Only([]string{"messages"}, "system"); err != nil {
		return err
	}
	c := checker{ids: map[string]bool{}}
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

// checker holds what one message demands of the next.
type checker struct {
	ids   map[string]bool // of all calls
	calls []string        // of the message before
}

func (c *checker) system(o *render.Object) error {
	blocks, err := o.Objects("system")
	if err == nil && o.Has("system") && len(blocks) == 0 {
		err = o.Fail("%q is empty", "system")
	}
	for i := 0; i < len(blocks) && err == nil; i++ {
		err = checkText(&blocks[i])
	}
	return err
}

func (c *checker) message(o *render.Object, n int) error {
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
		return o.Fail("nothing in it")
	}
	if role == "user" {
		return c.user(o, blocks)
	}
	return c.assistant(o, blocks)
}

// user checks results, then what the user says.
func (c *checker) user(o *render.Object, blocks []render.Object) error {
	said := false
	for i := range blocks {
		b := &blocks[i]
		kind, err := b.Text("type")
		if err != nil {
			return err
		}
		if kind != "tool_result" {
			said = true
			err = checkContent(b, kind)
		} else if said {
			err = b.Fail("a result behind what the user says")
		} else {
			err = c.result(b)
		}
		if err != nil {
			return err
		}
	}
	if len(c.calls) > 0 {
		return o.Fail("no results for calls %q", c.calls)
	}
	return nil
}

func (c *checker) result(b *render.Object) error {
	if err := b.Only([]string{"type", "tool_use_id"}, "content", "is_error"); err != nil {
		return err
	}
	id, err := b.Text("tool_use_id")
	if err != nil {
		return err
	}
	i := slices.Index(c.calls, id)
	if i < 0 {
		return b.Fail("a result of %q, which waits for none", id)
	}
	c.calls = slices.Delete(c.calls, i, i+1)
	if v := b.Value("is_error"); v != nil && v.Kind() != 't' && v.Kind() != 'f' {
		return b.Fail("is_error is no boolean")
	}
	content, err := b.Objects("content")
	for i := 0; i < len(content) && err == nil; i++ {
		var kind string
		if kind, err = content[i].Text("type"); err == nil {
			err = checkContent(&content[i], kind)
		}
	}
	return err
}

func (c *checker) assistant(o *render.Object, blocks []render.Object) error {
	served := map[string]string{}
	kind := ""
	for i := range blocks {
		b := &blocks[i]
		var err error
		if kind, err = b.Text("type"); err == nil {
			err = c.spoken(b, kind, served)
		}
		if err != nil {
			return err
		}
	}
	if len(served) > 0 {
		return o.Fail("calls of the provider's tools without results")
	}
	if kind == "thinking" || kind == "redacted_thinking" {
		return o.Fail("ends with %s", kind)
	}
	return nil
}

// spoken checks a block of the assistant's. served are calls of the provider's
// tools that wait for results.
func (c *checker) spoken(b *render.Object, kind string, served map[string]string) error {
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
		return c.call(b, kind, served)
	}
	return serverResultOf(b, kind, served)
}

// serverResultOf checks what a tool of the provider gave: of the tool that was
// called, and a list of what was found, or an object, as the tool has it.
func serverResultOf(b *render.Object, kind string, served map[string]string) error {
	id, err := b.Text("tool_use_id")
	if err != nil {
		return err
	}
	tool, called := served[id]
	switch {
	case !strings.HasSuffix(kind, resultSuffix):
		return b.Fail("a block of type %q", kind)
	case !called:
		return b.Fail("a result of %q, which waits for none", id)
	case tool+resultSuffix != kind:
		return b.Fail("a %s of %q", kind, tool)
	}
	delete(served, id)
	if err := b.Only([]string{"type", "tool_use_id", "content"}); err != nil {
		return err
	}
	if list := b.Value("content").Kind() == '['; list && tool == webSearch {
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
	given, err := one.NonBlank("type")
	if err == nil && tool == webSearch && !strings.HasSuffix(given, "_error") {
		err = one.Fail("%q is no list", given)
	}
	return err
}

func (c *checker) call(b *render.Object, kind string, served map[string]string) error {
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
	case !render.IsName(id, maxID):
		return b.Fail("id %q", id)
	case !render.IsName(name, maxName):
		return b.Fail("name %q", name)
	case c.ids[id]:
		return b.Fail("id %q again", id)
	}
	c.ids[id] = true
	if kind != "server_tool_use" {
		c.calls = append(c.calls, id)
		return nil
	}
	if !slices.Contains(serverTools, name) || !isServerID(id) {
		return b.Fail("%q of %q is no call of the provider's tools", id, name)
	}
	served[id] = name
	return nil
}

func checkText(b *render.Object) error {
	if err := b.Only([]string{"type", "text"}); err != nil {
		return err
	}
	if kind, err := b.Text("type"); err != nil || kind != "text" {
		return b.Fail("not a text block")
	}
	_, err := b.NonBlank("text")
	return err
}

// checkContent checks a block of what a user, or a result, says.
func checkContent(b *render.Object, kind string) error {
	switch kind {
	case "text":
		return checkText(b)
	case "image", "document":
		return checkMedia(b, kind)
	}
	return b.Fail("a block of type %q", kind)
}

func checkMedia(b *render.Object, kind string) error {
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
		return firstOf(s.Address("url"), s.Only([]string{"type", "url"}))
	}
	if err := s.Only([]string{"type", "media_type", "data"}); err != nil {
		return err
	}
	mediaType, err := s.Text("media_type")
	if err != nil {
		return err
	}
	if !slices.Contains(mediaTypes[kind+" "+from], mediaType) {
		return s.Fail("%s %s of type %q", from, kind, mediaType)
	}
	if from == "base64" {
		return s.Base64("data")
	}
	_, err = s.NonBlank("data")
	return err
}

// mediaTypes are those that the API takes.
var mediaTypes = map[string][]string{
	"image base64":    {"image/png", "image/jpeg", "image/gif", "image/webp"},
	"document base64": {"application/pdf"},
	"document text":   {"text/plain"},
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
