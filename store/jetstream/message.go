package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// message is a stored message.
type message struct {
	subject string
	at      uint64 // its sequence in the stream
	header  nats.Header
	body    []byte
	written time.Time
}

// getRequest asks for messages: one by Seq, the last one of a subject, the next one of a
// subject from Seq on, or the last ones of several subjects. Batch asks for several.
type getRequest struct {
	Seq      uint64   `json:"seq,omitempty"`
	Last     string   `json:"last_by_subj,omitempty"`
	Next     string   `json:"next_by_subj,omitempty"`
	Multi    []string `json:"multi_last,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// get returns one message, or nil if the answer is that there is none. It asks the leader:
// another replica may lack the newest messages.
func (st *stream) get(ctx context.Context, r getRequest) (*message, error) {
	if st.replicas == 1 {
		return st.getDirect(ctx, r)
	}
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := st.client.request(ctx, "$JS.API.STREAM.MSG.GET."+st.name, r, &answer)
	if isCode(err, codeNoMessage, codeNoSequence) {
		return nil, nil
	}
	if err != nil {
		return nil, st.store.failure(err)
	}
	found := answer.Message
	st.reach(found.Seq)
	m := &message{subject: found.Subject, at: found.Seq, body: found.Data, written: found.Time}
	if len(found.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(found.Header); err != nil {
			return nil, &eventlog.CorruptError{Path: st.place(m.at), Offset: -1, Cause: err}
		}
	}
	return m, nil
}

// getDirect returns one message from any replica, or nil if the replica has none.
func (st *stream) getDirect(ctx context.Context, r getRequest) (*message, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	subject := "$JS.API.DIRECT.GET." + st.name
	m, err := st.client.exchange(ctx, subject, false, func(reply string) error { return st.client.nc.PublishRequest(subject, reply, data) })
	if err != nil {
		return nil, st.store.failure(err)
	}
	return st.stored(m)
}

// at returns the message of a sequence that is before the newest one, or nil if it is
// missing. Messages never change, so any replica that has it will do. A later message in
// the answer of the leader proves that it is missing.
func (st *stream) at(ctx context.Context, seq uint64) (*message, error) {
	m, err := st.getDirect(ctx, getRequest{Seq: seq})
	if m == nil && err == nil && st.replicas > 1 {
		m, err = st.known(ctx, st.subject(">"), seq)
		if m != nil && m.at != seq {
			return nil, nil
		}
	}
	return m, err
}

// last returns the last message of a subject as of now, or nil.
func (st *stream) last(ctx context.Context, subject string) (*message, error) {
	return st.confirmed(ctx, subject, func() (*message, error) { return st.get(ctx, getRequest{Last: subject}) })
}

// first returns the first message of a subject as of now, or nil.
func (st *stream) first(ctx context.Context, subject string) (*message, error) {
	return st.confirmed(ctx, subject, func() (*message, error) { return st.get(ctx, getRequest{Seq: 1, Next: subject}) })
}

// stored decodes the answer to a direct get. It returns nil if there is no message.
func (st *stream) stored(m *nats.Msg) (*message, error) {
	if status := m.Header.Get("Status"); status != "" && len(m.Header["Nats-Sequence"]) == 0 {
		if status == "404" {
			return nil, nil
		}
		return nil, fmt.Errorf("stream %s: direct get: %s %s", st.name, status, m.Header.Get("Description"))
	}
	seq := lastValue(m.Header, "Nats-Sequence")
	at, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("stream %s: direct get: sequence %q", st.name, seq)
	}
	st.reach(at)
	return &message{subject: lastValue(m.Header, "Nats-Subject"), at: at, header: m.Header, body: m.Data}, nil
}

// lastValue is the last value of a header. The server adds its own values at the end, so
// a message cannot forge them.
func lastValue(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// time is the time at which the message was stored.
func (m *message) time() time.Time {
	if m.written.IsZero() {
		m.written, _ = time.Parse(time.RFC3339Nano, lastValue(m.header, "Nats-Time-Stamp"))
	}
	return m.written
}

// place names a message in errors.
func (st *stream) place(at uint64) string { return fmt.Sprintf("stream %s message %d", st.name, at) }

// newest is the newest sequence of the stream.
func (st *stream) newest(ctx context.Context) (uint64, error) {
	info, err := st.currentInfo(ctx, nil)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// maxMulti bounds the subjects of one request for last messages; the server takes 1,024.
const maxMulti = 500

// olderAnswers is how many answers of replicas that lack messages lead to a question to the leader.
const olderAnswers = 20

// lastOf returns the last messages of subjects, by subject, at least as new as the
// sequence since. It asks again while the replica that answers is older, and then asks the leader:
// the server of the connection answers first, and may have lost its files.
func (st *stream) lastOf(ctx context.Context, subjects []string, since uint64) (map[string]*message, error) {
	found := make(map[string]*message, len(subjects))
	for len(subjects) > 0 {
		n := min(len(subjects), maxMulti)
		if err := st.lastPage(ctx, subjects[:n], since, found); err != nil {
			return nil, err
		}
		subjects = subjects[n:]
	}
	return found, nil
}

func (st *stream) lastPage(ctx context.Context, subjects []string, since uint64, found map[string]*message) error {
	r := getRequest{Multi: subjects, MaxBytes: 1 << 30}
	for range olderAnswers {
		e, err := st.batch(ctx, r, len(subjects), func(m *message) error {
			found[m.subject] = m
			return nil
		})
		if err != nil || !e.more && (e.upTo >= since || st.replicas == 1) {
			return err
		}
		// A 404 has no sequence: the subjects may have no messages, or the replica is older.
		if !e.more && e.upTo == 0 {
			if missing, err := st.confirmMissing(ctx, subjects); missing || err != nil {
				return err
			}
		}
		if err := st.pauseBroken(ctx, errSilent); ctx.Err() != nil {
			return err
		}
	}
	for _, subject := range subjects {
		m, err := st.last(ctx, subject)
		if err != nil {
			return err
		}
		if m != nil {
			found[subject] = m
		}
	}
	return nil
}

// confirmMissing asks the leader whether none of the subjects has a message.
func (st *stream) confirmMissing(ctx context.Context, subjects []string) (bool, error) {
	for _, subject := range subjects {
		if m, err := st.last(ctx, subject); m != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}
