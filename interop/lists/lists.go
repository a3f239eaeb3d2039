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
//	a list of these, or JSON lines  a conversation each; an element that is none is
//	                                rejected
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
		for one := range each(&rec) {
			if c, ok := fromElement(one, one.Value); ok && c.hasUniqueID() {
				ids.Owns = append(ids.Owns, c.id)
			}
		}
	}
	return ids
}

// Import appends the messages that are missing in the log.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	f := file{src: src}
	return document.ImportRecords(ctx, log, src, formatName, f.records(), f.read)
}

// file finds the conversations of a file.
type file struct {
	src   interop.Source
	count int // of the conversations so far
	// lines is the conversation with one message a line; nil if there is none. first is its
	// first record.
	lines *conversation
	first records.Record
	// foreign says that a line without a message is of another program; nil if none is.
	foreign *foreignError
}

// records yields the values of the file, without the messages on lines. Of these it yields
// the first one at the end: f.lines reads the others.
func (f *file) records() iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range f.values() {
			switch {
			case err != nil:
				if !yield(rec, err) {
					return
				}
			case !messages.IsMessage(rec.Value):
				for one := range each(&rec) {
					if !yield(*one, nil) {
						return
					}
				}
			case f.lines == nil:
				f.first = rec.Clone()
				f.lines = &conversation{number: f.next(), lists: []iter.Seq2[element, error]{f.messages}}
			}
		}
		if f.lines != nil {
			yield(f.first, nil)
		}
	}
}

// values yields the values of the file, and after an error the part of the value that can
// be imported.
func (f *file) values() iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range records.Values(f.src) {
			if err != nil {
				if !yield(rec, err) {
					return
				}
				if rec.Value = salvage(&rec, err); rec.Value == nil {
					continue
				}
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// messages yields the messages on lines. It reads the file again.
func (f *file) messages(yield func(element, error) bool) {
	for rec, err := range f.values() {
		var rejected *records.RecordError
		if err != nil && !errors.As(err, &rejected) {
			yield(element{}, err)
			return
		}
		if err == nil && messages.IsMessage(rec.Value) {
			kept := rec.Clone() // the next record reuses the bytes
			if !yield(element{kept.Value, &kept, kept.Value}, nil) {
				return
			}
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

func (f *file) next() int {
	f.count++
	return f.count
}

var errNoList = errors.New("neither a message nor a list of messages")

// read returns the session of a value.
func (f *file) read(of *document.File, rec *records.Record) (all []document.Session, err error) {
	if messages.IsMessage(rec.Value) {
		if f.foreign != nil {
			return nil, f.foreign
		}
		if err := f.lines.check(); err != nil {
			return nil, err
		}
		return []document.Session{f.lines.session(of, rec)}, nil
	}
	c, ok := fromElement(rec, rec.Value)
	if !ok {
		if sign := foreignLine(rec.Value); sign != "" && f.foreign == nil {
			f.foreign = &foreignError{line: rec.Line, sign: sign}
		}
		return nil, errNoList
	}
	c.number = f.next()
	if err := c.check(); err != nil {
		return nil, err
	}
	return []document.Session{c.session(of, rec)}, nil
}
