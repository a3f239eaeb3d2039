package jsonl

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/testsize"
)

// damages damage a session of six events, one append each. Each row has the readable
// seqs, with an x for unreadable bytes.
var damages = []struct {
	name   string
	damage func(lines [][]byte) []byte
	want   string
}{
	{"none", func(l [][]byte) []byte { return joined(l) }, "1 2 3 4 5 6"},
	{"a flipped byte", func(l [][]byte) []byte { l[2][60] ^= 1; return joined(l) }, "1 2 x 4 5 6"},
	{"two flipped bytes", func(l [][]byte) []byte { l[0][60] ^= 1; l[3][60] ^= 1; return joined(l) }, "x 2 3 x 5 6"},
	{"an empty line", func(l [][]byte) []byte { l[1] = append(l[1], '\n'); return joined(l) }, "1 2 x 3 4 5 6"},
	{"a lost newline", func(l [][]byte) []byte { l[1] = bytes.TrimSpace(l[1]); return joined(l) }, "1 2 3 4 5 6"},
	{"all newlines lost", func(l [][]byte) []byte { return bytes.ReplaceAll(joined(l), []byte("\n"), nil) }, "1 2 3 4 5 6"},
	{"NULs before a line", func(l [][]byte) []byte { l[3] = append(make([]byte, 700), l[3]...); return joined(l) }, "1 2 3 x 4 5 6"},
	{"NULs after a line", func(l [][]byte) []byte {
		l[3] = append(append(bytes.TrimSpace(l[3]), make([]byte, 700)...), '\n')
		return joined(l)
	}, "1 2 3 4 x 5 6"},
	{"half a line before another", func(l [][]byte) []byte { l[3] = l[3][:90]; return joined(l) }, "1 2 3 x 5 6"},
	{"half a line in another", func(l [][]byte) []byte { l[3] = slices.Concat(l[4][:90], l[3]); return joined(l) }, "1 2 3 x 4 5 6"},
	{"NULs over a newline", func(l [][]byte) []byte {
		all := joined(l)
		at := len(l[0]) + len(l[1])
		copy(all[at-20:at+20], make([]byte, 40))
		return all
	}, "1 x 4 5 6"},
	{"more NULs than memory would hold", func(l [][]byte) []byte {
		l[3] = append(make([]byte, 3*longestLine+5), l[3]...)
		return joined(l)
	}, "1 2 3 x 4 5 6"},
	{"as many at the end", func(l [][]byte) []byte { return append(joined(l), make([]byte, 3*longestLine)...) }, "1 2 3 4 5 6 x"},
	{"a line too long with lines in it", func(l [][]byte) []byte {
		l[1] = slices.Concat(make([]byte, maxAppend-3), bytes.TrimSpace(l[1]), make([]byte, longestLine))
		return joined(l)
	}, "1 x 2 x 3 4 5 6"},
	{"a line twice", func(l [][]byte) []byte { l[1] = append(l[1], l[1]...); return joined(l) }, "1 2 2 3 4 5 6"},
	{"lines swapped", func(l [][]byte) []byte { l[1], l[2] = l[2], l[1]; return joined(l) }, "1 3 2 4 5 6"},
	{"no end", func(l [][]byte) []byte { return joined(l)[:len(joined(l))-30] }, "1 2 3 4 5 x"},
	{"no last newline", func(l [][]byte) []byte { return bytes.TrimSpace(joined(l)) }, "1 2 3 4 5 6"},
	{"carriage returns", func(l [][]byte) []byte { return bytes.ReplaceAll(joined(l), []byte("\n"), []byte("\r\n")) }, "1 2 3 4 5 6"},
	{"a line of content in a damaged one", func(l [][]byte) []byte {
		l[2] = fmt.Appendf(nil, `{"crc":"00000000","v":1,"data":{"a":%s,"b":1}}`+"\n", bytes.TrimSpace(l[2]))
		return joined(l)
	}, "1 2 x 4 5 6"},
}

func joined(lines [][]byte) []byte { return bytes.Join(lines, nil) }

// Fragments finds every readable line after damage and covers every byte.
func TestFragments(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			dir := t.TempDir()
			b := d.damage(bytes.SplitAfter(content(sealed(t, "a", ones(6)...)), []byte("\n"))[:6])
			path := write(t, dir, "a", b)
			if got := salvaged(t, open(t, dir), path, b); got != d.want {
				t.Errorf("found %s, want %s", got, d.want)
			}
		})
	}
}

// salvaged describes the fragments of session a, and compares each with the bytes at
// its place.
func salvaged(t testing.TB, s *Store, path string, b []byte) string {
	t.Helper()
	var names []string
	at := int64(0)
	for f, err := range s.Fragments(t.Context(), "a") {
		must(t, err)
		if f.Offset != at || f.Bytes < 1 || f.Path != path {
			t.Fatalf("fragment at %s %d+%d, want it at %s %d", f.Path, f.Offset, f.Bytes, path, at)
		}
		name := "x"
		if f.Err == nil {
			name = fmt.Sprint(f.Event.Seq)
			if !bytes.HasPrefix(b[at:], f.Event.Line()) || f.Bytes > int64(len(f.Event.Line()))+1 {
				t.Errorf("line of seq %s differs from the bytes at %d", name, at)
			}
		}
		names = append(names, name)
		at += f.Bytes
		if ended := b[at-1] == '\n' || at < int64(len(b)); f.Unended == ended {
			t.Errorf("fragment %s: unended %v", name, f.Unended)
		}
	}
	if at != int64(len(b)) {
		t.Errorf("fragments cover %d bytes of %d", at, len(b))
	}
	return strings.Join(names, " ")
}

