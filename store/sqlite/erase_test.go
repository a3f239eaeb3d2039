package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

const canary = "canary-7c1f"

// countCanary counts the canary in the database's files. Another process reads the
// files, because closing them in this process would drop SQLite's locks.
func countCanary(t testing.TB, path string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat", path, path+"-wal")
	all, err := cmd.Output()
	must(t, err)
	return bytes.Count(all, []byte(canary))
}

func TestErasedBytesAreGone(t *testing.T) {
	short, long := canary, strings.Repeat("spread over pages ", 2000)+canary
	for _, c := range []struct {
		name string
		text string
		by   string
	}{
		{"short", short, ""},
		{"long", long, ""},
		{"long by long", long, strings.Repeat("other ", 8000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tempPath(t)
			s := open(t, path)
			head := add(t, s, "a", event.Head{}, 20, "filler")
			secret := eventChain("a", head, 1, c.text)
			must(t, s.Append(t.Context(), "a", head, secret, false))
			head = add(t, s, "a", headOf(secret), 20, "filler")
			if countCanary(t, path) == 0 {
				t.Fatal("the canary is not there to begin with")
			}
			added := eventChain("a", head, 1, "redacted")
			must(t, s.Rewrite(t.Context(), "a", head, []event.Event{withText(secret[0], c.by)}, added))
			if n := countCanary(t, path); n > 0 {
				t.Errorf("the canary is there %d times", n)
			}
			if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 42 {
				t.Errorf("got %d events, want 42", len(got))
			}
			if got, want := listedBytes(t, s), linesOf(t, s); got != want {
				t.Errorf("listed %d bytes, want %d", got, want)
			}
		})
	}
}

func listedBytes(t testing.TB, s *Store) int64 {
	t.Helper()
	infos, err := collect(s.Sessions(t.Context()))
	must(t, err)
	if len(infos) != 1 || infos[0].Err != nil {
		t.Fatalf("listed %v", infos)
	}
	return infos[0].Bytes
}

func linesOf(t testing.TB, s *Store) int64 {
	t.Helper()
	events, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	must(t, err)
	return lineBytes(events)
}

func TestRemovedBytesAreGone(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 100, canary)
	add(t, s, "b", event.Head{}, 3, "stays")
	d, _, err := s.PutBlob(t.Context(), strings.NewReader(strings.Repeat(canary, 10_000)))
	must(t, err)
	must(t, s.RemoveSession(t.Context(), "a", head))
	must(t, s.RemoveBlobs(t.Context(), []event.Digest{d}))
	if n := countCanary(t, path); n > 0 {
		t.Errorf("the canary is there %d times", n)
	}
	want(t, eventlog.ErrNotFound, s.RemoveSession(t.Context(), "a", event.Head{}))
	want(t, eventlog.ErrConflict, s.RemoveSession(t.Context(), "a", head))
}

func TestRewriteRefused(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 2, "x")
	events, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	must(t, err)
	beyond := eventChain("a", head, 1, "x")
	want(t, eventlog.ErrEventNotFound, s.Rewrite(t.Context(), "a", head, []event.Event{withText(events[0], "y"), beyond[0]}, nil))
	want(t, eventlog.ErrConflict, s.Rewrite(t.Context(), "a", events[0].Head(), events[:1], nil))
	again, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	must(t, err)
	if !bytes.Equal(events[0].Line(), again[0].Line()) || len(again) != 2 {
		t.Error("a rejected rewrite changed the session")
	}
}

// A rewrite waits for another process that reads the log, and returns an
// UnknownOutcomeError when its context ends.
func TestRewriteWaitsForReader(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 2, canary)
	reader, err := dial(path, "mode=ro")
	must(t, err)
	must(t, reader.run("BEGIN"))
	_, err = reader.number("SELECT count(*) FROM events")
	must(t, err)
	events, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	must(t, err)
	before, err := s.Version(t.Context(), "a")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for { // until the rewrite is committed
			row, err := s.Version(context.Background(), "a")
			if err != nil || row != before {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err = s.Rewrite(ctx, "a", head, []event.Event{withText(events[0], "y"), withText(events[1], "y")}, nil)
	want(t, eventlog.ErrUnknownOutcome, err)
	must(t, errors.Join(reader.run("COMMIT"), reader.close()))
	must(t, s.Rewrite(t.Context(), "a", head, nil, nil))
	if n := countCanary(t, path); n > 0 {
		t.Errorf("the canary is there %d times", n)
	}
}

// While another process reads the write-ahead log, a redaction and a removal report that
// the bytes are still there, verify reports it too, and the next open for writing, or
// Finish, erases them.
func TestErasureBesideAReader(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *eventlog.Log) error{
		"redact": func(l *eventlog.Log) error {
			done, err := erase.Redact(t.Context(), l, "a", []int64{1})
			if errors.Is(err, erase.ErrUnfinished) && len(done.Erased) != 1 {
				t.Errorf("the unfinished redaction reports %+v", done)
			}
			return err
		},
		"remove": func(l *eventlog.Log) error { return erase.Remove(t.Context(), l, "a") },
	} {
		for _, by := range []string{"open", "Finish", "gc"} {
			t.Run(name+" and "+by, func(t *testing.T) {
				t.Parallel() // it waits for a lock that the reader keeps
				path := tempPath(t)
				s := New(path, Options{LockTimeout: 200 * time.Millisecond})
				l := eventlog.Open(s)
				_, err := l.Append(t.Context(), "a", eventlog.New(), event.UserMessage(canary))
				must(t, err)
				reader, err := dial(path, "mode=ro")
				must(t, err)
				must(t, reader.run("BEGIN"))
				_, err = reader.number("SELECT count(*) FROM events")
				must(t, err)
				if err := change(l); !errors.Is(err, erase.ErrUnfinished) && !errors.Is(err, eventlog.ErrUnknownOutcome) {
					t.Fatalf("%s beside a reader: %v", name, err)
				}
				if rules := unfinished(t, l); !slices.Equal(rules, []string{verify.RuleErasing}) {
					t.Errorf("verify finds %q", rules)
				}
				want(t, erase.ErrUnfinished, erase.Finish(t.Context(), l))
				must(t, errors.Join(reader.run("COMMIT"), reader.close()))
				switch by {
				case "open":
					must(t, l.Close())
					s = New(path)
					l = eventlog.Open(s)
					_, err = l.Append(t.Context(), "b", eventlog.New(), event.UserMessage("other"))
				case "Finish":
					err = erase.Finish(t.Context(), l)
				case "gc":
					_, err = erase.Collect(t.Context(), l)
				}
				must(t, err)
				if n := countCanary(t, path); n > 0 {
					t.Errorf("the canary is there %d times", n)
				}
				if rules := unfinished(t, l); len(rules) > 0 {
					t.Errorf("verify finds %q", rules)
				}
				must(t, l.Close())
			})
		}
	}
}

