package importtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Detects checks by what files of that name are known: beginnings of them are of
// the format, or not.
func Detects(t TB, format interop.Format, name string, heads map[string]bool) {
	t.Helper()
	for head, want := range heads {
		if got := format.Detect(name, []byte(head)); got != want {
			t.Errorf("detect %.200s: %v", head, got)
		}
	}
}

// Repairs is the law that text that is no valid Unicode is repaired, and that this
// is noted. The only message of the text says "Cut: " and half a character.
func Repairs(t TB, format interop.Format, session, text string) {
	t.Helper()
	log := NewLog(t)
	if got := Text(t, log, format, "f", text); len(got.Rejected) > 0 {
		t.Fatalf("import: %+v", got)
	}
	Again(t, log, format, "f", text)
	all := Events(t, log, session)
	m, _, err := event.Decode[event.Message](&all[1])
	if err != nil || len(all) != 2 || m.Text() != "Cut: \ufffd" {
		t.Errorf("%d events, the message says %q, %v", len(all), m.Text(), err)
	}
	if repaired, _ := all[1].MetadataValue("repaired"); string(repaired) != `["invalid_unicode"]` {
		t.Errorf("repaired is %s", repaired)
	}
}

// Again imports a file once more, which must write nothing, and verifies the
// log.
func Again(t TB, log *eventlog.Log, format interop.Format, name, content string) {
	t.Helper()
	if got := Text(t, log, format, name, content); got.Events != 0 {
		t.Fatalf("the second import: %+v", got)
	}
	Verify(t, log)
}

// Grows is the law that versions of a document, each longer than the one before,
// give the same log as the last alone.
func Grows(t TB, format interop.Format, name string, versions ...string) {
	t.Helper()
	grown, whole := NewLog(t), NewLog(t)
	for _, v := range versions {
		Text(t, grown, format, name, v)
		Again(t, grown, format, name, v)
	}
	Text(t, whole, format, name, versions[len(versions)-1])
	Same(t, "whole and grown", Dump(t, whole), Dump(t, grown))
}

// Lines is a file that grows at its end.
type Lines struct {
	Format interop.Format
	// Before is the content of a file that is imported before it; none if empty.
	Before string
}

// log makes the log that the file is imported into.
func (l Lines) log(t TB) *eventlog.Log {
	t.Helper()
	log := NewLog(t)
	if l.Before != "" {
		Text(t, log, l.Format, "before", l.Before)
	}
	return log
}

// Grows is the law that the first lines up to each cut, and then all, give the
// same log as all lines alone. Cuts need not be in order. No line is refused.
func (l Lines) Grows(t TB, lines []string, cuts []int) {
	t.Helper()
	grown, whole := l.log(t), l.log(t)
	put := func(log *eventlog.Log, lines []string) {
		if got := Text(t, log, l.Format, "f", strings.Join(lines, "")); len(got.Rejected) > 0 || got.Records != len(lines) {
			t.Fatalf("import of %d lines: %+v", len(lines), got)
		}
	}
	for _, cut := range cuts {
		put(grown, lines[:cut])
	}
	put(grown, lines)
	put(whole, lines)
	Same(t, "whole and grown", Contents(t, whole), Contents(t, grown))
	Again(t, grown, l.Format, "f", strings.Join(lines, ""))
}

// GrowsByBytes is the law that the text up to any of the cuts and then all of it,
// and the text up to each of them one after the other, give the same log as all
// of it alone.
func (l Lines) GrowsByBytes(t TB, text string, cuts []int) {
	t.Helper()
	put := func(log *eventlog.Log, versions ...string) []Content {
		for _, v := range versions {
			Text(t, log, l.Format, "f", v)
		}
		return Contents(t, log)
	}
	want := put(l.log(t), text)
	stepwise := l.log(t)
	for _, cut := range cuts {
		Text(t, stepwise, l.Format, "f", text[:cut])
		Same(t, fmt.Sprintf("the first %d bytes, then all", cut), want, put(l.log(t), text[:cut], text))
	}
	Same(t, "step by step", want, put(stepwise, text))
}

// Cuts are the ends of all lines, and a place inside each.
func Cuts(text string) (all []int) {
	at := 0
	for line := range strings.Lines(text) {
		all = append(all, at+len(line)/2, at+len(line))
		at += len(line)
	}
	return all
}

const maxFuzzed = 16 << 10 // larger inputs find nothing more, and take their time

// Sound is the law that, whatever a file holds, every record is counted once, a
// second import writes nothing, and what was written is sound. It may contradict
// what was imported before, and is then refused both times. The law says nothing
// of long texts.
func (l Lines) Sound(t TB, name, text string) {
	t.Helper()
	if len(text) > maxFuzzed {
		return
	}
	log := l.log(t)
	l.Format.Detect(name, []byte(text))
	first, err := l.Format.Import(t.Context(), log, Source(name, text))
	if err != nil && (l.Before == "" || !errors.Is(err, interop.ErrHistory)) {
		t.Fatalf("import: %+v, %v", first, err)
	}
	if err == nil {
		checkSum(t, &first)
	}
	second, again := l.Format.Import(t.Context(), log, Source(name, text))
	if second.Events != 0 || (err == nil) != (again == nil) {
		t.Fatalf("the second import: %+v, %v", second, again)
	}
	Verify(t, log)
}

// Fuzz checks that imports of any text are sound. Seeds are paths.
func Fuzz(f *testing.F, format interop.Format, name string, seeds ...string) {
	for _, path := range seeds {
		f.Add(ReadFile(f, path))
	}
	f.Fuzz(func(t *testing.T, text string) { Lines{Format: format}.Sound(t, name, text) })
}
