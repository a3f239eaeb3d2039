package main

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// The line appears after a second, says what the command has read, fits the terminal, and
// is removed at the end.
func TestProgress(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := &progress{w: &out, now: func() time.Time { return now }, width: 33, verb: "reading"}
	drawn := func(want string) {
		t.Helper()
		out.Reset()
		if p.draw(); out.String() != want {
			t.Errorf("drew %q, want %q", out.String(), want)
		}
	}
	log := eventlog.Open(p.metered(memory.New()))
	if _, err := log.Append(t.Context(), "a", eventlog.New(), event.UserMessage(strings.Repeat("x", 2000))); err != nil {
		t.Fatal(err)
	}
	p.begin()
	drawn("")
	now = now.Add(2500 * time.Millisecond)
	drawn("\r\x1b[Kreading: 2s")
	for range log.Sessions(t.Context()) {
	}
	for _, err := range log.Read(t.Context(), "a", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	drawn("\r\x1b[Kreading: 1 event read, 2.3 KiB")
	p.readsAll()
	drawn("\r\x1b[Kreading: 1 event read, 2.3 KiB o")
	step := p.steps(7)
	step()
	drawn("\r\x1b[Kreading: 1 of 7 sessions")
	out.Reset()
	if p.end(); out.String() != "\r\x1b[K" {
		t.Errorf("the end writes %q", out.String())
	}
	drawn("")
	if p.begin() {
		t.Error("a second store begins the line again")
	}
}

// A command without a terminal has no progress, and all methods work.
func TestNoProgress(t *testing.T) {
	var p *progress
	p.readsAll()
	p.steps(1)()
	p.end()
	store := memory.New()
	ran := false
	if err := p.run(func() error { ran = true; return nil }); err != nil || !ran || p.metered(store) != eventlog.Store(store) {
		t.Errorf("ran %t, %v", ran, err)
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
