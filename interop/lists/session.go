package lists

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// session is the session of a conversation in the record.
func (c *conversation) session(f *document.File, rec *records.Record) document.Session {
	c.shape = messages.ShapeOf(c.values(), c.settings)
	id := c.sessionID(f)
	s := document.Session{
		ID: id, Rec: rec, At: c.at, List: c.items,
		Formats: []string{string(messages.Chat), string(messages.Responses), string(messages.Anthropic)},
		About: event.Session{
			Title: c.title, Source: event.SessionSource{Format: string(c.shape), SessionID: c.id}, Extra: c.settings,
		},
	}
	if c.hasUniqueID() {
		s.ID, s.FallbackID = c.id, id
	}
	return s
}

// uniqueLength is the length of an id that is unique beyond its file.
const uniqueLength = 12

// hasUniqueID reports whether the id of the conversation can be a session id.
func (c *conversation) hasUniqueID() bool {
	return len(c.id) >= uniqueLength && event.CheckSessionID(c.id) == nil
}

// sessionID is the id that the file gives to the conversation.
func (c *conversation) sessionID(f *document.File) string {
	name := strconv.Itoa(c.number)
	if c.id != "" {
		name = namePart(c.id)
	}
	sum := sha256.Sum256([]byte(f.Path + "\x00" + name + "\x00" + c.id))
	return namePart(f.Stem) + "-" + name + "-" + hex.EncodeToString(sum[:4])
}

func namePart(s string) string { return cmp.Or(document.Name(s), "list") }

// items yields the items of the conversation.
func (c *conversation) items(yield func(document.Item, error) bool) {
	b := builder{reader: messages.NewReader(c.shape, c.model)}
	var last *document.Item // the next item may show that it is not the last one
	for e, err := range c.elements() {
		if last != nil && !yield(*last, nil) {
			return
		}
		var it document.Item
		if err == nil {
			it, err = b.item(&e)
		}
		if err != nil {
			yield(document.Item{}, err)
			return
		}
		last = &it
	}
	if last != nil {
		c.finish(last)
		yield(*last, nil)
	}
}

// finish adds the id and the usage of the response to the last message, if it is
// the assistant's.
func (c *conversation) finish(last *document.Item) {
	m, ok := last.Payload.(event.Message)
	if !ok || m.Role != event.Assistant {
		return
	}
	if m.Usage.IsZero() {
		m.Usage, _ = parts.Usage(c.usage)
	}
	m.ResponseID = cmp.Or(m.ResponseID, c.responseID)
	last.Payload = m
}

// builder makes items of the elements of a conversation, in order.
type builder struct {
	reader *messages.Reader
	at     document.Cursor
	// runs is the number of groups so far; inRun says that the newest message is in the
	// last of them.
	runs  int
	inRun bool
	// hasRole says that the newest message was the assistant's, with a role.
	hasRole bool
}

// item makes the item of an element.
func (b *builder) item(e *element) (it document.Item, err error) {
	m, ok, err := b.reader.Message(e.value)
	if err != nil {
		return it, err
	}
	it = document.Item{Rec: b.at.Element(e.rec, e.source, e.value), At: b.reader.At, Kind: cmp.Or(b.reader.Kind, "element")}
	if it.Run = b.join(&m, ok); ok {
		it.Payload = m
	}
	return it, nil
}

// join gives consecutive items of the assistant one group: they are pieces of one
// message. A message with a role begins a new group after another such message.
// Any message of the assistant may begin a group, because a list of any shape may
// continue with items of Responses. An element that is no message ends no group: the
// log finds the message after it with and without it. The run is 0 if the item has no
// group.
func (b *builder) join(m *event.Message, isMessage bool) (run int) {
	if !isMessage {
		return 0
	}
	if m.Role != event.Assistant {
		b.inRun, b.hasRole = false, false
		return 0
	}
	if !b.inRun || b.reader.HasRole && b.hasRole {
		b.runs++
	}
	b.hasRole, b.inRun = b.reader.HasRole, true
	return b.runs
}