// Fragments returns lines of other sessions with their own session id.
func TestFragmentsOfAnotherSession(t *testing.T) {
	dir := t.TempDir()
	own, other := sealed(t, "a", 1, 1), sealed(t, "b", 1, 1)
	write(t, dir, "a", content([]event.Event{own[0], other[1]}))
	var sessions []string
	for f, err := range open(t, dir).Fragments(t.Context(), "a") {
		must(t, err)
		sessions = append(sessions, f.Event.SessionID)
	}
	if want := []string{"a", "b"}; !slices.Equal(sessions, want) {
		t.Errorf("sessions %q, want %q", sessions, want)
	}
}

// Fragments waits for an append in progress, and does not report it as damage.
func TestFragmentsWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	b := content(sealed(t, "a", 1, 3))
	path := write(t, dir, "a", b[:len(b)-40])
	writer, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	must(t, err)
	defer func() { must(t, writer.Close()) }()
	file := &osFile{File: writer, fd: int(writer.Fd())}
	if locked, err := file.TryLock(true); !locked {
		t.Fatal(err)
	}
	s := open(t, dir, Options{FS: &lockHook{FS: Dir(dir), refused: func() {
		_, err := writer.Write(b[len(b)-40:])
		must(t, err)
		must(t, file.Unlock())
	}}})
	if got := salvaged(t, s, path, b); got != "1 2 3 4" {
		t.Errorf("found %s", got)
	}
}

// lockHook calls refused once when a lock is not available.
type lockHook struct {
	FS
	refused func()
}

func (o *lockHook) Open(name string, flag int) (File, error) {
	file, err := o.FS.Open(name, flag)
	return &lockHookFile{file, o}, err
}

type lockHookFile struct {
	File
	fs *lockHook
}

func (f *lockHookFile) TryLock(exclusive bool) (bool, error) {
	ok, err := f.File.TryLock(exclusive)
	if !ok && err == nil && f.fs.refused != nil {
		f.fs.refused()
		f.fs.refused = nil
	}
	return ok, err
}

// Many objects without an end take only linear time.
func TestFragmentsOfHostileBytes(t *testing.T) {
	dir := t.TempDir()
	b := append(bytes.Repeat([]byte(lineStart), testsize.Pick(1, 2, 16)<<17), '\n')
	path := write(t, dir, "a", append(b, content(sealed(t, "a", 1))...))
	b, err := os.ReadFile(path)
	must(t, err)
	if got := salvaged(t, open(t, dir), path, b); got != "x 1" {
		t.Errorf("found %s", got)
	}
}

// unfinished writes a session of two appends, the second without its last bytes, under the lock of
// a writer. finish writes these bytes and unlocks the file.
func unfinished(t *testing.T, dir string) (finish func()) {
	t.Helper()
	b := content(sealed(t, "a", 1, 3))
	path := write(t, dir, "a", b[:len(b)-40])
	writer, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	must(t, err)
	t.Cleanup(func() { must(t, writer.Close()) })
	file := &osFile{File: writer, fd: int(writer.Fd())}
	if locked, err := file.TryLock(true); !locked {
		t.Fatal(err)
	}
	return func() {
		_, err := writer.Write(b[len(b)-40:])
		must(t, err)
		must(t, file.Unlock())
	}
}

// A list of torn tails waits for an append in progress, and does not report it.
func TestTornTailsWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{FS: &lockHook{FS: Dir(dir), refused: unfinished(t, dir)}})
	for tail, err := range s.TornTails(t.Context(), "") {
		t.Errorf("found %+v, %v", tail, err)
	}
}

// A list of sessions does not wait for an append in progress, and reports no damage, also if the
// append ends meanwhile.
func TestListsDoNotWaitForAWriter(t *testing.T) {
	for name, hook := range map[string]func(FS, func()) FS{
		"the writer holds the lock":    func(fs FS, _ func()) FS { return fs },
		"the writer has just unlocked": func(fs FS, finish func()) FS { return &openHook{FS: fs, at: 3, opened: finish} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, Options{FS: hook(Dir(dir), unfinished(t, dir))})
			for info, err := range s.Sessions(t.Context()) {
				must(t, cmp.Or(err, info.Err, info.Tail))
			}
		})
	}
}

// openHook calls opened before a file is opened for the time at.
type openHook struct {
	FS
	at     int
	opened func()
}

func (o *openHook) Open(name string, flag int) (File, error) {
	if o.at--; o.at == 0 {
		o.opened()
	}
	return o.FS.Open(name, flag)
}
