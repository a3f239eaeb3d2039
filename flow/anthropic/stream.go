package anthropic

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/rawjson"
)

var errNoFinish = errors.New("no stop_reason came")

// stream joins the events of a streamed answer to the answer that the API gives without
// streaming.
type stream struct {
	call *httpmodel.Call
	emit func(eventlog.Delta)
	// top are the members of the answer without its content.
	top    []rawjson.Member
	blocks []*block
}

// add adds the data of an event. It reports whether the answer is complete.
func (s *stream) add(data []byte) (done bool, err error) {
	v, err := httpmodel.Decode(data)
	if err != nil {
		return false, s.call.Broken(err)
	}
	members, err := rawjson.Members(v)
	if err != nil {
		return false, s.call.Broken(err)
	}
	switch e := object(members); e.text("type") {
	case "error":
		return false, s.call.Refusal(v)
	case "message_stop":
		return true, nil
	case "message_start":
		err = s.start(e)
	case "content_block_start":
		err = s.startBlock(e)
	case "content_block_delta":
		err = s.growBlock(e)
	case "message_delta":
		err = s.end(e)
	}
	if err != nil {
		return false, s.call.Broken(err)
	}
	return false, nil
}

// object is the members of an object.
type object []rawjson.Member

func (e object) text(name string) string {
	v, _ := rawjson.Value(e, name)
	s, _ := rawjson.Text(v)
	return s
}

// inner returns the object in a member.
func (e object) inner(name string) (object, error) {
	v, _ := rawjson.Value(e, name)
	members, err := rawjson.Members(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", e.text("type"), name, err)
	}
	return members, nil
}

// start begins the message.
func (s *stream) start(e object) error {
	members, err := e.inner("message")
	for _, m := range members {
		if m.Name != "content" {
			s.top = httpmodel.Replace(s.top, m)
		}
	}
	return err
}

// startBlock begins a content block.
func (s *stream) startBlock(e object) error {
	if n, err := e.index(); err != nil || n != len(s.blocks) {
		return fmt.Errorf("block %d begins where block %d should", n, len(s.blocks))
	}
	members, err := e.inner("content_block")
	if err != nil {
		return err
	}
	b := &block{members: members, kind: members.text("type")}
	s.blocks = append(s.blocks, b)
	for _, m := range members {
		if piece, ok := rawjson.Text(m.Value); ok && grows(m.Name) {
			s.grow(len(s.blocks)-1, m.Name, piece)
		}
	}
	return nil
}

func (e object) index() (int, error) {
	v, _ := rawjson.Value(e, "index")
	return strconv.Atoi(string(v))
}

// growBlock adds a delta to a content block.
func (s *stream) growBlock(e object) error {
	n, err := e.index()
	if err != nil || n < 0 || n >= len(s.blocks) {
		return fmt.Errorf("a delta for block %d of %d", n, len(s.blocks))
	}
	delta, err := e.inner("delta")
	if err != nil {
		return err
	}
	if delta.text("type") == "citations_delta" {
		citation, _ := rawjson.Value(delta, "citation")
		s.blocks[n].add(rawjson.Member{Name: "citations", Value: rawjson.Array([]jsontext.Value{citation})})
		return nil
	}
	for _, m := range delta {
		if m.Name == "type" {
			continue
		}
		if piece, ok := rawjson.Text(m.Value); ok {
			s.grow(n, m.Name, piece)
		} else {
			s.blocks[n].add(m)
		}
	}
	return nil
}

// grow adds a piece to a text of a block, and emits it.
func (s *stream) grow(n int, name, piece string) {
	b := s.blocks[n]
	if piece == "" {
		return
	}
	b.write(name, piece)
	if kind := b.partType(name); kind != "" {
		s.emit(eventlog.Delta{Part: n, Kind: kind, Text: piece})
	}
}

// end adds the stop reason and the last counts. A count of the event replaces the count
// of the first event.
func (s *stream) end(e object) error {
	members, err := e.inner("delta")
	if err != nil {
		return err
	}
	for _, m := range members {
		s.top = httpmodel.Replace(s.top, m)
	}
	if _, ok := rawjson.Value(e, "usage"); !ok {
		return nil
	}
	counts, err := e.inner("usage")
	if err != nil {
		return err
	}
	usage, _ := object(s.top).inner("usage") // a message may begin without usage
	for _, m := range counts {
		usage = httpmodel.Replace(usage, m)
	}
	s.top = rawjson.Set(s.top, "usage", rawjson.Object(usage))
	return nil
}

// answer is the whole answer. Its error reports a missing stop_reason.
func (s *stream) answer() (jsontext.Value, error) {
	if object(s.top).text("stop_reason") == "" {
		return nil, s.call.Broken(errNoFinish)
	}
	content := make([]jsontext.Value, len(s.blocks))
	for i, b := range s.blocks {
		content[i] = b.json()
	}
	top := httpmodel.Body(s.top)
	top.Set("content", rawjson.Array(content))
	return top.JSON(), nil
}
