package sink_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/runlog/stats"
)

// onSharedBooks runs a test over two ledgers with one file.
func onSharedBooks(t *testing.T, test func(t *testing.T, a, b *books)) {
	onBooks(t, func(t *testing.T, a *books) {
		b := &books{Garden: a.Garden, path: a.path}
		b.open()
		defer func() { a.Allow(b.ledger.Close()) }()
		test(t, a, b)
	})
}

func TestALedgerReadsWhatOthersWrote(t *testing.T) {
	onSharedBooks(t, func(t *testing.T, a, b *books) {
		a.spend("s", 1)
		a.flush("s")
		b.spend("s", 2)
		b.flush("s")
		a.spend("s", 3)
		a.flush("s")
		garden.Same(t, "file", []string{"s 1: 1", "s 3: 2", "s 5: 3"}, a.costs())
	})
}

// Another process wrote the lines of a session and died before the event.
func TestALedgerRepeatsNoLineOfAnother(t *testing.T) {
	onSharedBooks(t, func(t *testing.T, a, b *books) {
		a.spend("s", 1, 2)
		lines := a.linesOf("s")
		a.Allow(os.WriteFile(a.path, lines, 0o600))
		if f, _ := b.flush("s"); len(f.Entries) != 2 || f.Total != 3_000_000_000 {
			t.Errorf("flush %+v", f)
		}
		garden.Same(t, "file", []string{"s 1: 1", "s 2: 2"}, b.costs())
	})
}

// linesOf are the lines of a session in a ledger of its own.
func (b *books) linesOf(session string) []byte {
	b.T.Helper()
	other := &books{Garden: b.Garden, path: b.path + "-other"}
	other.open()
	other.flush(session)
	b.Allow(other.ledger.Close())
	lines, err := os.ReadFile(other.path)
	b.Allow(err)
	return lines
}

// A process was killed during a write while other ledgers have the file open.
func TestATornLineIsRepairedByTheNextFlush(t *testing.T) {
	onSharedBooks(t, func(t *testing.T, a, b *books) {
		a.spend("s", 1)
		a.flush("s")
		f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND, 0)
		a.Allow(err)
		_, err = f.WriteString(`{"session_id":"s","seq":7,"event`)
		a.Allow(errors.Join(err, f.Close()))
		b.spend("s", 2)
		b.flush("s")
		a.spend("s", 3)
		a.flush("s")
		garden.Same(t, "file", []string{"s 1: 1", "s 3: 2", "s 5: 3"}, a.costs())
	})
}

// A ledger writes to the file that has the name, and knows the content of this file.
func TestALedgerFileThatChanges(t *testing.T) {
	for name, change := range map[string]func(b *books){
		"removed":   func(b *books) { b.Allow(os.Remove(b.path)) },
		"moved":     func(b *books) { b.Allow(os.Rename(b.path, b.path+".1")) },
		"truncated": func(b *books) { b.Allow(os.Truncate(b.path, 0)) },
		"rewritten": func(b *books) {
			b.spend("other", 1, 1, 1)
			b.Allow(os.WriteFile(b.path, b.linesOf("other"), 0o600))
		},
		"replaced": func(b *books) {
			b.spend("other", 1, 1, 1)
			b.Allow(os.WriteFile(b.path+".new", b.linesOf("other"), 0o600))
			b.Allow(os.Rename(b.path+".new", b.path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onSharedBooks(t, func(t *testing.T, a, b *books) {
				a.spend("s", 1)
				a.flush("s")
				change(a)
				want := append(a.costsOrNone(), "s 3: 2", "s 5: 3")
				a.spend("s", 2)
				a.flush("s")
				b.spend("s", 3)
				b.flush("s")
				garden.Same(t, "file", want, a.costs())
			})
		})
	}
}

func (b *books) costsOrNone() []string {
	if _, err := os.Stat(b.path); err != nil {
		return nil
	}
	return b.costs()
}

// Many flushes at once, of the same sessions and of others.
func TestFlushesAtTheSameTime(t *testing.T) {
	onSharedBooks(t, func(t *testing.T, a, b *books) {
		const rounds = 20
		var wg sync.WaitGroup
		spend := func(l *sink.Ledger, session string) {
			for n := range rounds {
				e := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("yes")}})
				e.Cost = event.Cost(n + 1)
				a.Append(session, e)
				if _, _, err := l.Flush(garden.Bg, a.Log, session); err != nil {
					t.Error(err)
				}
			}
		}
		for l, own := range map[*sink.Ledger]string{a.ledger: "of a", b.ledger: "of b"} {
			wg.Go(func() { spend(l, "shared") })
			wg.Go(func() { spend(l, own) })
		}
		wg.Wait()
		sums, seen := map[string]event.Cost{}, map[string]bool{}
		for _, e := range a.entries() {
			if id := e.EventID.String(); seen[id] {
				t.Errorf("event %d of %s has two lines", e.Seq, e.SessionID)
			} else {
				seen[id] = true
			}
			sums[e.SessionID] += e.Cost
		}
		for _, session := range []string{"shared", "of a", "of b"} {
			cost, err := stats.LoadCost(garden.Bg, a.Log, session)
			a.Allow(err)
			garden.Same(t, session, cost.Own.Cost, sums[session])
			var flushed event.Cost
			for _, f := range a.flushes(session) {
				flushed += f.Total
			}
			garden.Same(t, "flushes of "+session, cost.Own.Cost, flushed)
		}
	})
}

func TestAClosedLedger(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		b.Allow(b.ledger.Close())
		if _, flushed, err := b.ledger.Flush(garden.Bg, b.Log, "s"); flushed || !errors.Is(err, os.ErrClosed) {
			t.Errorf("flushed %v: %v", flushed, err)
		}
		b.Allow(b.ledger.Close())
		garden.Same(t, "file", 0, len(b.entries()))
	})
}

// A wait for the lock of the file ends with the context.
func TestAFlushThatWaitsForTheLock(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		other, err := flock.Open(t.Context(), b.path, 0o600)
		b.Allow(err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, flushed, err := b.ledger.Flush(ctx, b.Log, "s"); flushed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flushed %v: %v", flushed, err)
		}
		b.Allow(other.Close())
		b.flush("s")
		garden.Same(t, "file", []string{"s 1: 1"}, b.costs())
	})
}
