//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
)

// The stream of the sessions of a log with one shard, and its subjects.
const (
	sessionStream   = "convlog_0"
	sessionSubjects = "convlog.0.>"
	frameSubjects   = "convlog.0.session.*.frames"
)

// consume passes messages of the log's sessions to each, until the consumer has none left:
// all, or only the last one of each subject.
func (j *jetstreamBench) consume(ctx context.Context, subjects string, which nats.SubOpt, each func(*nats.Msg)) error {
	js, err := j.bare.JetStream()
	if err != nil {
		return err
	}
	sub, err := js.SubscribeSync(subjects, nats.BindStream(sessionStream), nats.OrderedConsumer(), which)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		each(m)
		about, err := m.Metadata()
		if err != nil || about.NumPending == 0 {
			return err
		}
	}
}

// listedAppends is the number of appends in a listed session. The events of one append are
// in one message, so the first and the last event of a session are in two messages.
const listedAppends = 8

// bareSession is the first and the last message of a session.
type bareSession struct{ first, last *nats.Msg }

// bareList lists the sessions of the log in the order of their subjects, with their first
// and their last messages. No consumer delivers only the first messages.
func (j *jetstreamBench) bareList(ctx context.Context, want int) error {
	all, err := j.lasts(ctx)
	if err == nil {
		err = j.getFirsts(ctx, all)
	}
	return errors.Join(err, expectCount(len(all), want))
}

// bareLasts is bareList without the first messages.
func (j *jetstreamBench) bareLasts(ctx context.Context, want int) error {
	all, err := j.lasts(ctx)
	return errors.Join(err, expectCount(len(all), want))
}

// lasts reads the last messages of the sessions, ordered by subject.
func (j *jetstreamBench) lasts(ctx context.Context) (all []bareSession, err error) {
	err = j.consume(ctx, frameSubjects, nats.DeliverLastPerSubject(), func(m *nats.Msg) {
		all = append(all, bareSession{last: m})
	})
	slices.SortFunc(all, func(a, b bareSession) int { return cmp.Compare(a.last.Subject, b.last.Subject) })
	return all, err
}

// getFirsts sends the requests for all first messages before it waits for an answer. The
// server answers the requests of a connection in their order.
func (j *jetstreamBench) getFirsts(ctx context.Context, all []bareSession) error {
	inbox := j.bare.NewInbox()
	sub, err := j.bare.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for i := range all {
		request := fmt.Appendf(nil, `{"seq":1,"next_by_subj":%q}`, all[i].last.Subject)
		if err := j.bare.PublishRequest("$JS.API.DIRECT.GET."+sessionStream, inbox, request); err != nil {
			return err
		}
	}
	for i := range all {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if got := m.Header.Get("Nats-Subject"); got != all[i].last.Subject {
			return fmt.Errorf("the first message of %s: got the subject %q", all[i].last.Subject, got)
		}
		all[i].first = m
	}
	return nil
}
