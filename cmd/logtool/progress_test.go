package main

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// The line says what the command has read from its first store.
func TestMeteredStore(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := term.NewProgress(&out, func() time.Time { return now }, 0, "reading")
	drawn := func(want string) {
		t.Helper()
		out.Reset()
		if p.Draw(); out.String() != "\r\x1b[Kreading: "+want {
			t.Errorf("drew %q, want %q", out.String(), want)
		}
	}
	log := eventlog.Open(metered(memory.New(), p))
	if _, err := log.Append(t.Context(), "a", eventlog.New(), event.UserMessage(strings.Repeat("x", 2000))); err != nil {
		t.Fatal(err)
	}
	err := p.Run(func() error {
		now = now.Add(2500 * time.Millisecond)
		drawn("2s")
		for range log.Sessions(t.Context()) {
		}
		for _, err := range log.Read(t.Context(), "a", eventlog.All()) {
			if err != nil {
				return err
			}
		}
		drawn("1 event read, 2.3 KiB")
		p.ReadsAll()
		drawn("1 event read, 2.3 KiB of 2.3 KiB")
		(&app{progress: p}).steps(7)()
		drawn("1 of 7 sessions")
		p.Say(nil)
		drawn("1 event read, 2.3 KiB of 2.3 KiB")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if other := memory.New(); metered(other, p) != eventlog.Store(other) {
		t.Error("a second store is metered too")
	}
	if store := memory.New(); metered(store, nil) != eventlog.Store(store) {
		t.Error("a store without a progress is metered")
	}
}

func TestImportBar(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &importBar{now: func() time.Time { return now }, began: now, files: 1200, all: 4 << 20}
	b.bytes(1 << 20)
	b.file(interop.Row{Result: interop.Result{Events: 7}})
	now = now.Add(2 * time.Second)
	b.bytes(1<<20 + 1)
	if got, want := b.line(), "████████████░░░░░░░░░░░░  50%  1 of 1,200 files  7 events  1.0 MiB/s"; got != want {
		t.Errorf("says %q\nwant %q", got, want)
	}
	now = now.Add(time.Second)
	b.bytes(1 << 30)
	if got := b.line(); !strings.HasSuffix(got, "████████████████████████ 100%  1 of 1,200 files  7 events  342.0 MiB/s") {
		t.Errorf("says %q at last", got)
	}
}

func TestImportBarOfNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &importBar{now: func() time.Time { return now }, began: now}
	b.file(interop.Row{}) // nobody looks
	if got := b.line(); !strings.Contains(got, " 100%  1 of 0 files  0 events  0 B/s") {
		t.Errorf("says %q", got)
	}
}
