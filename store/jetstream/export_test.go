package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
)

// Interrupted is Rewrite of a process that dies before it erases the replaced messages.
func (s *Store) Interrupted(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	l, err := s.writable(ctx)
	if err == nil {
		r := rewriting{stream: l.shard(session), session: session}
		_, err = r.commit(ctx, expect, replace, add)
	}
	return err
}

// InterruptedRemoval is RemoveSession of a process that dies before it erases anything.
func (s *Store) InterruptedRemoval(ctx context.Context, session string, expect event.Head) error {
	l, err := s.writable(ctx)
	if err == nil {
		_, err = l.shard(session).removeVisibly(ctx, session, expect)
	}
	return err
}

// PutBlobTwice is PutBlob of a process that does not see that the server has stored the
// message that names the pieces, and finishes the upload again.
func (s *Store) PutBlobTwice(ctx context.Context, body string) (event.Digest, error) {
	l, err := s.writable(ctx)
	if err != nil {
		return "", err
	}
	b := blobWriter{layout: l, sum: sha256.New(), upload: newID(), size: int64(len(body))}
	sum := sha256.Sum256([]byte(body))
	d := event.Digest("sha256:" + hex.EncodeToString(sum[:]))
	if err := b.put(ctx, []byte(body)); err != nil {
		return "", err
	}
	if _, err := b.publish(ctx, d, b.upload, nil); err != nil {
		return "", err
	}
	return d, b.finish(ctx, d)
}

// Damage stores the lines that edit returns in the messages of a session, like a program
// with rights that knows nothing of logs. The headers stay: a message may then have too
// few lines, and the last one too many.
func (s *Store) Damage(ctx context.Context, session string, edit func(lines []string) []string) error {
	l, err := s.writable(ctx)
	if err != nil {
		return err
	}
	st := l.shard(session)
	frames, err := st.allFrames(ctx, session)
	if err != nil {
		return err
	}
	var before []string
	for _, f := range frames {
		for _, line := range f.lines {
			before = append(before, string(line)+"\n")
		}
	}
	spread(frames, edit(before))
	newest, err := st.newest(ctx)
	if err == nil {
		err = st.purge(ctx, st.of(session, "*"), newest+1)
	}
	var last *frame
	for _, f := range frames {
		if err != nil {
			break
		}
		f.n, f.index, f.back, f.start = 0, 0, nil, place{first: f.first}
		if last != nil {
			f.n, f.back, f.start = last.n+1, last.skip(), last.beginning()
		}
		m := f.message(st.of(session, framesSubject), 0)
		m.Header = nats.Header{frameHeader: m.Header[frameHeader]}
		f.at, err = st.publish(ctx, m)
		last = f
	}
	return err
}

// allFrames reads the current frames of a session.
func (st *stream) allFrames(ctx context.Context, session string) (frames []*frame, err error) {
	v, err := st.view(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, s := range v.index.spans {
		f, err := v.replacing(ctx, &s)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	err = st.each(ctx, st.of(session, framesSubject), v.index.base+1, func(m *message) error {
		f, removed, err := parseFrame(m)
		if removed || v.index.hides(m.at) || f.count == 0 {
			return nil
		}
		at := len(frames)
		for at > 0 && frames[at-1].first > f.first {
			at--
		}
		frames = append(frames[:at], append([]*frame{f}, frames[at:]...)...)
		return err
	})
	return frames, err
}

// spread puts lines into the places of frames. The last frame gets the lines that are
// left.
func spread(frames []*frame, lines []string) {
	for i, f := range frames {
		n := min(int(f.count), len(lines))
		if i == len(frames)-1 {
			n = len(lines)
		}
		f.lines = nil
		for _, line := range lines[:n] {
			f.lines = append(f.lines, []byte(strings.TrimSuffix(line, "\n")))
		}
		lines = lines[n:]
	}
}

// Received is the number of messages that the store has received.
func (s *Store) Received() uint64 { return s.client.Load().nc.Stats().InMsgs }
