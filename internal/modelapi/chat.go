package modelapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckChat checks the messages of a request against the rules of OpenAI's Chat Completions:
//
// - Only known members are allowed.
// - Messages are not empty.
// - After a message with calls come its results, one for each call.
// - Each result has a call.
//
// An error matches ErrRequest and gives the path of the fault.
func CheckChat(raw jsontext.Value) error {
	messages, err := listOf(raw, "messages")
	if err != nil {
		return err
	}
	c := openAIChecker{ids: map[string]bool{}}
	for i := range messages {
		if err := c.message(&messages[i]); err != nil {
			return err
		}
	}
	return c.done("request")
}

// listOf parses a request with one member, a list of objects.
func listOf(raw jsontext.Value, name string) ([]Object, error) {
	o, err := ReadObject("request", raw)
	if err != nil {
		return nil, err
	}
	if err := o.Only([]string{name}); err != nil {
		return nil, err
	}
	return o.Objects(name)
}

// openAIChecker carries the state from one message to the next.
type openAIChecker struct {
	ids   map[string]bool // ids of all calls
	calls []string        // calls without a result
}

func (c *openAIChecker) message(o *Object) error {
	role, err := o.Text("role")
	if err != nil {
		return err
	}
	if role == "tool" {
		return c.result(o)
	}
	if err := c.done(o.Path); err != nil {
		return err
	}
	switch role {
	case "system", "developer", "user":
		if err := o.Only([]string{"role", "content"}); err != nil {
			return err
		}
		return checkContent(o, role == "user")
	case "assistant":
		return c.assistant(o)
	}
	return o.Fail("role %q is not allowed", role)
}

// done checks that all calls have results.
func (c *openAIChecker) done(path string) error {
	if len(c.calls) > 0 {
		return fmt.Errorf("%w: %s: no results for the calls %q before it", ErrRequest, path, c.calls)
	}
	return nil
}

func (c *openAIChecker) assistant(o *Object) error {
	if err := o.Only([]string{"role", "content"}, "tool_calls"); err != nil {
		return err
	}
	calls, err := o.Objects("tool_calls")
	if err != nil {
		return err
	}
	if o.Has("tool_calls") && len(calls) == 0 {
		return o.Fail("%q is empty", "tool_calls")
	}
	for i := range calls {
		if err := c.call(&calls[i]); err != nil {
			return err
		}
	}
	if silent := o.Value("content").Kind() == 'n'; silent && len(calls) == 0 || !silent {
		_, err = o.NonBlank("content")
	}
	return err
}

func (c *openAIChecker) call(o *Object) error {
	if err := o.Only([]string{"id", "type", "function"}); err != nil {
		return err
	}
	if kind, err := o.Text("type"); err != nil || kind != "function" {
		return o.Fail("type is not function")
	}
	f, err := o.Object("function")
	if err != nil {
		return err
	}
	if err := f.Only([]string{"name", "arguments"}); err != nil {
		return err
	}
	return c.openCall(o, "id", &f, MaxChatID)
}

// openCall checks a call: a unique id in the member idName of o, and a name and
// arguments in f.
func (c *openAIChecker) openCall(o *Object, idName string, f *Object, maxID int) error {
	id, err := o.Text(idName)
	if err != nil {
		return err
	}
	name, err := f.Text("name")
	if err != nil {
		return err
	}
	arguments, err := f.Text("arguments")
	if err != nil {
		return err
	}
	if _, err := ReadObject(f.Path+".arguments", jsontext.Value(arguments)); err != nil {
		return err
	}
	switch {
	case !IsName(id, maxID):
		return o.Fail("id %q is invalid", id)
	case !IsName(name, maxOpenAIName):
		return o.Fail("name %q is invalid", name)
	case c.ids[id]:
		return o.Fail("id %q is used twice", id)
	}
	c.ids[id] = true
	c.calls = append(c.calls, id)
	return nil
}

func (c *openAIChecker) result(o *Object) error {
	if err := o.Only([]string{"role", "tool_call_id", "content"}); err != nil {
		return err
	}
	if _, err := o.Text("content"); err != nil {
		return err
	}
	return c.closeCall(o, "tool_call_id")
}

// closeCall checks that the call of a result is open, and closes it.
func (c *openAIChecker) closeCall(o *Object, idName string) error {
	id, err := o.Text(idName)
	if err != nil {
		return err
	}
	i := slices.Index(c.calls, id)
	if i < 0 {
		return o.Fail("a result for %q, which is not an open call", id)
	}
	c.calls = slices.Delete(c.calls, i, i+1)
	return nil
}

// checkContent checks a text; with parts, it accepts a list of parts too.
func checkContent(o *Object, parts bool) error {
	if o.Value("content").Kind() == '"' || !parts {
		_, err := o.NonBlank("content")
		return err
	}
	all, err := o.Objects("content")
	if err == nil && len(all) == 0 {
		err = o.Fail("content is empty")
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = checkPart(&all[i], chatParts)
	}
	return err
}

// partShape lists the members of a part, and the members of its inner object if it
// has one.
type partShape struct {
	members []string
	inner   []string
}

var chatParts = map[string]partShape{
	"text":        {members: []string{"text"}},
	"image_url":   {members: []string{"image_url"}, inner: []string{"url"}},
	"input_audio": {members: []string{"input_audio"}, inner: []string{"data", "format"}},
	"file":        {members: []string{"file"}, inner: []string{"filename", "file_data"}},
}

func checkPart(o *Object, table map[string]partShape) error {
	kind, err := o.Text("type")
	if err != nil {
		return err
	}
	k, ok := table[kind]
	if !ok {
		return o.Fail("part type %q is not allowed here", kind)
	}
	if err := o.Only(append([]string{"type"}, k.members...)); err != nil {
		return err
	}
	holder, members := *o, k.members
	if k.inner != nil {
		if holder, err = o.Object(k.members[0]); err != nil {
			return err
		}
		if err := holder.Only(k.inner); err != nil {
			return err
		}
		members = k.inner
	}
	for _, name := range members {
		if err := checkMember(&holder, name); err != nil {
			return err
		}
	}
	return nil
}

// checkMember checks a member of a part.
func checkMember(o *Object, name string) error {
	s, err := o.NonBlank(name)
	switch name {
	case "url", "image_url":
		return o.Address(name, "image/png", "image/jpeg", "image/gif", "image/webp")
	case "file_url":
		return o.Address(name)
	case "file_data":
		if !strings.HasPrefix(s, "data:") {
			return o.Fail("%q is not a data URL", name)
		}
		return o.Address(name, "application/pdf")
	case "data":
		return o.Base64(name)
	case "format":
		if s != "wav" && s != "mp3" {
			return o.Fail("sound format %q is not allowed", s)
		}
	}
	return err
}
