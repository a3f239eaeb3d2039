package transfer

import (
	"context"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// bodies copies blobs of one session into a log. It copies the blobs of new events, and
// missing blobs that an event of the log lists. An event that is redacted in the log
// lists none, so its blobs do not come back.
type bodies struct {
	dst      *eventlog.Log
	session  string
	existing event.Head // of the session in dst
	copied   map[event.Digest]bool
	copy     func(ctx context.Context, d event.Digest) error
	// originals finds copies of erased events, whose blobs are not copied; nil copies them.
	originals *originals
}

func newBodies(dst *eventlog.Log, session string, existing event.Head, o *originals, copy func(ctx context.Context, d event.Digest) error) *bodies {
	return &bodies{dst: dst, session: session, existing: existing, copied: map[event.Digest]bool{}, copy: copy, originals: o}
}

// copyOf copies the blobs of an event.
func (b *bodies) copyOf(ctx context.Context, e *event.Event) error {
	if len(e.Blobs()) > 0 && e.Seq > b.existing.Seq {
		if _, erased, err := b.originals.erasedOriginal(ctx, e); erased || err != nil {
			return err
		}
	}
	for _, d := range e.Blobs() {
		if b.copied[d] {
			continue
		}
		if e.Seq <= b.existing.Seq {
			missing, err := b.missing(ctx, e.Seq, d)
			if err != nil {
				return err
			}
			if !missing {
				continue
			}
		}
		if err := b.copy(ctx, d); err != nil {
			return err
		}
		b.copied[d] = true
	}
	return nil
}

// missing reports whether an event of dst lists a blob that dst does not have.
func (b *bodies) missing(ctx context.Context, seq int64, d event.Digest) (bool, error) {
	if hasBlob(ctx, b.dst, d) {
		return false, nil
	}
	for e, err := range b.dst.Store().Read(ctx, b.session, eventlog.Span{From: seq, To: seq}) {
		return err == nil && slices.Contains(e.Blobs(), d), err
	}
	return false, nil
}

func hasBlob(ctx context.Context, log *eventlog.Log, d event.Digest) bool {
	body, err := log.OpenBlob(ctx, d)
	return err == nil && body.Close() == nil
}
