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
	"github.com/convlog/convlog/eventlog/logtest"
)

// patient is a store that was written soundly, to be damaged.
type patient struct {
	testing.TB
	*logtest.Witness
	dir   string
	files map[string][]byte // as they were written, by path below dir
	main  []byte
	lines [][]byte // of main, newlines included
	start []int64  // offset of each line, and the size behind them
}

func newPatient(t testing.TB) *patient {
	t.Helper()
	p := &patient{TB: t, dir: t.TempDir(), files: map[string][]byte{}}
	s := New(p.dir, Options{FS: newFaults(p.dir)})
	logtest.WriteSample(t, s)
	p.Witness = logtest.NewWitness(t, s)
	must(t, s.Close())
	must(t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p.files[path[len(p.dir)+1:]], err = os.ReadFile(path)
		return err
	}))
	p.main = p.files[logtest.SampleMain+extension]
	p.lines = bytes.SplitAfter(p.main, []byte("\n"))
	p.lines = p.lines[:len(p.lines)-1]
	for at := int64(0); len(p.start) < len(p.lines); at = p.start[len(p.start)-1] + int64(len(p.lines[len(p.start)-1])) {
		p.start = append(p.start, at)
	}
	p.start = append(p.start, int64(len(p.main)))
	return p
}

// heal puts all files back as they were written.
func (p *patient) heal() {
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
func (p *patient) damage(file []byte) {
	p.Helper()
	write(p, p.dir, logtest.SampleMain, file)
}

func (p *patient) path(session string) string {
	return filepath.Join(p.dir, escape(session)+extension)
}

func (p *patient) open() *Store { return New(p.dir, Options{FS: newFaults(p.dir)}) }

// look is what a new handle finds.
func (p *patient) look() *logtest.Findings {
	p.Helper()
	s := p.open()
	defer func() { must(p, s.Close()) }()
	return p.Inspect(p, s, logtest.SampleMain)
}

func (p *patient) examine(session string) *logtest.Findings {
	p.Helper()
	return p.Examine(p, p.open(), session)
}

// complete is how many of the first lines are whole appends, of those that end
// at or before an offset.
func (p *patient) complete(at int64) (n int) {
	for i, e := range p.Written(logtest.SampleMain) {
		if p.start[i+1] <= at && e.More() == 0 {
			n = i + 1
		}
	}
	return n
}

// outcome is what must be found of a damaged session.
type outcome struct {
	shown  int // events that are read before the damage
	behind int // events that are read backward, before the damage
	// at and seq locate the damage; kind says what it is.
	at   int64
	seq  int64
	kind kind
}

type kind int

const (
	// same: the bytes mean what they meant, all is read and nothing is wrong.
	same kind = iota
	// older: the bytes are an earlier state of the session.
	older
	// torn: the tail that begins at the place is shown to nobody, and an append
	// cuts it off. Verify has a note.
	torn
	// lostTail is torn, but since the tail ends like a finished write, or has
	// appends behind a hole, Verify reports damage.
	lostTail
	// corrupt: damage at the place; an append is refused.
	corrupt
	// newer: a version that cannot be read stands at the place.
	newer
	// gone: the session does not exist.
	gone
	// forged: all lines are read, and Verify reports damage at the place.
	forged
)

// check compares what was found with what must be.
func (p *patient) check(f *logtest.Findings, session string, want outcome) {
	p.Helper()
	first := p.Written(session)[0].Seq
	last := p.Written(session)[len(p.Written(session))-1].Seq
	forward := between(first, first+int64(want.shown)-1)
	backward := backwards(between(last-int64(want.behind)+1, last))
	if want.kind == torn || want.kind == lostTail || want.kind == older {
		backward = backwards(forward)
	}
	if !slices.Equal(f.Forward.Seqs, forward) || !slices.Equal(f.Backward.Seqs, backward) {
		p.Errorf("read %v and backward %v, want %v and %v", f.Forward.Seqs, f.Backward.Seqs, forward, backward)
	}
	switch want.kind {
	case same:
		p.noErrors(f)
		p.reports(f.Report.Defects, f.Report.Notes)
	case older:
		p.noErrors(f)
		p.reports(notRedactions(f.Report.Defects), f.Report.Notes)
	case torn, lostTail:
		p.noErrors(f)
		p.cutOff(f, session, want)
	case corrupt:
		p.located(f, session, want)
	case newer:
		p.newer(f, session, want)
	case gone:
		p.gone(f)
	case forged:
		p.noErrors(f)
		p.defect(f, want)
	}
}

func (p *patient) noErrors(f *logtest.Findings) {
	p.Helper()
	if err := errors.Join(f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append); err != nil {
		p.Errorf("an error: %v", err)
	}
}

// reports fails if Verify reports any of these.
func (p *patient) reports(defects ...[]eventlog.Defect) {
	p.Helper()
	for _, d := range slices.Concat(defects...) {
		p.Errorf("Verify reports %v", d)
	}
}

// notRedactions leaves out that nothing names a redacted event: what named it
// may be in the part that is gone.
func notRedactions(defects []eventlog.Defect) []eventlog.Defect {
	return slices.DeleteFunc(slices.Clone(defects), func(d eventlog.Defect) bool { return d.Rule == "redaction" })
}

// cutOff checks a torn tail that an append has removed and named.
func (p *patient) cutOff(f *logtest.Findings, session string, want outcome) {
	p.Helper()
	if f.Append != nil {
		p.Errorf("append: %v", f.Append)
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
		p.reports(notRedactions(f.Report.Defects))
	}
	if _, err := os.Stat(strings.TrimSuffix(p.path(session), extension) + fmt.Sprintf(".torn-%d", want.at)); err != nil {
		p.Errorf("the torn tail is not kept: %v", err)
	}
}

// located checks that every way to the damage names its place.
func (p *patient) located(f *logtest.Findings, session string, want outcome) {
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
	p.defect(f, want)
}

// gone checks that there is no session: an append makes it anew.
func (p *patient) gone(f *logtest.Findings) {
	p.Helper()
	wantErr(p, f.Forward.Err, eventlog.ErrNotFound)
	wantErr(p, f.Backward.Err, eventlog.ErrNotFound)
	if !f.Detected() || f.Listed != nil || f.Append != nil || !slices.Equal(f.After.Seqs, []int64{1}) {
		p.Errorf("Verify: %v; listed: %v; append: %v, which leaves %v", f.VerifyErr, f.Listed, f.Append, f.After.Seqs)
	}
}

func (p *patient) defect(f *logtest.Findings, want outcome) {
	p.Helper()
	if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool {
		return (d.Offset == want.at || want.at < 0) && (d.Seq == want.seq || d.Seq == 0 || want.seq == 0)
	}) {
		p.Errorf("Verify has no defect at byte %d seq %d: %v", want.at, want.seq, f.Report.Defects)
	}
}

func (p *patient) newer(f *logtest.Findings, session string, want outcome) {
	p.Helper()
	place := fmt.Sprintf("%s at byte %d", p.path(session), want.at)
	for what, err := range map[string]error{"forward": f.Forward.Err, "append": f.Append} {
		if !errors.Is(err, event.ErrVersion) || errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), place) {
			p.Errorf("%s: %v, want a newer version in %s", what, err, place)
		}
	}
	p.defect(f, outcome{at: -1})
}
