package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop/internal/records"
)

// neighbors is the number of messages around an erased one by which a copy of it is found in a
// file of another session.
const neighbors = 3

// twins finds new records that may be copies of erased messages of other sessions. The
// messages before or after a copy are equal to the messages before or after the erased one.
// The files of one import share it.
type twins struct {
	before, after map[event.Digest][]surroundings // by the newest of the digests
}

// surroundings are the digests of up to three messages in order, right before or right after
// an erased message. They are fewer at the beginning or the end of a session.
type surroundings struct {
	digests []event.Digest
	session string
	seq     int64 // of the erased message
}

type twinsKey struct{ log *eventlog.Log }

// twinsOf returns the twins of a log, or the error of its storage.
func (s *Session) twinsOf(ctx context.Context) (*twins, error) {
	type read struct {
		*twins
		err error
	}
	r := importrun.Shared(ctx, twinsKey{s.log}, func(ctx context.Context, key twinsKey) read {
		x, err := readTwins(ctx, key.log)
		return read{x, err}
	})
	return r.twins, r.err
}

// readTwins reads the sessions with erased events.
func readTwins(ctx context.Context, log *eventlog.Log) (*twins, error) {
	x := &twins{before: map[event.Digest][]surroundings{}, after: map[event.Digest][]surroundings{}}
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
	var last []event.Digest   // of the newest messages
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
		d := records.DigestOf(&e)
		if d == "" || !isTalk(e.Type) {
			continue
		}
		last = newest(last, d)
		for i := range erased {
			erased[i].digests = append(erased[i].digests, d)
		}
		for len(erased) > 0 && len(erased[0].digests) == neighbors {
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

func put(to map[event.Digest][]surroundings, s surroundings) {
	if n := len(s.digests); n > 0 {
		to[s.digests[n-1]] = append(to[s.digests[n-1]], s)
	}
}

// newest appends a digest to the newest ones.
func newest(last []event.Digest, d event.Digest) []event.Digest {
	if len(last) == neighbors {
		last = append(last[:0], last[1:]...)
	}
	return append(last, d)
}

// find returns the surroundings that the newest messages of a file end with, in a session
// other than the file's.
func find(in map[event.Digest][]surroundings, last []event.Digest, session string) *surroundings {
	if len(last) == 0 {
		return nil
	}
	all := in[last[len(last)-1]]
	for i := range all {
		s := &all[i]
		if n := len(last) - len(s.digests); s.session != session && n >= 0 && slices.Equal(last[n:], s.digests) {
			return s
		}
	}
	return nil
}
