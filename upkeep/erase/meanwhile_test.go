package erase_test

import (
	"context"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// meanwhile is a store where something happens once, before a blob is opened
// or between two events that are read.
type meanwhile struct {
	eventlog.Store
	beforeBlob, beforeEvent func()
	at                      int64 // the event of beforeEvent
	mu                      sync.Mutex
}

var _ eventlog.Blobs = (*meanwhile)(nil)

func (m *meanwhile) Unwrap() eventlog.Store { return m.Store }

func (m *meanwhile) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	return m.blobs().PutBlob(ctx, r)
}

func (m *meanwhile) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	m.once(&m.beforeBlob)
	return m.blobs().OpenBlob(ctx, d)
}

func (m *meanwhile) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	return m.blobs().RemoveBlobs(ctx, digests)
}

func (m *meanwhile) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return m.blobs().ListBlobs(ctx)
}

func (m *meanwhile) blobs() eventlog.Blobs {
	b, _ := eventlog.As[eventlog.Blobs](m.Store)
	return b
}

func (m *meanwhile) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range m.Store.Read(ctx, session, span) {
			if e.Seq == m.at {
				m.once(&m.beforeEvent)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// once does f the first time: Verify opens blobs in several goroutines.
func (m *meanwhile) once(f *func()) {
	m.mu.Lock()
	do := *f
	*f = nil
	m.mu.Unlock()
	if do != nil {
		do()
	}
}

// A redaction removes the blob of an event between two reads. The reader gets the
// redacted event, and Verify finds no damage.
func TestRedactedMeanwhile(t *testing.T) {
	ctx := context.Background()
	for name, open := range map[string]func() eventlog.Store{
		"jsonl":  func() eventlog.Store { return jsonl.New(t.TempDir()) },
		"sqlite": func() eventlog.Store { return sqlite.New(t.TempDir() + "/s.db") },
	} {
		t.Run(name, func(t *testing.T) {
			s := &meanwhile{Store: open()}
			l := eventlog.Open(s, eventlog.Options{SpillOver: 100})
			defer l.Close()
			for range 300 { // more than a page
				e := event.Event{Type: "test:note", Data: []byte(`"` + event.NewID().String() + strings.Repeat("secret ", 50) + `"`)}
				if _, err := l.Append(ctx, "s", eventlog.Any(), e); err != nil {
					t.Fatal(err)
				}
			}
			redact := func(seq int64) func() {
				return func() {
					if _, err := erase.Redact(ctx, l, "s", []int64{seq}, erase.RedactOptions{Reason: "a secret"}); err != nil {
						t.Error(err)
					}
				}
			}
			verify := func() {
				t.Helper()
				if r, err := verify.Session(ctx, l, "s"); err != nil || len(r.Defects) > 0 {
					t.Errorf("verify: %v, %v", r.Defects, err)
				}
			}
			s.beforeBlob = redact(2)
			if e, err := l.Event(ctx, "s", 2); err != nil || !e.Redacted() || e.Data != nil {
				t.Errorf("event 2: redacted %v, %v", e.Redacted(), err)
			}
			s.beforeBlob = redact(1)
			verify()
			s.at, s.beforeEvent = 1, redact(299)
			verify()
		})
	}
}
