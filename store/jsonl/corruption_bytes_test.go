package jsonl

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/witness"
)

// thorough makes the damage tests flip every bit and truncate at every byte.
var thorough = flag.Bool("thorough", false, "damage every bit and byte")

// examineEvery is how many damaged files there are per file that is examined in every
// way.
const examineEvery = 16

// seed chooses the damage when not all of it is tested.
const seed = 20261120

// TestCutAnywhere truncates the file at every byte of the last line and at some earlier
// bytes. The complete appends before must be readable; the rest is a torn tail.
func TestCutAnywhere(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 1))
	cuts := 0
	for cut := range int64(len(p.main)) {
		if !*thorough && cut < p.start[all-1] && random.IntN(40) > 0 && p.completeLines(cut) == p.completeLines(cut-1) {
			continue
		}
		if !*thorough && !testsize.Every(int(cut), 5) {
			continue
		}
		cuts++
		p.restore()
		p.damage(p.main[:cut])
		look := p.ExamineBriefly
		if cuts%examineEvery == 0 {
			look = p.Examine
		}
		p.check(look(p, p.open(), witness.Main), witness.Main, p.cut(cut))
		if t.Failed() {
			t.Fatalf("cut at byte %d of %d", cut, len(p.main))
		}
	}
	t.Logf("%d cuts of a session of %d bytes: 0 unnoticed", cuts, len(p.main))
}

// cut returns the outcome of a file truncated to at bytes.
func (p *fixture) cut(at int64) outcome {
	n := p.completeLines(at)
	switch {
	case n == 0:
		return outcome{kind: missing}
	case p.start[n] == at:
		return outcome{kind: older, forward: n}
	default:
		return outcome{kind: torn, forward: n, at: p.start[n]}
	}
}

// TestFlips flips bits in every file of the store, including blobs. Verify must locate
// each flip, and readers must stop before it.
func TestFlips(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		content := p.files[name]
		session, isSession := strings.CutSuffix(name, extension)
		session = strings.ReplaceAll(session, "%3a", ":") // the notes of the store
		flips := 0
		for at := range content {
			if !*thorough && !testsize.Every(at, 7) {
				continue
			}
			for _, bit := range bitsOf(random) {
				flips++
				damaged := bytes.Clone(content)
				damaged[at] ^= 1 << bit
				must(t, os.WriteFile(filepath.Join(p.dir, name), damaged, 0o600))
				if isSession {
					p.flipped(session, content, at, flips%examineEvery == 0)
				} else {
					p.blobFlipped(name)
				}
				if t.Failed() {
					t.Fatalf("bit %d of byte %d of %s, %q", bit, at, name, content[at])
				}
			}
		}
		must(t, os.WriteFile(filepath.Join(p.dir, name), content, 0o600))
		t.Logf("%d flips in %d bytes of %s: 0 unnoticed", flips, len(content), name)
	}
}

// bitsOf returns the bits of a byte to flip: all with -thorough, else at most one.
func bitsOf(random *rand.Rand) []int {
	switch {
	case *thorough:
		return []int{0, 1, 2, 3, 4, 5, 6, 7}
	case random.IntN(8) == 0:
		return []int{random.IntN(8)}
	default:
		return nil
	}
}

// flipped checks that a flip in a line of a session is reported at its place.
func (p *fixture) flipped(session string, content []byte, at int, everySide bool) {
	p.Helper()
	s := p.open()
	f := p.Inspect(p, s, session)
	must(p, s.Close())
	line := bytes.LastIndexByte(content[:at], '\n') + 1 // start of the line
	i := bytes.Count(content[:at], []byte("\n"))
	written := p.Written(session)
	begins := i // first line of its append
	for begins > 0 && written[begins-1].More() > 0 {
		begins--
	}
	if !pointsAt(f, int64(line), offsetOf(content, begins), written[i].Seq, content[at] == '\n') {
		p.Errorf("Verify does not point at byte %d, seq %d: %v %v %v", line, written[i].Seq, f.Report.Defects, f.Report.Notes, f.VerifyErr)
	}
	if n := len(f.Forward.Seqs); n > i {
		p.Errorf("reading shows %v, but the line of seq %d is damaged", f.Forward.Seqs, written[i].Seq)
	}
	if everySide {
		p.examine(session)
		p.restore()
	}
}

// offsetOf returns the offset of line i.
func offsetOf(content []byte, i int) int64 {
	return int64(len(bytes.Join(bytes.SplitAfter(content, []byte("\n"))[:i], nil)))
}

// pointsAt reports whether Verify names the line of seq, or a torn tail at the line's
// append that also names the line. For a line without a newline the torn tail is
// enough.
func pointsAt(f *witness.Findings, line, tail, seq int64, unended bool) bool {
	return slices.ContainsFunc(slices.Concat(f.Report.Defects, f.Report.Notes), func(d eventlog.Defect) bool {
		if d.Rule == "torn" {
			return d.Offset == tail && (unended || line == tail || strings.Contains(d.Detail, fmt.Sprintf("at byte %d:", line)))
		}
		return d.Offset == line && (d.Seq == seq || d.Seq == 0)
	})
}

// blobFlipped checks that Verify reports the events that need the blob, and that all
// other events are readable.
func (p *fixture) blobFlipped(name string) {
	p.Helper()
	f := p.inspect()
	digest := event.Digest("sha256:" + filepath.Base(name))
	for _, e := range p.Written(witness.Main) {
		if !slices.Contains(e.Blobs(), digest) {
			continue
		}
		if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool { return d.Rule == "blob" && d.Seq == e.Seq }) {
			p.Errorf("Verify has no damaged blob at seq %d: %v", e.Seq, f.Report.Defects)
		}
		if _, _, spilled := e.Spilled(); spilled {
			wantErr(p, f.Forward.Err, eventlog.ErrCorrupt)
			wantErr(p, f.Backward.Err, eventlog.ErrCorrupt)
			if got := len(f.Forward.Seqs) + len(f.Backward.Seqs); got != all-1 {
				p.Errorf("read %v and backward %v: all but seq %d are to be read", f.Forward.Seqs, f.Backward.Seqs, e.Seq)
			}
		}
	}
}

// TestVerifyFindsAll damages several lines at once. Verify must locate each of them and
// report no other line.
func TestVerifyFindsAll(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 3))
	for range testsize.Fewer(40) {
		damaged, bad := bytes.Clone(p.main), map[int64]bool{}
		for range 2 + random.IntN(6) {
			i := random.IntN(all - 2) // the last append may be a torn tail
			if bad[p.start[i]] {
				continue
			}
			bad[p.start[i]] = true
			damaged[p.start[i]+random.Int64N(int64(len(p.lines[i])-1))] ^= 1 << random.IntN(8)
		}
		p.restore()
		p.damage(damaged)
		found := map[int64]bool{}
		for _, d := range p.inspect().Report.Defects {
			if d.Rule == "crc" || d.Rule == "line" || d.Rule == "version" {
				found[d.Offset] = true
			}
		}
		if !maps.Equal(found, bad) {
			t.Errorf("damaged are the lines at %v, Verify says %v", bad, found)
		}
	}
}
