// Package lists imports lists of messages, the shapes that any program can
// write: those of OpenAI's Chat Completions and Responses, and of Anthropic's
// Messages. A file holds JSON or lines of it:
//
//   - a list of messages, or an object with one under "messages" or
//     "conversations", or under "input" and "output", and whatever else: one
//     conversation
//   - a response: with "choices", of which the first is the answer, or with "output";
//     behind its request where both stand in one object, as "request" (or "body")
//     and "response", or as a list of messages and "response": one conversation
//   - a list of such, or one on each line: several
//   - messages, one on each line: one
//
// Under "conversations" there may be turns, which have "from" and "value". An
// answer has the model, the tokens and the id that are told of its response.
//
// The shapes may be mixed; shapeOf says which one a conversation is of. Each
// message or item becomes a message_added; system and instructions become the
// first one. Items of Responses that follow each other are pieces of one message
// of the assistant, told by its group. What a message has no member for stays in
// its extra, and all members of the conversation in that of session_started;
// others than when it began become a session_updated. An element that is no
// message is kept raw as "messages:<its type>".
//
// # Which session
//
// The id of a conversation is its own: the first of id, session_id,
// conversation_id, thread_id, chat_id and uuid that it has. One of fewer than 12
// characters is taken to be unique in its file only. Then, and without any, the
// session is named by the file: "<name>-<id, or number in the file>-<digits of
// the absolute path>". A file that moves is another conversation. So is a session
// named where another file's conversation has the same id and begins otherwise.
//
// # A conversation that grows
//
// A message is known again by what it says and by all that was said before it.
// Importing again adds nothing, a longer list appends the rest. Where a list
// parts from what the session has, a head_moved leads to the last message that
// is the same, and the rest follows as another branch; a list that the session
// has already moves nothing. Unknown members are no part of what a message
// says: they stay as they were first read.
//
// Messages have the time that they name, else that of the message before, else
// that of the conversation, else that of the file's last change.
package lists

import (
	"context"
	"errors"
	"io"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Name is the name of the format.
const Name = "messages"

// Format imports lists of messages. The zero value is ready for use.
type Format struct{}

// Name is "messages".
func (Format) Name() string { return Name }

// Declare gives the ids of the conversations. A conversation without an id of its
// own is named by its file: no other file has it.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	for rec, err := range interop.Values(src) {
		if err != nil && errors.Is(err, io.ErrUnexpectedEOF) {
			rec.Value = closed(rec.Value)
		}
		if len(rec.Value) == 0 || isMessage(rec.Value) {
			continue
		}
		conversations, _ := split(&rec)
		for i := range conversations {
			if conversations[i].ownID() {
				ids.Owns = append(ids.Owns, conversations[i].id)
			}
		}
	}
	return ids
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := importer{ctx: ctx, log: log, file: newFile(src)}
	err := im.run(src)
	return im.result, err
}

// run imports value by value. A conversation that stops does not undo those
// before it.
func (im *importer) run(src interop.Source) error {
	for rec, err := range interop.Values(src) {
		var refused *interop.RecordError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if refused != nil {
			im.refuse(refused)
			rec.Value = salvaged(&rec, refused)
		}
		if len(rec.Value) == 0 {
			continue
		}
		if err := im.value(&rec); err != nil {
			return err
		}
	}
	if im.lines != nil {
		im.others = append(im.others, im.conversation(im.lines))
	}
	return errors.Join(im.others...)
}

func (im *importer) refuse(e *interop.RecordError) {
	im.result.Records++
	im.result.Reject(e)
}

// salvaged is what stands before the place where a value is cut off; nil if the
// value is bad for another reason.
func salvaged(rec *interop.Record, refused *interop.RecordError) []byte {
	if !errors.Is(refused.Cause, io.ErrUnexpectedEOF) {
		return nil
	}
	return closed(rec.Value)
}

// value imports a value of the file.
func (im *importer) value(rec *interop.Record) error {
	if isMessage(rec.Value) {
		im.onLine(rec)
		return nil
	}
	conversations, ok := split(rec)
	if !ok {
		im.refuse(rec.Reject(errNoList))
		return nil
	}
	for i := range conversations {
		im.file.count++
		conversations[i].number = im.file.count
		err := im.conversation(&conversations[i])
		if errors.Is(err, interop.ErrHistory) {
			im.others = append(im.others, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

var errNoList = errors.New("neither a message nor a list of messages")

// onLine takes in a message that stands on a line of its own.
func (im *importer) onLine(rec *interop.Record) {
	if im.lines == nil {
		im.file.count++
		im.lines = &conversation{number: im.file.count}
	}
	kept := rec.Clone()
	im.lines.elements = append(im.lines.elements, element{kept.Value, &kept, 0})
}
