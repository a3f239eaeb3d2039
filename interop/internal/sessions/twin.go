package sessions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/rawjson"
)

// neighbors is the number of messages around an erased one by which a copy of it is found in a
// file of another session.
const neighbors = 3

// twins finds new records that may be copies of erased messages of other sessions. The
// messages before or after a copy are equal to the messages before or after the erased one.
// The files of one import share it.
type twins struct {
	before, after map[words][]surroundings // by the newest of the messages
}

// surroundings are up to three messages in order, right before or right after
// an erased message. They are fewer at the beginning or the end of a session.
type surroundings struct {
	messages []words
	session  string
	seq      int64 // of the erased message
}

// words are a digest of the role and the texts of a message, which all formats give it. They are
// never stored.
type words [sha256.Size]byte

// wordsOf returns the words of a message; ok is false for an event without text.
func wordsOf(e *event.Event) (w words, ok bool) {
	var m struct {
		Role  event.Role `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if !isTalk(e.Type) || rawjson.Unmarshal(e.Data, &m, jsontext.AllowInvalidUTF8(true)) != nil {
		return w, false
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q", m.Role)
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Text != "" {
			_, _ = fmt.Fprintf(sum, " %q", p.Text)
			ok = true
		}
	}
	return words(sum.Sum(nil)), ok
}

type twinsKey struct{ log *eventlog.Log }

// twinsOf returns the twins of a log, nil if it has none, or the error of its storage.
func (s *Session) twinsOf(ctx context.Context) (*twins, error) {
	type read struct {
		*twins
		err error
	}
	r := importrun.Shared(ctx, twinsKey{s.log}, func(ctx context.Context, key twinsKey) read {
		x, err := readTwins(ctx, key.log)
		if err == nil && len(x.before)+len(x.after) == 0 {
			x = nil
		}
		return read{x, err}
	})
	return r.twins, r.err
}

// readTwins reads the sessions with erased events.
func readTwins(ctx context.Context, log *eventlog.Log) (*twins, error) {
	x := &twins{before: map[words][]surroundings{}, after: map[words][]surroundings{}}
	marks, err := removalsOf(ctx, log)
	if err != nil || marks.IsEmpty() {
		return x, err
	}
	for info, err := range log.Sessions(ctx) {
		if err == nil && marks.Erased(info.ID) {
			err = x.read(ctx, log, info.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("find copies of erased messages: %w", err)
		}
	}
	return x, nil
}

// read reads the messages of a session. The events of a damaged session are the events before
// the damage.
func (x *twins) read(ctx context.Context, log *eventlog.Log, session string) error {
	var last []words          // of the newest messages
	var erased []surroundings // their later messages are not complete
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Transient()) {
		switch {
		case errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrNotFound):
			err = nil
			fallthrough
		case err != nil:
			x.end(erased)
			return err
		case !isContent(e.Type):
			continue
		case e.Redacted():
			put(x.before, surroundings{slices.Clone(last), session, e.Seq})
			erased = append(erased, surroundings{nil, session, e.Seq})
			continue
		}
		d, ok := wordsOf(&e)
		if !ok {
			continue
		}
		last = newest(last, d)
		for i := range erased {
			erased[i].messages = append(erased[i].messages, d)
		}
		for len(erased) > 0 && len(erased[0].messages) == neighbors {
			put(x.after, erased[0])
			erased = erased[1:]
		}
	}
	x.end(erased)
	return nil
}

// end adds the surroundings of erased messages near the end of a session.
func (x *twins) end(erased []surroundings) {
	for _, s := range erased {
		put(x.after, s)
	}
}

func put(to map[words][]surroundings, s surroundings) {
	if n := len(s.messages); n > 0 {
		to[s.messages[n-1]] = append(to[s.messages[n-1]], s)
	}
}

// newest appends a message to the newest ones.
func newest(last []words, d words) []words {
	if len(last) == neighbors {
		last = append(last[:0], last[1:]...)
	}
	return append(last, d)
}

// find returns the surroundings that the newest messages of a file end with, in a session
// other than the file's.
func find(in map[words][]surroundings, last []words, session string) *surroundings {
	if len(last) == 0 {
		return nil
	}
	all := in[last[len(last)-1]]
	for i := range all {
		s := &all[i]
		if n := len(last) - len(s.messages); s.session != session && n >= 0 && slices.Equal(last[n:], s.messages) {
			return s
		}
	}
	return nil
}
