// Package oasst imports message trees of Open Assistant. A file has JSON lines. A
// line is a tree with nested replies, or a message with the id of its parent.
//
// A tree becomes a session with the tree's id. Each message becomes a message_added,
// identified by its message id. Ranks, labels and reviews stay in its extra. Each
// reply is a branch: if a message has several replies, a head_moved leads back to the
// message, with the rank of the next reply as its label.
//
// The best reply comes last, so the path ends with it. It is the reply with the
// lowest rank, or the last reply if there are no ranks. Deleted replies come first.
// Lines of single messages become branches in file order. A message whose parent is
// missing in the log follows the start of the session.
//
// A line that is cut off is rejected. The lines before it are imported.
package oasst

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "oasst"

// Format imports message trees of Open Assistant. The zero value is ready for use.
type Format struct{}

// Name returns "oasst".
func (Format) Name() string { return formatName }

// Declare gives one id for all files: messages of a tree may be in any of them.
func (Format) Declare(interop.Source) interop.IDs {
	return interop.IDs{Owns: []string{"oasst:trees"}}
}

// Detect checks for the id and the text of a message, alone or in a tree.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return false
	}
	if h.Has("message_tree_id", "prompt") {
		h = h.In("prompt")
	}
	return h.Text("message_id") != "" && h.Has("text") && (!h.Has("role") || isRole(h.Text("role")))
}

// isRole reports whether a message of Open Assistant can have the role.
func isRole(role string) bool { return role == "prompter" || role == "assistant" }

// Import appends the events of the source that are not in the log yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, formatName, read)
}

// read returns the session of a line: a tree or a message.
func read(_ *document.File, rec *records.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	s := document.Session{Rec: rec, About: event.Session{Agent: "Open Assistant"}}
	top := *rec
	if v := o.Take("prompt"); v != nil {
		top = document.Subrecord(rec, v)
		s.About.Extra = o.Rest()
	}
	n, err := nodeOf(&top, 0)
	if err != nil {
		return nil, err
	}
	s.ID = cmp.Or(o.Maybe("message_tree_id"), n.id)
	s.At = n.at
	s.Items, s.Head = n.walk(nil)
	s.Piece = n.parent != ""
	return []document.Session{s}, nil
}

// node is a message and its replies.
type node struct {
	rec        records.Record // the message without its replies
	id, parent string
	at         time.Time
	message    event.Message
	rank       string
	order      int64 // sort key among the replies; the best reply has the highest
	replies    []node
}

// maxDepth is the maximum depth of nested replies.
const maxDepth = 1000

// nodeOf parses a message and its replies.
func nodeOf(rec *records.Record, depth int) (n node, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || depth > maxDepth {
		return n, document.ErrShape
	}
	replies := o.Take("replies")
	n.rec = document.Subrecord(rec, o.Rest())
	var fields struct {
		ID      string   `json:"message_id"`
		Parent  string   `json:"parent_id"`
		Text    string   `json:"text"`
		Role    string   `json:"role"`
		Model   string   `json:"model_name"`
		Created string   `json:"created_date"`
		Rank    *float64 `json:"rank"`
		Deleted bool     `json:"deleted"`
	}
	if err := json.Unmarshal(n.rec.Value, &fields); err != nil {
		return n, err
	}
	if fields.ID == "" || !isRole(fields.Role) {
		return n, document.ErrShape
	}
	n.id, n.parent = fields.ID, fields.Parent
	n.at = records.Time(fields.Created)
	n.message = messageOf(&o, fields.Role, fields.Text, fields.Model)
	n.order = orderOf(fields.Rank, fields.Deleted)
	if fields.Rank != nil {
		n.rank = "rank " + string(o.Peek("rank"))
	}
	return n, n.read(rec, replies, depth)
}

// messageOf makes the message of a node. Its extra holds the other members.
func messageOf(o *parts.Members, role, text, model string) event.Message {
	m := event.Message{Role: event.Assistant, Model: model, Parts: []event.Part{event.Text(text)}}
	if role != "assistant" {
		m = event.Message{Role: event.User, Parts: m.Parts}
	} else {
		o.Take("model_name")
	}
	o.Take("text")
	o.Take("parent_id")
	m.Extra = o.Rest()
	return m
}

// orderOf returns the order of a reply; better replies are higher.
func orderOf(rank *float64, deleted bool) int64 {
	order := int64(-1 << 40) // below every rank
	if rank != nil {
		order = -int64(min(max(*rank, 0), 1<<30))
	}
	if deleted {
		order -= 1 << 50
	}
	return order
}

// read parses the replies and sorts them, the best one last.
func (n *node) read(rec *records.Record, replies jsontext.Value, depth int) error {
	if replies == nil || replies.Kind() == 'n' {
		return nil
	}
	all, err := document.Elements(rec, replies)
	if err != nil {
		return err
	}
	for i := range all {
		reply, err := nodeOf(&all[i], depth+1)
		if err != nil {
			return err
		}
		reply.parent = n.id
		n.replies = append(n.replies, reply)
	}
	slices.SortStableFunc(n.replies, func(a, b node) int { return cmp.Compare(a.order, b.order) })
	return nil
}

// walk appends the items of the tree, and returns the id of the last message.
func (n *node) walk(items []document.Item) (all []document.Item, last string) {
	items = append(items, document.Item{
		Rec: n.rec, Name: n.id, After: n.parent, Label: n.rank, At: n.at, Payload: n.message, Kind: "message",
	})
	last = n.id
	for i := range n.replies {
		items, last = n.replies[i].walk(items)
	}
	return items, last
}
