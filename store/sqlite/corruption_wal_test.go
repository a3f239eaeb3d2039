package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/witness"
)

// The write-ahead log has a header and then frames. A frame has a header and a page.
const walHeader, walFrame = 32, 24 + pageSize

// TestWriteAheadLog damages the log of a killed process. SQLite ignores the log from
// the first damaged frame on, so the store has the state after an earlier append. A
// crash during the next append leaves the same state, so this is no defect. No append
// is visible in part.
func TestWriteAheadLog(t *testing.T) {
	p := newFixture(t)
	whole, wal := crashedFiles(t)
	if n := (len(wal) - walHeader) % walFrame; n != 0 || len(wal) < 20*walFrame {
		t.Fatalf("the log has %d bytes", len(wal))
	}
	p.putBoth(whole, wal)
	if seen := p.checkPrefix(); seen != p.count() {
		t.Errorf("with the undamaged log %d events are readable, want %d", seen, p.count())
	}
	random := rand.New(rand.NewPCG(seed, 4))
	fewest, most, tried := p.count(), 0, 0
	for at := 0; at < len(wal); at += walFrame * testsize.Pick(10, 5, 1) {
		flip := at + random.IntN(min(walFrame, len(wal)-at))
		for _, damaged := range [][]byte{
			wal[:at], wal[:flip],
			withFlip(wal, flip, byte(1)<<random.IntN(8)), withFlip(wal, at, 0xff),
			slices.Concat(wal[:at], make([]byte, len(wal)-at)),
		} {
			p.putBoth(whole, damaged)
			seen := p.checkPrefix()
			if t.Failed() {
				t.Fatalf("frame %d, byte %d of %d", (at-walHeader)/walFrame+1, flip, len(wal))
			}
			fewest, most, tried = min(fewest, seen), max(most, seen), tried+1
		}
	}
	if fewest >= most {
		t.Errorf("every damage leaves %d events: the damage is not spread over the log", fewest)
	}
	t.Logf("%d logs damaged in %d frames: each an earlier state", tried, len(wal)/walFrame)
}

func withFlip(b []byte, at int, bits byte) []byte {
	b = bytes.Clone(b)
	b[at] ^= bits
	return b
}

// crashedFiles returns the files of a sample whose process was killed.
func crashedFiles(t testing.TB) (file, wal []byte) {
	t.Helper()
	path := tempPath(t)
	s := New(path, Options{NoSync: true})
	witness.WriteSample(t, s)
	file, err := os.ReadFile(path)
	must(t, err)
	wal, err = os.ReadFile(path + "-wal")
	must(t, errors.Join(err, s.Close()))
	return file, wal
}

func (p *fixture) putBoth(file, wal []byte) {
	p.Helper()
	p.put(file)
	must(p, os.WriteFile(p.path+"-wal", wal, 0o600))
}

func (p *fixture) count() (n int) {
	for session := range p.sessions() {
		n += len(p.Written(session))
	}
	return n
}

// checkPrefix checks that the store has the state after some append. It returns the
// number of events.
func (p *fixture) checkPrefix() (n int) {
	p.Helper()
	s := p.open()
	defer func() { must(p, s.Close()) }()
	for session := range p.sessions() {
		f := p.Inspect(p, s, session)
		written := p.Written(session)
		seen := len(f.Forward.Seqs)
		if n += seen; seen > 0 && written[seen-1].More() > 0 || seen > 0 && f.Forward.Err != nil {
			p.Errorf("session %q: %v, %v", session, f.Forward.Seqs, f.Forward.Err)
		}
		for _, d := range f.Report.Defects {
			if d.Rule != "redaction" {
				p.Errorf("Verify: %v", d)
			}
		}
		p.appendTo(s, session)
	}
	return n
}

// TestForeignWriteAheadLog puts an older log, and the log of another database, beside
// the file. All readable events must be written events.
func TestForeignWriteAheadLog(t *testing.T) {
	p := newFixture(t)
	_, wal := crashedFiles(t)
	for name, strange := range map[string][]byte{
		"earlier":      wal[:walHeader+walFrame*(len(wal)/walFrame/2)],
		"of this time": wal,
		"of another":   otherLog(t),
		"garbage":      bytes.Repeat([]byte("garbage "), 2000),
		"empty":        {},
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.putBoth(p.file, strange)
			s := p.open()
			defer func() { _ = s.Close() }()
			for session := range p.sessions() {
				f := p.Inspect(t, s, session)
				if name == "garbage" || name == "empty" {
					if !p.Complete(f) || f.Detected() {
						t.Errorf("session %q: %+v", session, f)
					}
				}
				p.appendTo(s, session)
			}
		})
	}
}

func otherLog(t testing.TB) []byte {
	t.Helper()
	path := tempPath(t)
	s := open(t, path, Options{NoSync: true})
	add(t, s, "a", event.Head{}, 50, "another")
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	return wal
}
