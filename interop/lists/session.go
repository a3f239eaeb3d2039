package lists

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
)

// session is the session of a conversation in the record.
func (c *conversation) session(f *document.File, rec *interop.Record) (document.Session, error) {
	items, err := c.items()
	id := c.sessionID(f)
	s := document.Session{
		ID: id, Rec: rec, At: c.at, Items: items,
		Formats: []string{string(chatShape), string(responsesShape), string(anthropicShape)},
		About: event.Session{
			Title: c.title, Source: event.SessionSource{Format: string(c.shape), SessionID: c.id}, Extra: c.settings,
		},
	}
	if c.hasUniqueID() {
		s.ID, s.FallbackID = c.id, id
	}
	return s, err
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

// items are the items of the conversation.
func (c *conversation) items() ([]document.Item, error) {
	b := builder{reader: newReader(c)}
	all := make([]document.Item, 0, len(c.elements))
	for i := range c.elements {
		it, err := b.item(&c.elements[i])
		if err != nil {
			return nil, err
		}
		all = append(all, it)
	}
	if len(all) > 0 {
		c.finish(&all[len(all)-1])
	}
	return all, nil
}

// finish adds the id and the usage of the response to the last message, if it is
// the assistant's.
func (c *conversation) finish(last *document.Item) {
	m, ok := last.Payload.(event.Message)
	if !ok || m.Role != event.Assistant {
		return
	}
	if m.Usage.IsZero() {
		m.Usage, _ = usageOf(c.usage)
	}
	m.ResponseID = cmp.Or(m.ResponseID, c.responseID)
	last.Payload = m
}

// builder makes items of the elements of a conversation, in order.
type builder struct {
	reader *reader
	chain  document.Chain
	// group is the group of the newest message, if it is the assistant's.
	group string
	// hasRole says that the newest element was a message of the assistant with a role.
	hasRole bool
}

// item makes the item of an element.
func (b *builder) item(e *element) (it document.Item, err error) {
	m, ok, err := b.reader.message(e.value)
	if err != nil {
		return it, err
	}
	if b.chain, err = e.chain(b.chain, &m, ok); err != nil {
		return it, err
	}
	it = document.Item{
		Rec: *e.rec, Part: e.part, Chain: b.chain, At: b.reader.at, Kind: cmp.Or(b.reader.kind, "element"),
	}
	it.Rec.Value = e.value
	if b.join(&m, ok); ok {
		it.Payload = m
	}
	return it, nil
}

// chain is the chain with the element; m is its message, if it is one.
func (e *element) chain(before document.Chain, m *event.Message, isMessage bool) (document.Chain, error) {
	if !isMessage {
		return before.Then(e.value)
	}
	content, err := document.Content(m)
	if err != nil {
		return "", err
	}
	return before.Then(content)
}

// join gives consecutive items of the assistant one group: they are pieces of one
// message. A message with a role begins a new group after another such message.
// Any message of the assistant may begin a group, because a list of any shape may
// continue with items of Responses.
func (b *builder) join(m *event.Message, isMessage bool) {
	if !isMessage || m.Role != event.Assistant {
		b.group, b.hasRole = "", false
		return
	}
	if b.group == "" || b.reader.hasRole && b.hasRole {
		b.group = "run-" + event.Digest(b.chain).Hex()[:24]
	}
	b.hasRole, m.Group = b.reader.hasRole, b.group
}
