package jetstream

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// catchUp reads the tip of a session after an answer that lacks a known frame. An old
// leader that is cut off gives such answers for a while. Otherwise the servers have lost
// acknowledged messages, for example at a power loss, and no append may take their place.
func (st *stream) catchUp(ctx context.Context, session string, known *frame) (tip, error) {
	lost := &eventlog.RolledBackError{Session: session, Head: known.head()}
	for began := time.Now(); ; {
		// The majority of the servers stores this message, after all others that it has.
		m := &nats.Msg{Subject: st.subject(guardSubject), Header: nats.Header{"Nats-TTL": []string{guardTTL}}}
		newest, err := st.publish(ctx, m)
		if err != nil {
			return tip{}, st.erasingFailure(ctx, err)
		}
		if newest <= known.at {
			return tip{}, lost
		}
		found, err := st.get(ctx, getRequest{Seq: known.at})
		if err != nil {
			return tip{}, err
		}
		if found != nil && !st.isFrame(session, found, known) {
			return tip{}, lost
		}
		t, err := st.readTip(ctx, session)
		if err != nil || t.at >= known.at {
			return t, err
		}
		if time.Since(began) > patience {
			return tip{}, lost
		}
		if err := st.pauseBroken(ctx, errSilent); ctx.Err() != nil {
			return tip{}, err
		}
	}
}

// isFrame reports whether a message is a known frame of the session.
func (st *stream) isFrame(session string, m *message, known *frame) bool {
	f, _, err := parseFrame(m)
	return err == nil && m.subject == st.of(session, framesSubject) && f.id == known.id
}
