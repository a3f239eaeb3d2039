package jetstream

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// identitySubject has one message of the control stream: the id of the store. It is the last
// message of the creation of a log.
const identitySubject = "identity"

// StoreID implements eventlog.Identifier.
func (s *Store) StoreID(ctx context.Context) (string, error) {
	id, err := s.identity(ctx)
	return id, wrap("read the id of the store", err)
}

func (s *Store) identity(ctx context.Context) (string, error) {
	find := s.writable
	if s.options.ReadOnly {
		find = s.reading
	}
	y, err := find(ctx)
	if err != nil {
		return "", err
	}
	id, err := y.identityOf(ctx)
	if id == "" && err == nil {
		err = &eventlog.CorruptError{Path: "stream " + y.control.name, Offset: -1, Cause: errNoIdentity}
	}
	return id, err
}

// errNoIdentity: the creation of a log ends with its id, so a log without one has lost it.
var errNoIdentity = errors.New("the id of the store is missing: the servers have lost messages")

// identityOf reads the id of the store; "" if it has none.
func (l *layout) identityOf(ctx context.Context) (string, error) {
	m, err := l.control.last(ctx, l.control.subject(identitySubject))
	if m == nil || err != nil {
		return "", err
	}
	return string(m.body), nil
}

// identify stores an id, unless the store has one.
func (l *layout) identify(ctx context.Context) (string, error) {
	made := &nats.Msg{Subject: l.control.subject(identitySubject), Header: nats.Header{}, Data: []byte(newID())}
	expectLast(made, 0)
	if _, err := l.control.publish(ctx, made); err != nil && !isCode(err, codeWrongSequence) {
		return "", l.control.repeatable(err)
	}
	return l.identityOf(ctx)
}
