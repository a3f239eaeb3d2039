package jsonl

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/witness"
	"github.com/convlog/convlog/upkeep/verify"
)

// fileDamages damage whole files. Each row has the expected outcome of every affected
// session.
var fileDamages = []struct {
	name string
	do   func(p *fixture) error
	want map[string]func(p *fixture) outcome
}{
	{"two sessions change files", func(p *fixture) error {
		main, other := p.files["main.jsonl"], p.files["other.jsonl"]
		return errors.Join(p.write("main.jsonl", other), p.write("other.jsonl", main))
	}, map[string]func(*fixture) outcome{witness.Main: foreignAt(0), witness.Other: foreignAt(0)}},
	{"one session's file is copied over another's", func(p *fixture) error {
		return p.write("main.jsonl", p.files["fork.jsonl"])
	}, map[string]func(*fixture) outcome{witness.Main: foreignAt(0)}},
	{"a fork's file is copied over an unrelated session's", func(p *fixture) error {
		return p.write("other.jsonl", p.files["fork.jsonl"])
	}, map[string]func(*fixture) outcome{witness.Other: foreignAt(0)}},
	{"a session file is missing", func(p *fixture) error {
		return os.Remove(p.path(witness.Main))
	}, map[string]func(*fixture) outcome{witness.Main: always(outcome{kind: missing})}},
	{"an earlier copy of a session's file", func(p *fixture) error {
		return p.write("main.jsonl", p.main[:p.start[15]])
	}, map[string]func(*fixture) outcome{witness.Main: always(outcome{kind: older, forward: 15})}},
}

func foreignAt(at int64) func(*fixture) outcome {
	return always(outcome{kind: corrupt, at: at})
}

func (p *fixture) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(p.dir, name), content, 0o600)
}

func TestDamagedFiles(t *testing.T) {
	p := newFixture(t)
	for _, row := range fileDamages {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			for session, want := range row.want {
				p.restore()
				must(t, row.do(&p))
				w := *p.Witness
				w.Damaged = slices.Collect(maps.Keys(row.want))
				p.Witness = &w
				p.check(p.examine(session), session, want(&p))
			}
		})
	}
}

// TestRollback replaces a session's file with an earlier copy. A process that has seen
// the later events must notice. No other process can.
func TestRollback(t *testing.T) {
	p := newFixture(t)
	p.restore()
	s := p.open()
	l := eventlog.Open(s)
	defer func() { must(t, l.Close()) }()
	seen, err := l.Head(t.Context(), witness.Main)
	must(t, err)
	var watching error
	for e, err := range l.Watch(t.Context(), witness.Main, 0) {
		if watching = err; err != nil {
			break
		}
		if e.Seq == all {
			must(t, p.write("main.jsonl", p.main[:p.start[15]]))
		}
	}
	wantErr(t, watching, eventlog.ErrCorrupt)
	_, err = l.Append(t.Context(), witness.Main, eventlog.At(seen), note("after"))
	wantErr(t, err, eventlog.ErrConflict)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual.Seq != 15 {
		t.Errorf("append at the later head: %v", err)
	}
	report, err := verify.Session(t.Context(), l, witness.Main)
	must(t, err)
	p.wantNoDefects(withoutRedactions(report.Defects), report.Notes)
}

// TestDamagedBlobs damages blobs. Verify reports the events that need them, reads yield
// the other events, and appends succeed.
func TestDamagedBlobs(t *testing.T) {
	p := newFixture(t)
	for name, damage := range map[string]func(path string, body []byte) error{
		"missing":   func(path string, _ []byte) error { return os.Remove(path) },
		"empty":     func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"cut short": func(path string, body []byte) error { return os.Truncate(path, int64(len(body))-1) },
		"longer":    func(path string, body []byte) error { return os.WriteFile(path, append(body, 'x'), 0o600) },
		"altered":   func(path string, body []byte) error { return os.WriteFile(path, bytes.ToUpper(body), 0o600) },
		"a folder":  func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.restore()
			w := *p.Witness
			w.Tolerates = func(err error) bool { return errors.Is(err, eventlog.ErrNotRegular) }
			p.Witness = &w
			for file, body := range p.files {
				if strings.HasPrefix(file, blobDir) {
					must(t, damage(filepath.Join(p.dir, file), bytes.Clone(body)))
				}
			}
			f := p.examine(witness.Main)
			if len(f.Forward.Seqs) != 7 || len(f.Backward.Seqs) != all-8 || f.Forward.Err == nil || f.Backward.Err == nil || f.Append != nil {
				t.Errorf("read %v %v and %v %v, appended with %v", f.Forward.Seqs, f.Forward.Err, f.Backward.Seqs, f.Backward.Err, f.Append)
			}
			for _, seq := range []int64{8, 10} {
				if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool { return d.Rule == "blob" && d.Seq == seq }) {
					t.Errorf("Verify has no damaged blob at seq %d: %v", seq, f.Report.Defects)
				}
			}
		})
	}
}

// TestUnreadableFiles makes a session's file unreadable. That is not damage, and every
// error names the file.
func TestUnreadableFiles(t *testing.T) {
	p := newFixture(t)
	for name, c := range map[string]struct {
		fs     func() FS
		do     func() error
		target error
		listed bool // listed with its error; a directory is not a session
	}{
		"a folder": {func() FS { return newFaults(p.dir) }, func() error {
			return errors.Join(os.Remove(p.path(witness.Main)), os.Mkdir(p.path(witness.Main), 0o700))
		}, eventlog.ErrNotRegular, false},
		"forbidden": {func() FS { return locked{newFaults(p.dir), "main.jsonl"} }, func() error { return nil }, fs.ErrPermission, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.restore()
			must(t, c.do())
			w := *p.Witness
			w.Tolerates = func(err error) bool {
				return errors.Is(err, c.target) && strings.Contains(err.Error(), "main.jsonl") && !errors.Is(err, eventlog.ErrCorrupt)
			}
			p.Witness = &w
			f := p.Examine(t, New(p.dir, Options{FS: c.fs()}), witness.Main)
			for _, err := range []error{f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append} {
				wantErr(t, err, c.target)
			}
			if listed := f.Listed != nil; listed != c.listed || listed && f.Listed.Err == nil {
				t.Errorf("listed as %+v", f.Listed)
			}
		})
	}
}
