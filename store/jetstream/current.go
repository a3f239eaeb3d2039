package jetstream

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/eventlog"
)

// A leader that was stopped and continues, or that is cut off, answers from an old state until
// it notices that the other servers have elected another leader. Each message that it returns
// is valid, because messages never change. But its answer that a message is missing may be
// wrong. Such an answer counts only if it comes from a state that has every message that this
// process has stored or read.

// contactTime is the longest silence of a server that follows a leader. It is shorter than
// the silence after which servers elect another leader.
const contactTime = 3 * time.Second

// reach records that the stream has a message of the sequence.
func (st *stream) reach(at uint64) {
	for known := st.reached.Load(); at > known; known = st.reached.Load() {
		if st.reached.CompareAndSwap(known, at) {
			return
		}
	}
}

// publish stores a message in the stream and returns its sequence.
func (st *stream) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	at, err := st.client.publish(ctx, m)
	st.reach(at)
	return at, err
}

// publishAll stores several messages in the stream, all or none, and returns the sequence
// of the last one.
func (st *stream) publishAll(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	at, err := st.client.publishAll(ctx, messages)
	st.reach(at)
	return at, err
}

// currentInfo is info from a leader that has every message that this process knows, and
// that hears from a majority of the servers. It asks again until patience ends.
func (st *stream) currentInfo(ctx context.Context, subjects *infoRequest) (*api.StreamInfo, error) {
	for began := time.Now(); ; {
		info, err := st.info(ctx, subjects)
		if err != nil {
			return nil, st.store.failure(err)
		}
		if st.replicas <= 1 || info.State.LastSeq >= st.reached.Load() && isFollowed(info.Cluster) {
			return info, nil
		}
		if err := st.pauseStale(ctx, began); err != nil {
			return nil, err
		}
	}
}

// isFollowed reports whether the leader of a stream hears from a majority of the servers.
func isFollowed(c *api.ClusterInfo) bool {
	if c == nil {
		return true
	}
	heard := 1
	for _, server := range c.Replicas {
		if !server.Offline && server.Active < contactTime {
			heard++
		}
	}
	return 2*heard > len(c.Replicas)+1
}

// pauseStale waits before the next request, after an answer from an old state. It ends
// with ErrUnavailable after patience.
func (st *stream) pauseStale(ctx context.Context, began time.Time) error {
	if time.Since(began) > patience {
		return fmt.Errorf("%w: stream %s: the servers answer from a state before message %d", eventlog.ErrUnavailable, st.name, st.reached.Load())
	}
	select {
	case <-time.After(10 * busyPause):
		return st.store.usable(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// confirmed asks get until it returns a message, or a current leader has no message of the
// subject.
func (st *stream) confirmed(ctx context.Context, subject string, get func() (*message, error)) (*message, error) {
	for began := time.Now(); ; {
		m, err := get()
		if m != nil || err != nil || st.replicas <= 1 {
			return m, err
		}
		info, err := st.currentInfo(ctx, &infoRequest{Subjects: subject})
		if err != nil || len(info.State.Subjects) == 0 {
			return nil, err
		}
		if err := st.pauseStale(ctx, began); err != nil {
			return nil, err
		}
	}
}

// known returns the first message of a subject from a sequence on. The caller knows that
// there is one, so an answer that there is none comes from an old state. It is nil if all
// answers until patience ends are such answers: then the message is lost.
func (st *stream) known(ctx context.Context, subject string, from uint64) (*message, error) {
	for began := time.Now(); ; {
		m, err := st.get(ctx, getRequest{Seq: max(from, 1), Next: subject})
		if m != nil || err != nil || st.replicas <= 1 || time.Since(began) > patience {
			return m, err
		}
		if err := st.pauseStale(ctx, began); err != nil {
			return nil, err
		}
	}
}

// next returns the first message of a subject from a sequence on, or nil if a current state
// has none.
func (st *stream) next(ctx context.Context, subject string, from uint64) (*message, error) {
	newest, err := st.newest(ctx)
	if err != nil {
		return nil, err
	}
	last, err := st.lastOf(ctx, []string{subject}, newest)
	if err != nil || last[subject] == nil || last[subject].at < from {
		return nil, err
	}
	return st.known(ctx, subject, from)
}
