package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// losing is a store that loses each lock as soon as its holder has it.
type losing struct{ *memory.Store }

func (s losing) Lock(ctx context.Context, exclusive bool) (context.Context, func(), error) {
	locked, unlock, err := s.Store.Lock(ctx, exclusive)
	if err != nil {
		return nil, nil, err
	}
	lost, cancel := context.WithCancelCause(locked)
	cancel(fmt.Errorf("%w: the connection broke", eventlog.ErrLockLost))
	return lost, unlock, nil
}

// damaged returns a log with a damaged session "s".
func damaged(t *testing.T) *eventlog.Log {
	m := memory.New()
	l := eventlog.Open(m)
	_, err := l.Append(t.Context(), "s", eventlog.New(), event.UserMessage("one"), event.UserMessage("two"))
	if err == nil {
		err = m.Damage("s", func(lines []string) []string { return lines[1:] })
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Work that ends because its lock was lost says so. It does not look like work that its
// caller canceled.
func TestLockLost(t *testing.T) {
	m := memory.New()
	sound := eventlog.Open(m.Handle())
	if _, err := sound.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	unfinished := memory.New()
	if err := unfinished.SetErasing(t.Context(), []event.Digest{event.DigestOf([]byte("body"))}); err != nil {
		t.Fatal(err)
	}
	l := eventlog.Open(losing{m}, eventlog.Options{SpillOver: 10})
	for name, work := range map[string]func() error{
		"append": func() error {
			_, err := l.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(strings.Repeat("long ", 100)))
			return err
		},
		"put blob": func() error {
			_, err := l.PutBlob(t.Context(), strings.NewReader("body"))
			return err
		},
		"hold":   func() error { return l.Hold(t.Context(), func(ctx context.Context) error { return ctx.Err() }) },
		"remove": func() error { return erase.Remove(t.Context(), l, "s") },
		"redact": func() error {
			_, err := erase.Redact(t.Context(), l, "s", []int64{1}, erase.RedactOptions{Reason: "test"})
			return err
		},
		"collect": func() error {
			_, err := erase.Collect(t.Context(), l)
			return err
		},
		"adopt": func() error {
			_, err := transfer.Adopt(t.Context(), l, "s", sound.Store().Read(t.Context(), "s", eventlog.Span{}))
			return err
		},
		"convert": func() error {
			for _, err := range transfer.Convert(t.Context(), eventlog.Open(memory.New()), l) {
				return err
			}
			return nil
		},
		"repair": func() error {
			_, err := repair.Session(t.Context(), l, "s")
			return err
		},
		"repair into another log": func() error {
			_, err := repair.Session(t.Context(), damaged(t), "s", repair.Options{Into: l})
			return err
		},
		"repair in place": func() error {
			_, err := repair.Session(t.Context(), l, "s", repair.Options{InPlace: true})
			return err
		},
		"verify": func() error {
			for _, err := range verify.Store(t.Context(), eventlog.Open(losing{unfinished})) {
				return err
			}
			return nil
		},
	} {
		if err := work(); !errors.Is(err, eventlog.ErrLockLost) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want ErrLockLost", name, err)
		}
	}
	if head, err := l.Head(t.Context(), "s"); err != nil || head.Seq != 1 {
		t.Errorf("the session has head %v, %v", head, err)
	}
}
