package jsonl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// sweep returns the names that Sweep yields.
func sweep(t testing.TB, s *Store, remove bool) []string {
	t.Helper()
	names := []string{}
	for l, err := range s.Sweep(t.Context(), remove) {
		must(t, err)
		name, err := filepath.Rel(s.dir, l.Path)
		must(t, err)
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Sweep removes temporary files and empty session files, and keeps all other files.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "a", event.Head{}, sealed(t, "a", 1))
	_, _, err := s.PutBlob(t.Context(), strings.NewReader("blob"))
	must(t, err)
	long := folder.FileName(strings.Repeat("Long", 50))
	leftovers := []string{
		"a.damaged-2.tmp", "a.rewrite.tmp", "a.torn-12.tmp", "blobs/tmp-ABC", "empty.jsonl", "gone.rewrite.tmp", "gone.torn-0.tmp",
		long + ".jsonl", "x.torn-1.rewrite.tmp",
	}
	stays := []string{
		"a.damaged-1", "a.jsonl", "a.jsonl.bak", "a.torn-12", "a.torn-12.0123456789abcdef", "a.torn-x.tmp", "empty", "empty.torn-0",
		"notes.tmp", "rewrite.tmp.txt", "tmp-ABC",
	}
	for _, name := range append(slices.Clone(leftovers), stays...) {
		if name != "a.jsonl" {
			body := []byte("body")
			if strings.HasSuffix(name, extension) {
				body = nil
			}
			must(t, os.WriteFile(filepath.Join(dir, name), body, 0o600))
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder.rewrite.tmp"), 0o700))
	slices.Sort(leftovers)
	before := fileNames(t, dir)
	if got := sweep(t, s, false); !slices.Equal(got, leftovers) || fileNames(t, dir) != before {
		t.Errorf("found %q, want %q", got, leftovers)
	}
	reader := open(t, dir, Options{ReadOnly: true})
	if got := sweep(t, reader, false); !slices.Equal(got, leftovers) {
		t.Errorf("found %q, want %q", got, leftovers)
	}
	for _, err := range reader.Sweep(t.Context(), true) {
		wantErr(t, err, eventlog.ErrReadOnly)
	}
	if got := sweep(t, s, true); !slices.Equal(got, leftovers) {
		t.Errorf("removed %q, want %q", got, leftovers)
	}
	if got := sweep(t, s, true); len(got) > 0 {
		t.Errorf("removed %q a second time", got)
	}
	for _, name := range stays {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantSeqs(t, s, "a", eventlog.Span{}, 1)
}

// Sweep skips the temporary files and the empty file of a session whose lock is held.
func TestSweepKeepsFilesInUse(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a.torn-0.tmp"), nil, 0o600))
	file, err := Dir(dir).Open("a.jsonl", os.O_RDWR)
	must(t, err)
	ok, err := file.TryLock(true)
	if must(t, err); !ok {
		t.Fatal("the lock is taken")
	}
	s := open(t, dir)
	if got := sweep(t, s, true); len(got) > 0 {
		t.Errorf("removed %q", got)
	}
	must(t, file.Close())
	if got := sweep(t, s, true); len(got) != 2 {
		t.Errorf("removed %q", got)
	}
}

// Sessions are created and torn tails truncated while Sweep runs repeatedly. No append
// fails or is lost.
func TestSweepWhileOthersCreate(t *testing.T) {
	dir := t.TempDir()
	sweeper, s := open(t, dir), open(t, dir, Options{NoSync: true})
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		for i := range 300 {
			session := string(rune('a'+i%26)) + strings.Repeat("x", i/26)
			log := eventlog.Open(s)
			if _, failed = log.Append(t.Context(), session, eventlog.New(), note("first")); failed != nil {
				return
			}
			if failed = leaveTornTail(dir, session); failed != nil {
				return
			}
			if _, failed = log.Append(t.Context(), session, eventlog.Any(), note("second")); failed != nil {
				return
			}
		}
	}()
	for running := true; running; {
		sweep(t, sweeper, true)
		select {
		case <-done:
			running = false
		default:
		}
	}
	must(t, failed)
	n := 0
	for info, err := range s.Sessions(t.Context()) {
		must(t, errors.Join(err, info.Err))
		cut, ok := info.Last.Cut()
		if n++; info.Last.Seq != 2 || !ok {
			t.Errorf("%q ends at %d with cut %v", info.ID, info.Last.Seq, cut)
		}
	}
	if n != 300 {
		t.Errorf("%d sessions", n)
	}
}

// leaveTornTail writes the start of a line at the end of a session.
func leaveTornTail(dir, session string) error {
	f, err := os.OpenFile(filepath.Join(dir, fileOf(session)), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(`{"crc":"`)
	return errors.Join(err, f.Close())
}

// Mentioned yields the digests in saved torn tails and backup copies, at any place in
// the file.
func TestMentioned(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var want []event.Digest
	digest := func(text string) string {
		d := event.DigestOf([]byte(text))
		want = append(want, d)
		return string(d)
	}
	across := 64<<10 - 20 // spans two reads
	for name, text := range map[string]string{
		"a.torn-7":    `{"crc":"00000000","blobs":["` + digest("1") + `","` + digest("2") + `"],"da`,
		"a.damaged-1": strings.Repeat("x", across) + digest("3") + strings.Repeat("y", 1<<20) + digest("4"),
		"a.bak":       "sha256:sha256:" + digest("5") + "sha256:" + strings.Repeat("f", 63),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, name := range []string{"a.jsonl", "b.torn-7.tmp", ".lock"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(event.DigestOf(nil)), 0o600))
	}
	got := []event.Digest{}
	for d, err := range s.Mentioned(t.Context()) {
		must(t, err)
		got = append(got, d)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A blob that only a backup copy refers to is not collected.
func TestBackupCopiesKeepBlobs(t *testing.T) {
	dir := t.TempDir()
	l := eventlog.Open(open(t, dir))
	ctx := context.Background()
	kept, err := l.PutBlob(ctx, strings.NewReader("kept"))
	must(t, err)
	other, err := l.PutBlob(ctx, strings.NewReader("other"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "a.damaged-1"), []byte("…"+kept.Blob+"…"), 0o600))
	garbage, err := erase.Collect(ctx, l, erase.CollectOptions{Grace: -1})
	must(t, err)
	if len(garbage.Blobs) != 1 || garbage.Blobs[0].Digest != other.Blob {
		t.Errorf("collected %v", garbage.Blobs)
	}
}

// While a hole hides events, the blobs they need are unknown: no blob is collected.
func TestNoGarbageWhileAHoleHidesEvents(t *testing.T) {
	for _, at := range []int{0, 2 * block} {
		dir := t.TempDir()
		l := eventlog.Open(open(t, dir))
		head := eventlog.New()
		for range 6 {
			got, err := l.Append(t.Context(), "a", head, note(strings.Repeat("x", block)))
			must(t, err)
			head = eventlog.At(got)
		}
		must(t, l.Close())
		path := filepath.Join(dir, "a.jsonl")
		text, err := os.ReadFile(path)
		must(t, err)
		clear(text[at : at+block])
		must(t, os.WriteFile(path, text, 0o600))

		l = eventlog.Open(open(t, dir))
		kept, err := l.PutBlob(t.Context(), strings.NewReader("may be needed"))
		must(t, err)
		_, err = erase.Collect(t.Context(), l, erase.CollectOptions{Grace: -1})
		wantErr(t, err, eventlog.ErrCorrupt)
		body, err := l.OpenBlob(t.Context(), kept.Blob)
		must(t, err)
		must(t, body.Close())
		named := false
		for tail, err := range verify.TornTails(t.Context(), l) {
			must(t, err)
			named = named || tail.Session == "a" && tail.Whole
		}
		if !named {
			t.Errorf("a hole at %d: TornTails does not name the session", at)
		}
		must(t, l.Close())
	}
}
