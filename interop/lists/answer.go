package lists

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// choicesName is the member with the choices of Chat Completions. The first choice is
// the answer; the others stay in the settings.
const choicesName = "choices"

// isChoice reports whether a value is a choice of Chat Completions.
func isChoice(v jsontext.Value) bool {
	o, err := parts.Open(v)
	return err == nil && messages.IsMessage(o.Peek("message"))
}

// choiceMessage is the message of a choice, with the other members of the choice.
func choiceMessage(choice jsontext.Value) jsontext.Value {
	o, err := parts.Open(choice)
	if err != nil {
		return choice
	}
	m, err := parts.Open(o.Take("message"))
	if err != nil {
		return choice
	}
	for _, name := range []string{"index", "logprobs"} {
		if v := o.Peek(name); string(v) == "0" || v.Kind() == 'n' {
			o.Take(name)
		}
	}
	if !m.Has("finish_reason") {
		m.Put("finish_reason", o.Take("finish_reason"))
	}
	m.Put("choice", o.Rest())
	return m.Rest()
}

// response reads the id and the usage of a response, if the last list is its answer.
func (c *conversation) response(o *parts.Members, lists []string) {
	switch lists[len(lists)-1] {
	case choicesName:
		c.responseID = o.PeekText("id")
		c.usage = o.Peek("usage")
	case "output":
		c.usage = o.Peek("usage")
	}
}

// The members with the request and the response of a model.
var (
	requestNames  = []string{"request", "body"}
	responseNames = []string{"response"}
)

// fromPair makes a conversation of an object with a request, a response, or both; ok
// is false for any other object. The lists of the request may be members of the
// object.
func fromPair(rec *records.Record, o *parts.Members) (c conversation, ok bool) {
	response, answered := openNested(o, responseNames)
	answered = answered && hasAnswer(&response.inner)
	if lists := listsOf(o); len(lists) > 0 {
		if !answered {
			return c, false
		}
		c.take(rec, o, lists)
		c.facts(o, lists)
	} else if request, asked := openNested(o, requestNames); asked && len(requestLists(&request.inner, answered)) > 0 {
		lists := requestLists(&request.inner, answered)
		c.take(rec, &request.inner, lists)
		c.facts(&request.inner, lists)
		request.close(o)
	} else if !answered {
		return c, false
	}
	if answered {
		c.answer(rec, &response.inner)
		response.close(o)
	}
	c.outerFacts(o)
	c.settings = o.Rest()
	return c, true
}

// outerFacts reads the id and the time of an object with a request and a response.
func (c *conversation) outerFacts(o *parts.Members) {
	for _, name := range idNames {
		if id := idOf(o.Peek(name)); id != "" {
			c.id = id
			break
		}
	}
	if at := messages.TimeOf(o); !at.IsZero() {
		c.at = at
	}
}

// requestLists names the lists in a request. The input of a request with a response
// may be a text.
func requestLists(o *parts.Members, answered bool) []string {
	if input := o.Peek("input"); answered && input.Kind() == '"' {
		return []string{"input"}
	}
	return listsOf(o)
}

// hasAnswer reports whether a response has an answer.
func hasAnswer(o *parts.Members) bool {
	return messages.IsMessage(o.Rest()) || len(answerLists(o)) > 0
}

// answerLists names the lists in a response.
func answerLists(o *parts.Members) []string {
	return slices.DeleteFunc(listsOf(o), func(name string) bool { return name != choicesName && name != "output" })
}

// answer adds the answer of a response.
func (c *conversation) answer(rec *records.Record, o *parts.Members) {
	if v := o.Rest(); messages.IsMessage(v) {
		c.addMade(rec, v, v)
		*o = parts.Members{}
		return
	}
	of := conversation{lists: c.lists}
	lists := answerLists(o)
	of.take(rec, o, lists)
	of.facts(o, lists)
	of.id, of.title = cmp.Or(c.id, of.id), c.title
	*c = of
}

// nested is an object in a member, or in the "body" of the object in a member.
type nested struct {
	name  string
	outer parts.Members // the object with the body
	body  bool
	inner parts.Members
}

// openNested opens the first of the members that is an object.
func openNested(o *parts.Members, names []string) (n nested, ok bool) {
	for _, name := range names {
		v, err := parts.Open(o.Peek(name))
		if err != nil {
			continue
		}
		n = nested{name: name, inner: v}
		if body, err := parts.Open(v.Peek("body")); err == nil {
			n.outer, n.body, n.inner = v, true, body
		}
		return n, true
	}
	return n, false
}

// close replaces the member with its remaining members.
func (n *nested) close(o *parts.Members) {
	o.Take(n.name)
	rest := n.inner.Rest()
	if n.body {
		n.outer.Take("body")
		n.outer.Put("body", rest)
		rest = n.outer.Rest()
	}
	o.Put(n.name, rest)
}
