package jetstream

import (
	"context"

	"github.com/nats-io/nats.go"
)

// identitySubject has one message of the control stream: the id of the store.
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
	st, subject := y.control, y.control.subject(identitySubject)
	for {
		m, err := st.last(ctx, subject)
		if m != nil && err == nil {
			return string(m.body), nil
		}
		if err != nil || s.options.ReadOnly {
			return "", err
		}
		id := newID()
		made := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(id)}
		expectLast(made, 0)
		if _, err = st.publish(ctx, made); err == nil {
			return id, nil
		}
		if !isCode(err, codeWrongSequence) {
			return "", s.failure(err)
		}
	}
}