// unfinished lists the rules of the defects that verify finds outside sessions.
func unfinished(t *testing.T, l *eventlog.Log) (rules []string) {
	t.Helper()
	for d, err := range verify.Store(t.Context(), l) {
		must(t, err)
		rules = append(rules, d.Rule)
	}
	return rules
}

// An error locates a damaged page. The rest of the file stays readable.
func TestDamageIsLocated(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(line []byte) []byte
		text   string
	}{
		{"flipped bit", func(line []byte) []byte {
			flipped := bytes.Clone(line)
			flipped[len(line)-4] ^= 1
			return flipped
		}, "checksum does not match"},
		{"zeroes", func(line []byte) []byte { return make([]byte, len(line)) }, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tempPath(t)
			s := New(path)
			add(t, s, "a", event.Head{}, 200, "x")
			add(t, s, "b", event.Head{}, 2, "x")
			events, err := collect(s.Read(t.Context(), "a", eventlog.Span{From: 150, To: 150}))
			must(t, err)
			must(t, s.Close())
			file, err := os.ReadFile(path)
			must(t, err)
			line := events[0].Line()
			must(t, os.WriteFile(path, bytes.Replace(file, line, c.damage(line), 1), 0o600))

			s = open(t, path)
			events, err = collect(s.Read(t.Context(), "a", eventlog.Span{}))
			wantDamage(t, err, 150, "s.db: table events, rowid 150", c.text)
			if len(events) != 149 {
				t.Errorf("read %d events before the damage, want 149", len(events))
			}
			events, err = collect(s.Read(t.Context(), "a", eventlog.Span{Backward: true, Limit: 50}))
			if err != nil || len(events) != 50 {
				t.Errorf("after the damage: %d events, %v", len(events), err)
			}
		})
	}
}

func wantDamage(t testing.TB, err error, seq int64, place, text string) {
	t.Helper()
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) {
		t.Fatalf("got %v, want a CorruptError", err)
	}
	if damage.Seq != seq || damage.Path != place || damage.Offset != -1 || !strings.Contains(err.Error(), text) {
		t.Errorf("got %+v (%v), want seq %d at %q and %q", damage, err, seq, place, text)
	}
}

// A missing row is damage, at both ends and in the middle.
func TestMissingRow(t *testing.T) {
	for _, seq := range []int64{1, 100, 200} {
		path := tempPath(t)
		s := New(path)
		must(t, s.Append(t.Context(), "a", event.Head{}, eventChain("a", event.Head{}, 200, "x"), false))
		must(t, s.Close())
		c, err := dial(path, "mode=rw")
		must(t, err)
		_, err = c.exec("DELETE FROM events WHERE seq = ?", seq)
		must(t, err)
		must(t, c.close())
		_, err = collect(open(t, path).Read(t.Context(), "a", eventlog.Span{}))
		var damage *eventlog.CorruptError
		if !errors.As(err, &damage) || damage.Seq != seq {
			t.Errorf("without seq %d: got %v", seq, err)
		}
	}
}

// Damage to SQLite's structure is a CorruptError. A listing still lists the other
// sessions.
func TestDamagedPages(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	for _, session := range []string{"a", "b", "c"} {
		must(t, s.Append(t.Context(), session, event.Head{}, eventChain(session, event.Head{}, 400, session), false))
	}
	events, err := collect(s.Read(t.Context(), "b", eventlog.Span{From: 400}))
	must(t, err)
	must(t, s.Close())
	file, err := os.ReadFile(path)
	must(t, err)
	const pageSize = 4096
	at := bytes.Index(file, events[0].Line()) / pageSize * pageSize
	copy(file[at:at+pageSize], bytes.Repeat([]byte{0xa5}, pageSize))
	must(t, os.WriteFile(path, file, 0o600))

	s = open(t, path)
	_, err = collect(s.Read(t.Context(), "b", eventlog.Span{}))
	want(t, eventlog.ErrCorrupt, err)
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) || damage.Seq < 2 || !strings.HasPrefix(damage.Path, "s.db: table events") {
		t.Errorf("got %v", err)
	}
	infos, err := collect(s.Sessions(t.Context()))
	must(t, err)
	if len(infos) != 3 || infos[0].Err != nil || infos[1].Err == nil || infos[2].ID != "c" {
		t.Errorf("listed %+v", infos)
	}
}

// The end of a record without blobs leaves no erasure to finish.
func TestNothingToErase(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log.db"))
	if err := s.SetErasing(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if unfinished, err := s.Erasing(t.Context()); err != nil || !unfinished.Done() {
		t.Errorf("got %v, %v", unfinished, err)
	}
}
