//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	jetlog "github.com/convlog/convlog/store/jetstream"
)

// The rows of a log on servers of NATS use processes of their own, which sync rarely.
var jetstreamTrials = []trial{
	{
		rows: []row{{
			name:     "jetstream/append",
			measured: "Append of one event, one server",
			against:  "publish of the same line to a stream, same driver",
			unit:     perSecond, bar: atLeast(0.25),
		}},
		measure: jetstreamAppends(1, 1),
	},
	{
		rows: []row{{
			name:     "jetstream/append-16",
			measured: "Append by 16 goroutines to 16 sessions, one server",
			against:  "publish of the same lines by 16 goroutines",
			unit:     perSecond, bar: atLeast(0.25),
		}},
		measure: jetstreamAppends(1, workers),
	},
	{
		rows: []row{{
			name:     "jetstream/append-replicated",
			measured: "Append of one event, three servers",
			against:  "publish of the same line to a stream with three replicas",
			unit:     perSecond, bar: atLeast(0.5),
		}},
		measure: jetstreamAppends(3, 1),
	},
	{
		rows: []row{{
			name:     "jetstream/append-replicated-16",
			measured: "Append by 16 goroutines to 16 sessions, three servers",
			against:  "publish of the same lines by 16 goroutines",
			unit:     perSecond, bar: atLeast(0.5),
		}},
		measure: jetstreamAppends(3, workers),
	},
	{
		rows: []row{{
			name:     "jetstream/append-shared",
			measured: "Append by 16 goroutines to one session",
			against:  "Append by one",
			unit:     perSecond, bar: atLeast(2),
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) { return j.shared(ctx) }),
	},
	{
		rows: []row{{
			name:     "jetstream/processes",
			measured: "Append by 16 processes to one session",
			against:  "Append by one process",
			unit:     perSecond, bar: atLeast(0.4),
		}, {
			name:     "jetstream/processes-slowest",
			measured: "the slowest Append of the 16 processes",
			unit:     nanoseconds, bar: atMost(2e9),
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) { return j.processes(ctx) }),
	},
	{
		rows: []row{{
			name:     "jetstream/read",
			measured: "Read of 100,000 events",
			against:  "read of the same messages by an ordered consumer",
			unit:     nanoseconds, bar: atMost(2),
		}, {
			name:     "jetstream/last",
			measured: "Read of the last 64 of 100,000 events",
			against:  "Read of all",
			unit:     nanoseconds, bar: atMost(1.0 / 200),
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) {
			return j.reads(ctx, func(ctx context.Context, _ int) error {
				return j.consume(ctx, sessionSubjects, nats.DeliverAll(), func(*nats.Msg) {})
			})
		}),
	},
	{
		rows: []row{{
			name:     "jetstream/list",
			measured: "Sessions of a store of 10,000, first and last event each, per session",
			against:  "read of their last messages by an ordered consumer, and of their first ones by direct gets, all at once",
			unit:     nanoseconds, bar: atMost(2),
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) {
			return j.lists(ctx, listedAppends, j.bareList)
		}),
	},
	{
		rows: []row{{
			name:     "jetstream/list-short",
			measured: "the same, of sessions with one message",
			against:  "read of their only messages by an ordered consumer",
			unit:     nanoseconds,
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) {
			return j.lists(ctx, 1, j.bareLasts)
		}),
	},
	{
		rows: []row{{
			name:     "jetstream/watch",
			measured: "time from the start of an Append until the watcher of another log has the event",
			against:  "publish of the same line to a stream, same driver",
			unit:     nanoseconds, bar: atMost(5),
		}},
		measure: onJetStream(func(ctx context.Context, j *jetstreamBench) ([]figure, error) { return j.watches(ctx, j.publish) }),
	},
	{
		rows: []row{{
			name:     "jetstream/idle",
			measured: "messages per second that 1,000 watched sessions send to the server, from 25 s after the last append",
			unit:     count, bar: atMost(2),
		}},
		measure: jetstreamIdle,
	},
}

// jetstreamBench is a log on servers of NATS, and a bare stream beside it.
type jetstreamBench struct {
	*serverBench
	servers  *natstest.Cluster
	bare     *nats.Conn
	js       jetstream.JetStream
	subjects atomic.Int64
}

// jetstream starts servers, an empty log and a bare stream, with a replica on each server.
func (b *bench) jetstream(ctx context.Context, servers int) (j *jetstreamBench, err error) {
	j = new(jetstreamBench)
	if j.servers, err = natstest.New(natstest.Options{Nodes: servers}); err != nil {
		return nil, err
	}
	b.closes = append(b.closes, j.servers.Close)
	if j.serverBench, err = b.onServer(ctx, fmt.Sprintf("%s?replicas=%d", j.servers.URL(), servers)); err != nil {
		return nil, err
	}
	if j.bare, err = j.servers.Connect(); err != nil {
		return nil, err
	}
	if j.js, err = jetstream.New(j.bare); err != nil {
		return nil, err
	}
	_, err = j.js.CreateStream(ctx, jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare.>"}, Replicas: servers})
	return j, err
}

// close ends the connections and the servers.
func (j *jetstreamBench) close() {
	j.bare.Close()
	_ = j.log.Close()
}

// publish stores the lines of events at a subject of their own, a message each.
func (j *jetstreamBench) publish(ctx context.Context, events []event.Event) error {
	subject := fmt.Sprintf("bare.%d", j.subjects.Add(1))
	for i := range events {
		if _, err := j.js.Publish(ctx, subject, events[i].Line()); err != nil {
			return err
		}
	}
	return nil
}

// onJetStream is a trial on one server.
func onJetStream(measure func(ctx context.Context, j *jetstreamBench) ([]figure, error)) func(context.Context, *bench) ([]figure, error) {
	return func(ctx context.Context, b *bench) ([]figure, error) {
		j, err := b.jetstream(ctx, 1)
		if err != nil {
			return nil, err
		}
		defer j.close()
		return measure(ctx, j)
	}
}

func jetstreamAppends(servers, writers int) func(context.Context, *bench) ([]figure, error) {
	return func(ctx context.Context, b *bench) ([]figure, error) {
		j, err := b.jetstream(ctx, servers)
		if err != nil {
			return nil, err
		}
		defer j.close()
		ours := b.timeAppends
		if writers > 1 {
			ours = b.timeSessions
		}
		return j.appends(ctx, writers, ours, j.publish)
	}
}

// jetstreamIdle counts the messages of the store's connection.
func jetstreamIdle(ctx context.Context, b *bench) ([]figure, error) {
	j, err := b.jetstream(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer j.close()
	var conn *nats.Conn
	counted, err := jetlog.New("", jetlog.Options{Connect: func(options ...nats.Option) (_ *nats.Conn, err error) {
		conn, err = j.servers.Connect(options...)
		return conn, err
	}})
	if err != nil {
		return nil, err
	}
	log := eventlog.Open(counted)
	watched := serverBench{bench: b, log: log}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := watched.watchIdle(ctx); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	before := conn.Stats().OutMsgs
	time.Sleep(idleTime)
	sent := conn.Stats().OutMsgs - before
	return []figure{single(float64(sent) / idleTime.Seconds())}, log.Close()
}
