package jsonl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/regular/special"
)

// A special file in the place of a file of the store is an error with its path. No call
// waits for the other end of a pipe, and Check reports the file.
func TestSpecialFiles(t *testing.T) {
	body := event.DigestOf([]byte("body"))
	for place, use := range map[string]func(ctx context.Context, l *eventlog.Log) error{
		"a.jsonl": useSession,
		lockName:  useLock,
		leaseName: func(ctx context.Context, l *eventlog.Log) error {
			_, err := l.Store().(*Store).Lease(ctx, "x")
			return err
		},
		blobName(body): func(ctx context.Context, l *eventlog.Log) error {
			_, err := l.OpenBlob(ctx, body)
			return err
		},
		"b.torn-0": func(ctx context.Context, l *eventlog.Log) error { return appendTo(ctx, l, "b") },
	} {
		for _, kind := range special.Kinds() {
			t.Run(strings.ReplaceAll(place, "/", "-")+"/"+kind.Name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, place)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "b.jsonl"), []byte("torn"), 0o600); err != nil {
					t.Fatal(err)
				}
				kind.Make(t, path)
				l := eventlog.Open(New(dir))
				defer l.Close()
				err := use(t.Context(), l)
				wantNotRegular(t, err, path)
				wantReported(t, l, path)
			})
		}
	}
}

func appendTo(ctx context.Context, l *eventlog.Log, session string) error {
	_, err := l.Append(ctx, session, eventlog.Any(), note("x"))
	return err
}

// useSession returns an error unless every use of session a fails with ErrNotRegular.
func useSession(ctx context.Context, l *eventlog.Log) error {
	var last error
	for _, use := range []func() error{
		func() error { return appendTo(ctx, l, "a") },
		func() error { _, err := l.Head(ctx, "a"); return err },
		func() error {
			for _, err := range l.Store().(*Store).Fragments(ctx, "a") {
				return err
			}
			return nil
		},
		func() error { return l.Store().(*Store).RemoveSession(ctx, "a", event.Head{}) },
	} {
		if last = use(); !errors.Is(last, eventlog.ErrNotRegular) {
			return last
		}
	}
	for info, err := range l.Sessions(ctx) {
		if err != nil || info.ID == "a" {
			return errors.Join(err, errors.New("the session is listed"))
		}
	}
	return last
}

func useLock(ctx context.Context, l *eventlog.Log) error {
	return l.Hold(ctx, func(context.Context) error { return nil })
}

func wantNotRegular(t *testing.T, err error, path string) {
	t.Helper()
	var special *regular.Error
	if !errors.As(err, &special) || special.Path != path || !errors.Is(err, eventlog.ErrNotRegular) {
		t.Errorf("got error %v, want a regular.Error at %s", err, path)
	}
}

// wantReported checks that Check has a defect for the path.
func wantReported(t *testing.T, l *eventlog.Log, path string) {
	t.Helper()
	for d, err := range l.Store().(*Store).Check(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Path == path && d.Rule == "file" {
			return
		}
	}
	t.Errorf("Check does not report %s", path)
}

// A named pipe in the place of the store's folder or of the folder of blobs is an
// error.
func TestPipeForAFolder(t *testing.T) {
	for _, name := range []string{"store", "store/blobs"} {
		dir := t.TempDir()
		if name != "store" {
			if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		special.Kinds()[0].Make(t, filepath.Join(dir, name))
		l := eventlog.Open(New(filepath.Join(dir, "store")))
		if _, err := l.PutBlob(t.Context(), strings.NewReader("body")); err == nil {
			t.Errorf("%s: a blob was stored", name)
		}
		for _, err := range l.Store().(*Store).ListBlobs(t.Context()) {
			if err == nil {
				t.Errorf("%s: blobs were listed", name)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
