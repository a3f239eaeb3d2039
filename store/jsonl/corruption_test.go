package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/witness"
)

// fixture is an intact store that a test damages.
type fixture struct {
	testing.TB
	*witness.Witness
	dir   string
	files map[string][]byte // original content, by path in dir
	main  []byte
	lines [][]byte // lines of main, newlines included
	start []int64  // offset of each line, and the file size
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	p := &fixture{TB: t, dir: t.TempDir(), files: map[string][]byte{}}
	s := New(p.dir, Options{FS: newFaults(p.dir)})
	witness.WriteSample(t, s)
	p.Witness = witness.New(t, s)
	must(t, s.Close())
	must(t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p.files[path[len(p.dir)+1:]], err = os.ReadFile(path)
		return err
	}))
	p.main = p.files[witness.Main+extension]
	p.lines = bytes.SplitAfter(p.main, []byte("\n"))
	p.lines = p.lines[:len(p.lines)-1]
	for at := int64(0); len(p.start) < len(p.lines); at = p.start[len(p.start)-1] + int64(len(p.lines[len(p.start)-1])) {
		p.start = append(p.start, at)
	}
	p.start = append(p.start, int64(len(p.main)))
	return p
}

// restore writes the original files again.
func (p *fixture) restore() {
	p.Helper()
	entries, err := os.ReadDir(p.dir)
	must(p, err)
	for _, entry := range entries {
		must(p, os.RemoveAll(filepath.Join(p.dir, entry.Name())))
	}
	for name, content := range p.files {
		path := filepath.Join(p.dir, name)
		must(p, os.MkdirAll(filepath.Dir(path), 0o700))
		must(p, os.WriteFile(path, content, 0o600))
	}
}

// damage replaces the main session's file.
func (p *fixture) damage(file []byte) {
	p.Helper()
	write(p, p.dir, witness.Main, file)
}

func (p *fixture) path(session string) string {
	return filepath.Join(p.dir, fileOf(session))
}

func (p *fixture) open() *Store { return New(p.dir, Options{FS: newFaults(p.dir)}) }

// inspect returns the findings of a new store.
func (p *fixture) inspect() *witness.Findings {
	p.Helper()
	s := p.open()
	defer func() { must(p, s.Close()) }()
	return p.Inspect(p, s, witness.Main)
}

func (p *fixture) examine(session string) *witness.Findings {
	p.Helper()
	return p.Examine(p, p.open(), session)
}

// completeLines returns how many lines belong to complete appends that end at or before
// an offset.
func (p *fixture) completeLines(at int64) (n int) {
	for i, e := range p.Written(witness.Main) {
		if p.start[i+1] <= at && e.More() == 0 {
			n = i + 1
		}
	}
	return n
}

// outcome is the expected result for a damaged session.
type outcome struct {
	forward  int // events that a forward read yields
	backward int // events that a backward read yields
	// at and seq are the place of the damage.
	at   int64
	seq  int64
	kind kind
}

type kind int

const (
	// same: all events are readable and nothing is reported.
	same kind = iota
	// older: the file equals an earlier state of the session.
	older
	// torn: a torn tail begins at the place. No read yields it, an append truncates it,
	// and Verify has a note.
	torn
	// lostTail: like torn, but Verify reports a defect. The tail ends like a finished
	// write, or appends follow a hole.
	lostTail
	// corrupt: damage at the place; an append fails.
	corrupt
	// newer: the line at the place has a newer version.
	newer
	// missing: the session does not exist.
	missing
	// garbage: like missing, and a listing has it as damaged.
	garbage
	// forged: all lines are readable, and Verify reports a defect at the place.
	forged
)

// check compares findings with the expected outcome.
func (p *fixture) check(f *witness.Findings, session string, want outcome) {
	p.Helper()
	first := p.Written(session)[0].Seq
	last := p.Written(session)[len(p.Written(session))-1].Seq
	forward := between(first, first+int64(want.forward)-1)
	backward := backwards(between(last-int64(want.backward)+1, last))
	if want.kind == torn || want.kind == lostTail || want.kind == older {
		backward = backwards(forward)
	}
	if !slices.Equal(f.Forward.Seqs, forward) || !slices.Equal(f.Backward.Seqs, backward) {
		p.Errorf("read %v and backward %v, want %v and %v", f.Forward.Seqs, f.Backward.Seqs, forward, backward)
	}
	switch want.kind {
	case same:
		p.wantNoErrors(f)
		p.wantNoDefects(f.Report.Defects, f.Report.Notes)
	case older:
		p.wantNoErrors(f)
		p.wantNoDefects(withoutRedactions(f.Report.Defects), f.Report.Notes)
	case torn, lostTail:
		p.wantNoErrors(f)
		p.checkTruncated(f, session, want)
	case corrupt:
		p.checkLocation(f, session, want)
	case newer:
		p.checkNewer(f, session, want)
	case missing, garbage:
		p.checkMissing(f, want.kind)
	case forged:
		p.wantNoErrors(f)
		p.checkDefect(f, want)
	}
}

