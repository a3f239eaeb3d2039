package term

import (
	"strings"
	"testing"
	"time"
)

// The line appears after a second, says the newest text, fits the terminal, and is removed at
// the end.
func TestProgress(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := NewProgress(&out, func() time.Time { return now }, 33, "reading")
	drawn := func(want string) {
		t.Helper()
		out.Reset()
		if p.Draw(); out.String() != want {
			t.Errorf("drew %q, want %q", out.String(), want)
		}
	}
	p.Begin()
	drawn("")
	now = now.Add(2500 * time.Millisecond)
	drawn("\r\x1b[Kreading: 2s")
	whole := func(whole bool) string {
		if whole {
			return "all that there is, and more of it"
		}
		return ""
	}
	if !p.Meter(whole) || p.Meter(whole) {
		t.Error("the first text of Meter counts")
	}
	drawn("\r\x1b[Kreading: 2s")
	p.ReadsAll()
	drawn("\r\x1b[Kreading: all that there is, and ")
	p.Say(func() string { return "1 of 7" })
	drawn("\r\x1b[Kreading: 1 of 7")
	out.Reset()
	if p.End(); out.String() != "\r\x1b[K" {
		t.Errorf("the end writes %q", out.String())
	}
	drawn("")
	if p.Begin() {
		t.Error("a second Run begins the line again")
	}
}

// A command without a terminal has no progress, and all methods work.
func TestNoProgress(t *testing.T) {
	var p *Progress
	p.ReadsAll()
	p.Say(nil)
	p.End()
	ran := false
	if err := p.Run(func() error { ran = true; return nil }); err != nil || !ran || p.Meter(nil) {
		t.Errorf("ran %t, %v", ran, err)
	}
}
