//go:build unix

package jsonl

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Each benchmark runs next to a raw variant that makes only the necessary system calls.
// docs has the promised ratios.

// lineText makes lines of about 700 bytes, the average of real sessions.
var lineText = strings.Repeat("seven hundred bytes of text. ", 14)

func chain(b *testing.B, session string, n int) []event.Event {
	b.Helper()
	r := new(recorder)
	log := eventlog.Open(r, eventlog.Options{SpillOver: -1})
	for range n {
		e := event.UserMessage(lineText)
		if _, err := log.Append(b.Context(), session, eventlog.Any(), e); err != nil {
			b.Fatal(err)
		}
	}
	return r.events
}

// appender appends prepared events to a session. When all are used it removes the
// session and starts again.
type appender struct {
	session string
	events  []event.Event
	at      int
}

func (a *appender) append(b *testing.B, s *Store) {
	if a.at == len(a.events) {
		if err := s.RemoveSession(b.Context(), a.session, head(a.events)); err != nil {
			b.Error(err)
		}
		a.at = 0
	}
	var h event.Head
	if a.at > 0 {
		h = a.events[a.at-1].Head()
	}
	if err := s.Append(b.Context(), a.session, h, a.events[a.at:a.at+1], false); err != nil {
		b.Error(err)
	}
	a.at++
}

// raw appends without a store: lock, fstat, write, unlock.
type raw struct {
	f  *os.File
	fd int
}

func newRaw(b *testing.B, dir, name string) *raw {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return &raw{f: f, fd: int(f.Fd())}
}

func (r *raw) append(b *testing.B, line []byte, sync bool) {
	var st unix.Stat_t
	errs := [...]error{unix.Flock(r.fd, unix.LOCK_EX|unix.LOCK_NB), unix.Fstat(r.fd, &st), nil, nil, nil}
	_, errs[2] = unix.Write(r.fd, line)
	if sync {
		errs[3] = syncData(r.f, r.fd)
	}
	errs[4] = unix.Flock(r.fd, unix.LOCK_UN)
	for _, err := range errs {
		if err != nil {
			b.Error(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, noSync := range map[string]bool{"never": true, "always": false} {
		b.Run(name+"/store", func(b *testing.B) {
			s := open(b, b.TempDir(), Options{NoSync: noSync})
			a := &appender{session: "s", events: chain(b, "s", 10_000)}
			a.append(b, s)
			b.ReportAllocs()
			for b.Loop() {
				a.append(b, s)
			}
		})
		b.Run(name+"/raw", func(b *testing.B) {
			r := newRaw(b, b.TempDir(), "s")
			line := content(chain(b, "s", 1))
			b.ReportAllocs()
			for b.Loop() {
				r.append(b, line, !noSync)
			}
		})
	}
}

// Sixteen goroutines append, each to its own session.
func BenchmarkAppend16(b *testing.B) {
	const writers = 16
	b.Run("store", func(b *testing.B) {
		s := open(b, b.TempDir(), Options{NoSync: true})
		var all [writers]*appender
		for i := range all {
			id := fmt.Sprint("s", i)
			all[i] = &appender{session: id, events: chain(b, id, 2000)}
			all[i].append(b, s)
		}
		b.ResetTimer()
		parallel(b, writers, func(i int) { all[i].append(b, s) })
	})
	b.Run("raw", func(b *testing.B) {
		dir := b.TempDir()
		var all [writers]*raw
		for i := range all {
			all[i] = newRaw(b, dir, fmt.Sprint("s", i))
		}
		line := content(chain(b, "s", 1))
		b.ResetTimer()
		parallel(b, writers, func(i int) { all[i].append(b, line, false) })
	})
}

func parallel(b *testing.B, writers int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range b.N/writers + 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

func BenchmarkRead100k(b *testing.B) {
	dir := b.TempDir()
	path := write(b, dir, "s", content(chain(b, "s", 100_000)))
	s := open(b, dir)
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range s.Read(b.Context(), "s", eventlog.Span{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			splitAndSum(b, path)
		}
	})
	b.Run("last64", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range s.Read(b.Context(), "s", eventlog.Span{Backward: true, Limit: 64}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range s.Read(b.Context(), "s", eventlog.Span{From: 50_000, Limit: 1}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// splitAndSum splits a file into lines and computes their checksums.
func splitAndSum(b *testing.B, path string) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	table := crc32.MakeTable(crc32.Castagnoli)
	buf := make([]byte, largestChunk)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		if n == 0 && err != nil {
			return
		}
		rest := buf[:have+n]
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			crc32.Checksum(rest[18:i], table)
			rest = rest[i+1:]
		}
		have = copy(buf, rest)
	}
}

func BenchmarkSessions(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	for i := range n {
		id := fmt.Sprint("session-", i)
		write(b, dir, id, content(chain(b, id, 8)))
	}
	s := open(b, dir)
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			for info, err := range s.Sessions(b.Context()) {
				if err != nil || info.Err != nil {
					b.Fatal(err, info.Err)
				}
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		buf := make([]byte, page)
		for b.Loop() {
			for i := range n {
				readBothEnds(b, filepath.Join(dir, fmt.Sprintf("session-%d.jsonl", i)), buf)
			}
		}
	})
}

func readBothEnds(b *testing.B, path string, buf []byte) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	_, _ = f.ReadAt(buf, 0)
	_, _ = f.ReadAt(buf, max(0, info.Size()-int64(len(buf))))
}
