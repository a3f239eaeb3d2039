// Package oasst imports message trees of Open Assistant: lines of JSON, each a tree
// with its replies in each other, or a message with its parent's id.
//
// A tree is a session of the tree's id. Each message becomes a message_added, known
// again by its id; ranks, labels and reviews stay in its extra. Each reply is a
// branch: where a message has several, a head_moved leads back to it, labelled with
// the reply's rank. The best reply comes last, so that the path ends at it: that of
// the lowest rank, or the last one where there are no ranks; deleted ones come
// before all others. Lines of single messages are branches in their order. Such a
// line whose parent is not in the log follows the start.
//
// A line that is cut off is refused, those before it are imported.
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
)

// Name is the name of the format.
const Name = "oasst"

// Format imports message trees of Open Assistant. The zero value is ready for use.
type Format struct{}

// Name is "oasst".
func (Format) Name() string { return Name }

// Declare gives one id for all files: messages of a tree may be in any of them.
func (Format) Declare(interop.Source) interop.IDs {
	return interop.IDs{Owns: []string{"oasst:trees"}}
}

// Detect looks for the id of a tree or of a message.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return false
	}
	if h.Has("message_tree_id", "prompt") {
		h = h.In("prompt")
	}
	return h.Text("message_id") != "" && h.Has("text")
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, Name, read)
}

// read reads a tree or a message.
func read(_ *document.File, rec *interop.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	s := document.Session{Rec: rec, About: event.Session{Agent: "Open Assistant"}}
	top := *rec
	if v := o.Take("prompt"); v != nil {
		top = document.Told(rec, v)
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
	rec        interop.Record // without the replies
	id, parent string
	at         time.Time
	message    event.Message
	rank       string
	order      int64 // among the replies: the best has the highest
	replies    []node
}

// deepest bounds how deep replies are read.
const deepest = 1000

// nodeOf reads a message and what it was replied.
func nodeOf(rec *interop.Record, depth int) (n node, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || depth > deepest {
		return n, document.ErrShape
	}
	replies := o.Take("replies")
	n.rec = document.Told(rec, o.Rest())
	var told struct {
		ID      string   `json:"message_id"`
		Parent  string   `json:"parent_id"`
		Text    string   `json:"text"`
		Role    string   `json:"role"`
		Model   string   `json:"model_name"`
		Created string   `json:"created_date"`
		Rank    *float64 `json:"rank"`
		Deleted bool     `json:"deleted"`
	}
	if err := json.Unmarshal(n.rec.Value, &told); err != nil {
		return n, err
	}
	if told.ID == "" {
		return n, document.ErrShape
	}
	n.id, n.parent = told.ID, told.Parent
	n.at = interop.Time(told.Created)
	n.message = said(&o, told.Role, told.Text, told.Model)
	n.order = orderOf(told.Rank, told.Deleted)
	if told.Rank != nil {
		n.rank = "rank " + string(o.Peek("rank"))
	}
	return n, n.read(rec, replies, depth)
}

// said makes a message, whose extra is what else is told of it.
func said(o *parts.Members, role, text, model string) event.Message {
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

// orderOf is higher for better replies.
func orderOf(rank *float64, deleted bool) int64 {
	order := int64(-1 << 40) // behind all that have a rank
	if rank != nil {
		order = -int64(min(max(*rank, 0), 1<<30))
	}
	if deleted {
		order -= 1 << 50
	}
	return order
}

// read reads the replies, the best last.
func (n *node) read(rec *interop.Record, replies jsontext.Value, depth int) error {
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

// walk adds the items of the messages, and gives the id of the last.
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
