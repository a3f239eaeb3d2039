// Package lists imports lists of messages. It reads the formats of OpenAI's Chat
// Completions and Responses and of Anthropic's Messages, and the turns of ShareGPT.
// A file holds JSON or JSON lines:
//
//	a list of messages              one conversation
//	an object with a list           one conversation; the list is under "messages" or
//	                                "conversations", or under "input" and "output"
//	a response                      one conversation; the answer is the first of
//	                                "choices", or under "output"
//	a request and a response        one conversation; the object has "request" or "body"
//	                                or a list, and "response"
//	a list of these, or JSON lines  a conversation each
//	messages on lines               one conversation
//
// The messages under "conversations" may be turns with "from" and "value". An
// answer gets the model, the tokens and the id of its response.
//
// A list is rejected if a message has a member or a block of the history of a program,
// such as "parts", "toolInvocations", "childrenIds", "modelInfo" or a block
// "tool-call", or if a call or a result is a line of its own between messages: the calls,
// branches or tokens in them would be lost (foreign.go).
//
// One list may mix the formats; shapeOf finds the format of a conversation. Each
// message or item becomes a message_added. System and instructions become the
// first message. Consecutive items of Responses from the assistant are pieces of
// one message: they have one group. Unknown members of a message go to its extra.
// The members of the conversation go to the extra of session_started; new ones
// become a session_updated. An element that is no message is kept raw as
// "messages:<its type>".
//
// # The session id
//
// The id of a conversation is the first of its members id, session_id,
// conversation_id, thread_id, chat_id and uuid. An id of 12 characters or more
// becomes the session id. A shorter id may be unique in its file only. Without a
// long id the session id is "<file>-<id, or number in the file>-<digest of the
// absolute path>", so a file that moves becomes a new session. If another file has a
// different conversation with the same id, the second one gets a session id of this
// form, too.
//
// # A conversation that grows
//
// Package document walks the tree of the session along the list: it identifies a
// message by its content and the message before it. A second import adds nothing, a
// longer list appends its new messages. If a list differs from the session, a head_moved leads to the last
// common message, and the rest of the list becomes another branch. Unknown members
// are no part of the content: the first import decides them.
//
// The time of a message is its own, or else the time of the message before, of
// the conversation or of the file's last change.
package lists

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "messages"

// Format imports lists of messages. The zero value is ready for use.
type Format struct{}

// Name is "messages".
func (Format) Name() string { return formatName }

// Declare gives the ids of the conversations. A conversation without an id of its
// own is named by its file: no other file has it.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	for rec, err := range records.Values(src) {
		if err != nil {
			rec.Value = salvage(&rec, err)
		}
		if len(rec.Value) == 0 || messages.IsMessage(rec.Value) {
			continue
		}
		conversations, _ := split(&rec)
		for i := range conversations {
			if conversations[i].hasUniqueID() {
				ids.Owns = append(ids.Owns, conversations[i].id)
			}
		}
	}
	return ids
}

// Import appends the messages that are missing in the log.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	var f file
	return document.ImportRecords(ctx, log, src, formatName, f.records(src), f.read)
}

// file finds the conversations of a file.
type file struct {
	count int // of the conversations so far
	// lines is the conversation with one message a line; nil if there is none.
	lines *conversation
	// foreign says that a line without a message is of another program; nil if none is.
	foreign *foreignError
}

// records yields the values of the file, without the messages on lines. It collects
// these in f.lines, and yields the first of them at the end.
func (f *file) records(src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range records.Values(src) {
			if err != nil {
				if !yield(rec, err) {
					return
				}
				if rec.Value = salvage(&rec, err); rec.Value == nil {
					continue
				}
			}
			if messages.IsMessage(rec.Value) {
				f.addLine(&rec)
			} else if !yield(rec, nil) {
				return
			}
		}
		if f.lines != nil {
			yield(*f.lines.elements[0].rec, nil)
		}
	}
}

// salvage returns the part of a truncated value that can be imported; nil if there
// is none.
func salvage(rec *records.Record, err error) []byte {
	var rejected *records.RecordError
	if !errors.As(err, &rejected) || !errors.Is(rejected.Cause, io.ErrUnexpectedEOF) {
		return nil
	}
	return closeList(rec.Value)
}

// addLine adds a message on a line.
func (f *file) addLine(rec *records.Record) {
	if f.lines == nil {
		f.lines = &conversation{number: f.next()}
	}
	kept := rec.Clone()
	f.lines.elements = append(f.lines.elements, element{kept.Value, &kept, kept.Value})
}

func (f *file) next() int {
	f.count++
	return f.count
}

var errNoList = errors.New("neither a message nor a list of messages")

// read returns the sessions of a value.
func (f *file) read(of *document.File, rec *records.Record) (all []document.Session, err error) {
	if messages.IsMessage(rec.Value) {
		if f.foreign != nil {
			return nil, f.foreign
		}
		if err := f.lines.check(); err != nil {
			return nil, err
		}
		s, err := f.lines.session(of, rec)
		return []document.Session{s}, err
	}
	conversations, ok := split(rec)
	if !ok {
		if sign := foreignLine(rec.Value); sign != "" && f.foreign == nil {
			f.foreign = &foreignError{line: rec.Line, sign: sign}
		}
		return nil, errNoList
	}
	for i := range conversations {
		c := &conversations[i]
		c.number = f.next()
		if err := c.check(); err != nil {
			return nil, err
		}
		s, err := c.session(of, rec)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