func (p *fixture) wantNoErrors(f *witness.Findings) {
	p.Helper()
	if err := errors.Join(f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append); err != nil {
		p.Errorf("unexpected error: %v", err)
	}
}

// wantNoDefects fails if there are any defects.
func (p *fixture) wantNoDefects(defects ...[]eventlog.Defect) {
	p.Helper()
	for _, d := range slices.Concat(defects...) {
		p.Errorf("Verify reports %v", d)
	}
}

// withoutRedactions drops defects about a redacted event that no redaction names: the
// redaction may be in the lost part.
func withoutRedactions(defects []eventlog.Defect) []eventlog.Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d eventlog.Defect) bool { return d.Rule == "redaction" })
}

// checkTruncated checks that an append has truncated the torn tail and named it.
func (p *fixture) checkTruncated(f *witness.Findings, session string, want outcome) {
	p.Helper()
	if f.Append != nil {
		p.Errorf("append: %v", f.Append)
	}
	if f.Listed != nil && f.Listed.Tail != nil && want.kind != lostTail { // a listing looks for no holes
		p.Errorf("the listing has a damaged end: %v", f.Listed.Tail)
	}
	found := f.Report.Defects
	if want.kind == torn {
		found = f.Report.Notes
	}
	if !slices.ContainsFunc(found, func(d eventlog.Defect) bool {
		return d.Rule == "torn" && d.Offset == want.at && d.Path == p.path(session)
	}) {
		p.Errorf("Verify has no torn tail at %d in %v; all: %v %v", want.at, found, f.Report.Defects, f.Report.Notes)
	}
	if want.kind == torn {
		p.wantNoDefects(withoutRedactions(f.Report.Defects))
	}
	if _, err := os.Stat(strings.TrimSuffix(p.path(session), extension) + fmt.Sprintf(".torn-%d", want.at)); err != nil {
		p.Errorf("the torn tail is not saved: %v", err)
	}
}

// checkLocation checks that every operation that meets the damage names its place.
func (p *fixture) checkLocation(f *witness.Findings, session string, want outcome) {
	p.Helper()
	for what, err := range map[string]error{"forward": f.Forward.Err, "backward": f.Backward.Err, "append": f.Append} {
		var damage *eventlog.CorruptError
		if !errors.As(err, &damage) || damage.Path != p.path(session) || damage.Offset != want.at || damage.Seq != want.seq {
			p.Errorf("%s: %v, want damage at byte %d seq %d", what, err, want.at, want.seq)
		}
	}
	if f.Listed == nil || f.Listed.Err != nil && !errors.Is(f.Listed.Err, eventlog.ErrCorrupt) {
		p.Errorf("the listing has %+v", f.Listed)
	}
	p.checkDefect(f, want)
}

// checkMissing checks that the session does not exist and an append creates it.
func (p *fixture) checkMissing(f *witness.Findings, want kind) {
	p.Helper()
	wantErr(p, f.Forward.Err, eventlog.ErrNotFound)
	wantErr(p, f.Backward.Err, eventlog.ErrNotFound)
	if listed := f.Listed != nil && errors.Is(f.Listed.Err, eventlog.ErrCorrupt); !f.Detected() || listed != (want == garbage) || !listed && f.Listed != nil || f.Append != nil || !slices.Equal(f.After.Seqs, []int64{1}) {
		p.Errorf("Verify: %v; listed: %v; append: %v, which leaves %v", f.VerifyErr, f.Listed, f.Append, f.After.Seqs)
	}
}

func (p *fixture) checkDefect(f *witness.Findings, want outcome) {
	p.Helper()
	if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool {
		return (d.Offset == want.at || want.at < 0) && (d.Seq == want.seq || d.Seq == 0 || want.seq == 0)
	}) {
		p.Errorf("Verify has no defect at byte %d seq %d: %v", want.at, want.seq, f.Report.Defects)
	}
}

func (p *fixture) checkNewer(f *witness.Findings, session string, want outcome) {
	p.Helper()
	place := fmt.Sprintf("%s at byte %d", p.path(session), want.at)
	for what, err := range map[string]error{"forward": f.Forward.Err, "append": f.Append} {
		if !errors.Is(err, event.ErrVersion) || errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), place) {
			p.Errorf("%s: %v, want a newer version in %s", what, err, place)
		}
	}
	p.checkDefect(f, outcome{at: -1})
}
