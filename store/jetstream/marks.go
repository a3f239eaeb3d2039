package jetstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
)

// Marks are messages in the shard of a session, by which other calls find the session or its
// events without reading it. A mark of a relation says that relation.Of the first
// event may have a name. It is stored before the first event, and may be left by a write that
// failed. A mark of a blob says which events list it. It is stored in the batch of the events,
// so it is true until a redaction or a removal erases it.
const (
	relatedSubject = "related" // related.NAME.SESSION
	markSubject    = "blob"    // blob.DIGEST.SESSION, or blob.BYTE.SESSION
)

// use is an event that lists a blob.
type use struct {
	digest event.Digest
	seq    int64
}

func compareUses(a, b use) int {
	return cmp.Or(cmp.Compare(a.digest, b.digest), cmp.Compare(a.seq, b.seq))
}

// usesOf are the blobs that events list, ordered by digest.
func usesOf(events []event.Event) (uses []use) {
	for i := range events {
		for _, d := range events[i].Blobs() {
			if d.Hex() != "" {
				uses = append(uses, use{d, events[i].Seq})
			}
		}
	}
	slices.SortFunc(uses, compareUses)
	return uses
}

// related is the subject of the marks of a relation. A name may be empty or long, so the
// subject has its hash. token is the encoded session, or "*" for any session.
func (st *stream) related(name, token string) string {
	sum := sha256.Sum256([]byte(name))
	return st.subject(relatedSubject, base64.RawURLEncoding.EncodeToString(sum[:]), token)
}

const (
	// mostMarked is the number of blobs of a write that have subjects of their own. A write
	// with more blobs has one subject for all digests with the same first byte.
	mostMarked = 500
	// mostMarks bounds the marks of a write. The server takes 1,000 messages in a batch.
	mostMarks = 990
)

// tokens are the tokens of the subjects that may have the marks of a blob.
func tokens(d event.Digest) []string { return []string{d.Hex(), d.Hex()[:2]} }

// marks are the messages that mark the uses of blobs by a session.
func (st *stream) marks(session string, uses []use) (all []*nats.Msg, err error) {
	slices.SortFunc(uses, compareUses)
	uses = slices.Compact(uses)
	token := 0
	if blobsIn(uses) > mostMarked {
		token = 1
	}
	var last *nats.Msg
	for _, u := range uses {
		subject := st.subject(markSubject, tokens(u.digest)[token], encodeName(session))
		line := fmt.Appendf(nil, "%s %d\n", u.digest.Hex(), u.seq)
		if last == nil || last.Subject != subject || len(last.Data)+len(line) > st.store.limit(st.client) {
			last = &nats.Msg{Subject: subject, Header: nats.Header{}}
			all = append(all, last)
		}
		last.Data = append(last.Data, line...)
	}
	if len(all) > mostMarks {
		return nil, fmt.Errorf("%w: the events list too many blobs for messages of %d bytes: raise max_payload of the server", event.ErrInvalidSize, st.client.nc.MaxPayload())
	}
	return all, nil
}

// blobsIn is the number of blobs in ordered uses.
func blobsIn(uses []use) (n int) {
	for i := range uses {
		if i == 0 || uses[i].digest != uses[i-1].digest {
			n++
		}
	}
	return n
}

var errMark = errors.New("a mark of a blob is malformed")

// parseMark decodes a mark of blobs.
func (st *stream) parseMark(m *message) (uses []use, err error) {
	for line := range bytes.Lines(m.body) {
		digest, number, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		u := use{digest: event.Digest("sha256:" + digest)}
		if u.seq, err = strconv.ParseInt(number, 10, 64); err != nil || u.digest.Hex() == "" {
			session, _ := st.decodeLast(m.subject)
			return nil, st.damage(session, m.at, 0, errMark)
		}
		uses = append(uses, u)
	}
	return uses, nil
}

// eraseMarks overwrites the marks of a session before a sequence.
func (st *stream) eraseMarks(ctx context.Context, session string, before uint64) error {
	for _, kind := range []string{relatedSubject, markSubject} {
		subjects, err := st.subjects(ctx, st.subject(kind, "*", encodeName(session)))
		if err == nil {
			err = parallel(subjects, func(subject string) error { return st.eraseSubject(ctx, subject, before) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
