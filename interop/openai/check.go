package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/render"
)

// ErrRequest is what Check and CheckResponses say of a request that the API
// would refuse.
var ErrRequest = render.ErrRequest

// Check holds the messages of a request to the rules of Chat Completions: only
// members that the API knows, no message with nothing in it, and right after a
// message that makes calls one result for each, and no others. It matches
// ErrRequest and says where the fault is.
func Check(raw jsontext.Value) error {
	messages, err := listOf(raw, "messages")
	if err != nil {
		return err
	}
	c := checker{ids: map[string]bool{}}
	for i := range messages {
		if err := c.message(&messages[i]); err != nil {
			return err
		}
	}
	return c.done("request")
}

// listOf reads a request that has one member, a list of objects.
func listOf(raw jsontext.Value, name string) ([]render.Object, error) {
	o, err := render.ReadObject("request", raw)
	if err != nil {
		return nil, err
	}
	if err := o.Only([]string{name}); err != nil {
		return nil, err
	}
	return o.Objects(name)
}

// checker holds what one message demands of those behind it.
type checker struct {
	ids   map[string]bool // of all calls
	calls []string        // without a result
}

func (c *checker) message(o *render.Object) error {
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
		return c.reply(o)
	}
	return o.Fail("role is %q", role)
}

// done makes sure that all calls have their results.
func (c *checker) done(path string) error {
	if len(c.calls) > 0 {
		return fmt.Errorf("%w: %s: no results for calls %q before it", ErrRequest, path, c.calls)
	}
	return nil
}

func (c *checker) reply(o *render.Object) error {
	if err := o.Only([]string{"role", "content"}, "tool_calls"); err != nil {
		return err
	}
	made, err := o.Objects("tool_calls")
	if err != nil {
		return err
	}
	if o.Has("tool_calls") && len(made) == 0 {
		return o.Fail("no calls in %q", "tool_calls")
	}
	for i := range made {
		if err := c.call(&made[i]); err != nil {
			return err
		}
	}
	if silent := o.Value("content").Kind() == 'n'; silent && len(made) == 0 || !silent {
		_, err = o.NonBlank("content")
	}
	return err
}

func (c *checker) call(o *render.Object) error {
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
	return c.opens(o, "id", &f, maxChatID)
}

// opens checks what each call has: an id of its own in the member idName of o,
// and in f a name and arguments.
func (c *checker) opens(o *render.Object, idName string, f *render.Object, maxID int) error {
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
	if _, err := render.ReadObject(f.Path+".arguments", jsontext.Value(arguments)); err != nil {
		return err
	}
	switch {
	case !render.IsName(id, maxID):
		return o.Fail("id %q", id)
	case !render.IsName(name, maxName):
		return o.Fail("name %q", name)
	case c.ids[id]:
		return o.Fail("id %q again", id)
	}
	c.ids[id] = true
	c.calls = append(c.calls, id)
	return nil
}

func (c *checker) result(o *render.Object) error {
	if err := o.Only([]string{"role", "tool_call_id", "content"}); err != nil {
		return err
	}
	if _, err := o.Text("content"); err != nil {
		return err
	}
	return c.closes(o, "tool_call_id")
}

// closes checks that a result has a call that waits for it.
func (c *checker) closes(o *render.Object, idName string) error {
	id, err := o.Text(idName)
	if err != nil {
		return err
	}
	i := slices.Index(c.calls, id)
	if i < 0 {
		return o.Fail("a result of %q, which waits for none", id)
	}
	c.calls = slices.Delete(c.calls, i, i+1)
	return nil
}

// checkContent checks a text, or parts where these may stand.
func checkContent(o *render.Object, parts bool) error {
	if o.Value("content").Kind() == '"' || !parts {
		_, err := o.NonBlank("content")
		return err
	}
	all, err := o.Objects("content")
	if err == nil && len(all) == 0 {
		err = o.Fail("nothing in it")
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = checkPart(&all[i], chatParts)
	}
	return err
}

// known says of a part which members it has, and which members are in the
// object that it holds, if it holds one.
type known struct {
	members []string
	inner   []string
}

var chatParts = map[string]known{
	"text":        {members: []string{"text"}},
	"image_url":   {members: []string{"image_url"}, inner: []string{"url"}},
	"input_audio": {members: []string{"input_audio"}, inner: []string{"data", "format"}},
	"file":        {members: []string{"file"}, inner: []string{"filename", "file_data"}},
}

func checkPart(o *render.Object, table map[string]known) error {
	kind, err := o.Text("type")
	if err != nil {
		return err
	}
	k, ok := table[kind]
	if !ok {
		return o.Fail("a part of type %q", kind)
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

// checkMember checks what a member of a part holds.
func checkMember(o *render.Object, name string) error {
	s, err := o.NonBlank(name)
	switch name {
	case "url", "image_url":
		return o.Address(name, "image/png", "image/jpeg", "image/gif", "image/webp")
	case "file_url":
		return o.Address(name)
	case "file_data":
		if !strings.HasPrefix(s, "data:") {
			return o.Fail("%q is no body", name)
		}
		return o.Address(name, "application/pdf")
	case "data":
		return o.Base64(name)
	case "format":
		if s != "wav" && s != "mp3" {
			return o.Fail("a sound of format %q", s)
		}
	}
	return err
}
