package lists

import (
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// conversation is a list of messages with the members around it.
type conversation struct {
	number int // in the file, from 1
	id     string
	title  string
	model  string
	at     time.Time
	// responseID and usage belong to the response at the end, if there is one.
	responseID string
	usage      jsontext.Value
	settings   jsontext.Value // the members around the list; nil if there are none
	lists      []iter.Seq2[element, error]
	shape      messages.Shape // empty until a reader is made
}

// element is a message or an item.
type element struct {
	value jsontext.Value
	rec   *records.Record // the conversation
	// source is the value in the file that the element was made of.
	source jsontext.Value
}

// The members with messages, the members with the system prompt, and the members with
// the id.
var (
	listNames   = []string{"messages", "conversations", "input", "output", "choices"}
	systemNames = []string{"system", "instructions"}
	idNames     = []string{"id", "session_id", "conversation_id", "thread_id", "chat_id", "uuid"}
)

// each yields the records of the conversations in a value: the elements of a list of
// conversations, or the value itself.
func each(rec *records.Record) iter.Seq[*records.Record] {
	return func(yield func(*records.Record) bool) {
		if first := firstOf(rec.Value); first == nil || !isConversation(rec, first) {
			yield(rec)
			return
		}
		var at document.Cursor
		for v := range rawjson.Each(rec.Value) {
			one := at.Element(rec, v, v)
			one.Kept = rec.Kept
			if !yield(&one) {
				return
			}
		}
	}
}

// isConversation reports whether the first element of a list is a conversation, and no
// message.
func isConversation(rec *records.Record, first jsontext.Value) bool {
	_, ok := fromElement(rec, first)
	return ok && !messages.IsMessage(first)
}

// firstOf is the first element of a list; nil if there is none.
func firstOf(list jsontext.Value) jsontext.Value {
	for v := range rawjson.Each(list) {
		return v
	}
	return nil
}

// fromElement makes a conversation of a value.
func fromElement(rec *records.Record, v jsontext.Value) (c conversation, ok bool) {
	if v.Kind() == '{' {
		return fromObject(rec, v)
	}
	if first := firstOf(v); v.Kind() != '[' || first != nil && !messages.IsMessage(first) {
		return c, false
	}
	c.add(rec, v)
	return c, true
}

// fromObject makes a conversation of an object with lists.
func fromObject(rec *records.Record, v jsontext.Value) (c conversation, ok bool) {
	o, err := parts.Open(v)
	if err != nil {
		return c, false
	}
	if c, ok := fromPair(rec, &o); ok {
		return c, true
	}
	names := listsOf(&o)
	if len(names) == 0 {
		return c, false
	}
	c.take(rec, &o, names)
	c.facts(&o, names)
	return c, true
}

// take moves the lists of an object to the conversation.
func (c *conversation) take(rec *records.Record, o *parts.Members, names []string) {
	for _, name := range systemNames {
		if text := o.Peek(name); text.Kind() == '"' || text.Kind() == '[' {
			o.Take(name)
			c.addMade(rec, text, textMessage("system", text))
		}
	}
	for _, name := range names {
		list := o.Take(name)
		if list.Kind() == '"' {
			c.addMade(rec, list, textMessage("user", list))
			continue
		}
		switch name {
		case choicesName:
			elements, _ := rawjson.Elements(list) // listsOf has checked it
			if len(elements) > 1 {
				o.Put(name, rawjson.Array(elements[1:]))
			}
			c.addMade(rec, elements[0], choiceMessage(elements[0]))
		case turnsName:
			c.addList(rec, list, messageOf)
		default:
			c.add(rec, list)
		}
	}
}

// textMessage is a message with a text that is a member of its own in the file.
func textMessage(role string, content jsontext.Value) jsontext.Value {
	return rawjson.NonEmpty([]rawjson.Member{
		{Name: "role", Value: jsontext.Value(`"` + role + `"`)}, {Name: "content", Value: content},
	})
}

// listsOf names the lists of messages in an object: messages or conversations, or
// else input and output. The input may be a text. Choices come last.
func listsOf(o *parts.Members) (names []string) {
	for _, name := range listNames {
		v := o.Peek(name)
		switch {
		case name == choicesName:
			if beginsWith(v, isChoice) {
				names = append(names, name)
			}
		case len(names) > 0 && names[0] != "input":
		case name == "messages" && isEmpty(v), beginsWith(v, messages.IsMessage), name == turnsName && beginsWith(v, isTurn):
			names = append(names, name)
		case name == "input" && v.Kind() == '"' && beginsWith(o.Peek("output"), messages.IsMessage):
			names = append(names, name)
		}
	}
	return names
}

func isEmpty(v jsontext.Value) bool { return v.Kind() == '[' && firstOf(v) == nil }

// beginsWith reports whether is accepts the first element of a list.
func beginsWith(v jsontext.Value, is func(jsontext.Value) bool) bool {
	first := firstOf(v)
	return first != nil && is(first)
}

// facts reads the members around the lists.
func (c *conversation) facts(o *parts.Members, lists []string) {
	for _, name := range idNames {
		if c.id == "" {
			c.id = idOf(o.Peek(name))
		}
	}
	c.title = o.PeekText("title")
	c.model = o.PeekText("model")
	c.at = messages.TimeOf(o)
	c.response(o, lists)
	c.settings = o.Rest()
}

func idOf(v jsontext.Value) string {
	if v.Kind() == '0' {
		return string(v)
	}
	s, _ := rawjson.Text(v)
	return s
}

// add adds the elements of a list.
func (c *conversation) add(rec *records.Record, list jsontext.Value) {
	c.addList(rec, list, func(v jsontext.Value) jsontext.Value { return v })
}

// addList adds the messages that made makes of the elements of a list.
func (c *conversation) addList(rec *records.Record, list jsontext.Value, made func(jsontext.Value) jsontext.Value) {
	c.lists = append(c.lists, func(yield func(element, error) bool) {
		for v := range rawjson.Each(list) {
			if !yield(element{made(v), rec, v}, nil) {
				return
			}
		}
	})
}

// addMade adds a message that was made of a value of the file.
func (c *conversation) addMade(rec *records.Record, source, message jsontext.Value) {
	c.lists = append(c.lists, func(yield func(element, error) bool) { yield(element{message, rec, source}, nil) })
}

// elements yields the elements. An error ends them.
func (c *conversation) elements() iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for _, list := range c.lists {
			for e, err := range list {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// values yields the values of the elements.
func (c *conversation) values() iter.Seq[jsontext.Value] {
	return func(yield func(jsontext.Value) bool) {
		for e, err := range c.elements() {
			if err != nil || !yield(e.value) {
				return
			}
		}
	}
}
