package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	nats "github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/eventlog"
)

// lostStream is the damage of a log that has lost a stream, or all its messages.
func (st *stream) lostStream(format string, args ...any) error {
	return &eventlog.CorruptError{Path: "stream " + st.name, Offset: -1, Cause: fmt.Errorf(format, args...)}
}

// findStreams looks for the streams of the log. It is nil if there are none, or their
// creation was interrupted. A log that lost a stream is damaged, and nothing takes the place
// of the stream. Another process may create the streams meanwhile, and a server of a cluster
// may learn of them late, so damage counts if it stays.
func (s *Store) findStreams(ctx context.Context, c *client) (*layout, error) {
	began := time.Now()
	for try := 1; ; try++ {
		l, clustered, err := s.lookForStreams(ctx, c)
		again := try == 1 || clustered && time.Since(began) < longestPause
		if !errors.Is(err, eventlog.ErrCorrupt) || !again {
			return l, err
		}
		select {
		case <-time.After(2 * busyPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookForStreams is findStreams as of now. clustered is true for servers of a cluster.
func (s *Store) lookForStreams(ctx context.Context, c *client) (l *layout, clustered bool, err error) {
	l = s.newLayout(c, 0)
	info, err := l.control.info(ctx, nil)
	if isCode(err, codeStreamNotFound) {
		clustered, err = s.lostControl(ctx, c)
		return nil, clustered, err
	}
	if err == nil {
		l, err = s.check(c, info)
	}
	if err == nil {
		err = s.checkStream(l.control, info)
	}
	if err != nil {
		return nil, false, err
	}
	clustered = isClustered(info)
	found, err := l.findOthers(ctx)
	if err != nil {
		return nil, clustered, err
	}
	created := info.State.LastSeq > 0
	switch {
	case !created && found.newest > 0:
		return nil, clustered, l.control.lostStream("the stream has lost all its messages, with the locks, the marks of removed sessions and the watermarks: restore it from a backup, or copy the sessions to a new log")
	case !created:
		return nil, clustered, nil // an interrupted creation
	case found.missing != nil:
		return nil, clustered, found.missing.lostStream("the stream is missing: restore it from a backup")
	}
	return l, clustered, l.findBehind(ctx, found.last)
}

func isClustered(info *nats.StreamInfo) bool { return info.Cluster != nil && info.Cluster.Name != "" }

// found is the state of the shards and the blobs.
type found struct {
	last    map[*stream]uint64 // the last sequence of each stream
	newest  uint64             // the highest of these
	missing *stream
}

// findOthers looks for the shards and the blobs.
func (l *layout) findOthers(ctx context.Context) (f found, err error) {
	f.last = make(map[*stream]uint64)
	for _, st := range l.all()[1:] {
		info, err := st.info(ctx, nil)
		switch {
		case isCode(err, codeStreamNotFound):
			f.missing = st
			continue
		case err == nil:
			err = st.store.checkStream(st, info)
		}
		if err != nil {
			return f, err
		}
		f.last[st] = info.State.LastSeq
		f.newest = max(f.newest, info.State.LastSeq)
	}
	return f, nil
}

// lostControl reports the loss of the control stream: other streams of the log are there.
func (s *Store) lostControl(ctx context.Context, c *client) (clustered bool, err error) {
	l := s.newLayout(c, 1)
	for _, st := range l.all()[1:] {
		info, err := st.info(ctx, nil)
		switch {
		case isCode(err, codeStreamNotFound):
		case err != nil:
			return false, err
		case info.Config.Metadata[versionKey] != "":
			return isClustered(info), l.control.lostStream("the stream is missing, and %s is there: restore it from a backup", st.name)
		}
	}
	return false, nil
}

// findBehind finds the shards that have lost messages before their newest watermark. They can
// be read and repaired, and take no appends until the log is opened again.
func (l *layout) findBehind(ctx context.Context, last map[*stream]uint64) error {
	return parallel(l.shards, func(st *stream) error {
		w, err := st.watermark(ctx)
		if w == nil || err != nil || w.at <= last[st] {
			return err
		}
		newest, err := st.newest(ctx)
		if err == nil && newest < w.at {
			st.behind = st.lostStream("the stream had message %d and ends at %d: restore it, or copy the lost sessions (verify names them) from a backup, or accept the loss with repair or rm for each", w.at, newest)
		}
		return err
	})
}
