package main

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/interop"
)

// The bar appears after a second of work, is drawn at most ten times a second, and is
// removed at the end.
func TestImportBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	b := &importBar{progress: &progress{w: &out, now: clock, next: now.Add(time.Second)}, began: now, files: 1200, all: 4 << 20}
	b.bytes(1 << 20)
	b.file(interop.Row{Result: interop.Result{Events: 7}})
	if out.Len() > 0 {
		t.Fatalf("said %q at once", out.String())
	}
	now = now.Add(2 * time.Second)
	b.bytes(1 << 20)
	b.bytes(1)
	want := "\r\x1b[Kimporting ████████████░░░░░░░░░░░░  50%  1 of 1,200 files  7 events  1.0 MiB/s"
	if out.String() != want {
		t.Errorf("said %q\nwant %q", out.String(), want)
	}
	now = now.Add(time.Second)
	b.bytes(1 << 30)
	if !strings.HasSuffix(out.String(), "████████████████████████ 100%  1 of 1,200 files  7 events  342.0 MiB/s") {
		t.Errorf("said %q at last", out.String())
	}
	b.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Error("the line was left")
	}
}

func TestImportBarOfNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &importBar{progress: &progress{}, began: now}
	b.file(interop.Row{}) // nobody looks
	if got := b.line(now); !strings.Contains(got, " 100%  1 of 0 files  0 events  0 B/s") {
		t.Errorf("says %q", got)
	}
}
