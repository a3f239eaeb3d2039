package importtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
)

// Detects checks whether the format detects a file with the name by its head; heads
// maps each head to the expected answer.
func Detects(t TB, format interop.Format, name string, heads map[string]bool) {
	t.Helper()
	for head, want := range heads {
		if got := format.Detect(name, []byte(head)); got != want {
			t.Errorf("detect %.200s: %v", head, got)
		}
	}
}

// Repairs is the law that an import repairs invalid Unicode and notes the repair in
// the metadata. The only message of the text is "Cut: " and half a character.
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

// Again imports a file a second time, and verifies the log. The test fails if the
// import writes an event.
func Again(t TB, log *eventlog.Log, format interop.Format, name, content string) {
	t.Helper()
	if got := Text(t, log, format, name, content); got.Events != 0 {
		t.Fatalf("the second import: %+v", got)
	}
	Verify(t, log)
}

// Grows is the law that an import of all versions of a growing document gives the
// same log as an import of the last version.
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

// Lines checks the laws of files that grow at their end.
type Lines struct {
	Format interop.Format
	// Before is the content of a file that is imported first; empty for none.
	Before string
}

// log makes a log with the Before file.
func (l Lines) log(t TB) *eventlog.Log {
	t.Helper()
	log := NewLog(t)
	if l.Before != "" {
		Text(t, log, l.Format, "before", l.Before)
	}
	return log
}

// Grows is the law that an import of the first lines up to each cut, and then of all
// lines, gives the same log as one import of all lines. No line is rejected. The
// cuts need no order.
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

// GrowsByBytes is the law that three ways to import a text give the same log: the
// text up to one cut and then the whole text; the text up to each cut in turn; and
// the whole text alone. The form of the tests sets the number of cuts.
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
	for i, cut := range cuts {
		if !testsize.Every(i, 5) {
			continue
		}
		Text(t, stepwise, l.Format, "f", text[:cut])
		Same(t, fmt.Sprintf("the first %d bytes, then all", cut), want, put(l.log(t), text[:cut], text))
	}
	Same(t, "step by step", want, put(stepwise, text))
}

// Cuts are the ends and the middles of all lines.
func Cuts(text string) (all []int) {
	at := 0
	for line := range strings.Lines(text) {
		all = append(all, at+len(line)/2, at+len(line))
		at += len(line)
	}
	return all
}

const maxFuzzed = 16 << 10 // larger inputs are slow and find no more failures

// Sound is the law for any file: every record is counted once, a second import
// writes nothing, and the log verifies. A file that contradicts the Before file
// fails with interop.ErrHistory both times. Sound skips long texts.
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

// Fuzz fuzzes the law Sound. Seeds are paths.
func Fuzz(f *testing.F, format interop.Format, name string, seeds ...string) {
	for _, path := range seeds {
		f.Add(ReadFile(f, path))
	}
	f.Fuzz(func(t *testing.T, text string) { Lines{Format: format}.Sound(t, name, text) })
}
