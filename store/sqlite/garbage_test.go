package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A committed redaction may fail to empty the write-ahead log while another process
// reads. Another redaction or a sweep finishes it.
func TestInterruptedErasureIsFinished(t *testing.T) {
	for name, finish := range map[string]func(l *eventlog.Log, s *Store) error{
		"redact again": func(l *eventlog.Log, _ *Store) error {
			_, err := erase.Redact(context.Background(), l, "a", []int64{1}, erase.RedactOptions{Reason: ""})
			return err
		},
		"gc": func(l *eventlog.Log, _ *Store) error {
			_, err := erase.Collect(context.Background(), l, erase.CollectOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := open(t, path)
			l := eventlog.Open(s)
			_, err := l.Append(t.Context(), "a", eventlog.New(), event.UserMessage(canary))
			must(t, err)
			reader, err := dial(path, "mode=ro")
			must(t, err)
			must(t, reader.run("BEGIN"))
			_, err = reader.number("SELECT count(*) FROM events")
			must(t, err)
			before, err := s.Version(t.Context(), "a")
			must(t, err)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			go func() {
				defer leave()
				for { // until the redaction is committed
					now, err := s.Version(context.Background(), "a")
					if err != nil || now != before {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			_, err = erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: ""})
			if err == nil || countCanary(t, path) == 0 {
				t.Fatalf("the redaction is finished: %v", err)
			}
			must(t, errors.Join(reader.run("COMMIT"), reader.close()))
			must(t, finish(l, s))
			if n := countCanary(t, path); n > 0 {
				t.Errorf("the canary is there %d times", n)
			}
			report, err := verify.Session(t.Context(), l, "a")
			if must(t, err); len(report.Defects) > 0 || report.Events != 2 {
				t.Errorf("%+v", report)
			}
		})
	}
}

// Sweep removes the spool file of an unfinished body, and no other file.
func TestSweepOfSpools(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	add(t, s, "a", event.Head{}, 1, "x")
	spooled := path + spoolInfix + "1234"
	stays := []string{path + spoolInfix, path + spoolInfix + "x1", path + "2", path + "-blob.txt"}
	for _, name := range append(stays, spooled) {
		must(t, os.WriteFile(name, []byte("body"), 0o600))
	}
	for _, remove := range []bool{false, true} {
		leftovers, err := collect(s.Sweep(t.Context(), remove))
		if must(t, err); len(leftovers) != 1 || leftovers[0] != (eventlog.FilePlace{Path: spooled, Bytes: 4}) {
			t.Errorf("found %v", leftovers)
		}
	}
	if _, err := os.Stat(spooled); !os.IsNotExist(err) {
		t.Error("the leftover is still there")
	}
	for _, name := range stays {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	_, _, err := s.PutBlob(t.Context(), strings.NewReader(strings.Repeat("long", pieceBytes)))
	must(t, err)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if must(t, err); len(names) != len(stays)+3 { // plus the database, its log and the log's index
		t.Errorf("the folder holds %q", names)
	}
}

// The file has no bytes of removed blobs, and later writes use their space.
func TestRemovedBlobsAreOverwritten(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	put := func(n int) (digests []event.Digest) {
		for i := range n {
			d, _, err := s.PutBlob(t.Context(), strings.NewReader(strings.Repeat(canary+string(rune('a'+i)), 3000)))
			must(t, err)
			digests = append(digests, d)
		}
		return digests
	}
	digests := put(2 * blobsPerRemoval)
	must(t, s.RemoveBlobs(t.Context(), append(digests, event.DigestOf(nil))))
	if n := countCanary(t, path); n > 0 {
		t.Errorf("the canary is there %d times", n)
	}
	size := func() int64 {
		info, err := os.Stat(path)
		must(t, err)
		return info.Size()
	}
	before := size()
	put(2 * blobsPerRemoval)
	must(t, s.scrub(t.Context()))
	if grown := size() - before; grown > 64<<10 {
		t.Errorf("the file grew by %d bytes although there was room in it", grown)
	}
}

// An exclusive store lock waits for a transaction whose caller has left.
func TestLockWaitsForWritesUnderWay(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	add(t, s, "a", event.Head{}, 1, "x")
	other, err := dial(path, "mode=rw")
	must(t, err)
	must(t, other.run("BEGIN IMMEDIATE"))
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
	defer cancel()
	_, _, err = s.Lock(ctx, true)
	want(t, context.DeadlineExceeded, err)
	_, unlock, err := s.Lock(t.Context(), false)
	must(t, err)
	unlock()
	must(t, errors.Join(other.run("COMMIT"), other.close()))
	_, unlock, err = s.Lock(t.Context(), true)
	must(t, err)
	unlock()
}

// A blob that only a backup copy refers to is not collected.
func TestGarbageInBackupCopies(t *testing.T) {
	path := tempPath(t)
	l := eventlog.Open(open(t, path))
	kept, err := l.PutBlob(t.Context(), strings.NewReader("kept"))
	must(t, err)
	other, err := l.PutBlob(t.Context(), strings.NewReader("other"))
	must(t, err)
	must(t, os.WriteFile(path+".damaged-0123456789abcdef-1.jsonl", []byte(`{"blobs":["`+kept.Blob+`"]`), 0o600))
	garbage, err := erase.Collect(t.Context(), l, erase.CollectOptions{Grace: -1})
	must(t, err)
	if len(garbage.Blobs) != 1 || garbage.Blobs[0].Digest != other.Blob {
		t.Errorf("collected %v", garbage.Blobs)
	}
}
