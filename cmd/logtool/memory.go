package main

import (
	"bytes"
	"io"
	"iter"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// The memory of a command that lists all sessions, in bytes: Go frees memory more often
// near this bound. A row of a session has some 500 bytes: with a bound of twice their sum and nothing
// beside it, a list of them takes longer.
const (
	leastMemory   = 36 << 20
	headsMemory   = 30 << 20 // of heads, which are less than rows
	sessionMemory = 1000
)

// setMemory bounds the memory of the program, unless the user did.
func setMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// servePercent is how much garbage the server has beside what is live, in percent: a long
// session or list makes little that stays and much garbage.
const servePercent = 50

// boundServer bounds the memory of the server, unless the user did.
func (a *app) boundServer() {
	if a.setMemory != nil && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(servePercent)
	}
}

// bound bounds the memory of a command that has listed some sessions.
func (a *app) bound(sessions int) {
	if a.setMemory != nil && sessions%10_000 == 0 {
		a.setMemory(leastMemory + int64(sessions)*sessionMemory)
	}
}

// recordMemory is what an import keeps of each record of a file until the end of the file: its ids
// and its digest.
const recordMemory = 300

// boundRecords bounds the memory of an import with large files: an import needs 64 MiB, four times
// its longest record, and recordMemory for each record of a file.
func (a *app) boundRecords(files []interop.Candidate) {
	const large = 32 << 20
	longest, records, parallel := int64(0), int64(0), int64(0)
	for _, f := range files {
		if a.setMemory == nil || f.Bytes < large {
			continue
		}
		lines, most, err := countLines(f.Path)
		if err != nil {
			most = f.Bytes // the import reports the error
		}
		longest, records, parallel = max(longest, min(most, interop.MaxRecord)), max(records, lines), parallel+1
	}
	if parallel > 0 {
		a.setMemory(20<<20 + 3*longest + min(parallel, int64(runtime.GOMAXPROCS(0)))*records*recordMemory)
	}
}

// countLines counts the lines of a file, and the bytes of the longest one.
func countLines(path string) (lines, longest int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	length := int64(0)
	for buffer := make([]byte, 64<<10); err == nil; {
		var n int
		n, err = f.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			line, after, ends := bytes.Cut(rest, []byte("\n"))
			length += int64(len(line))
			if longest = max(longest, length); ends {
				lines, length = lines+1, 0
			}
			rest = after
		}
	}
	if err == io.EOF {
		err = nil
	}
	return lines, longest, err
}

// bounded bounds the memory of a command while it lists sessions.
func (a *app) bounded(sessions iter.Seq2[eventlog.SessionInfo, error]) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		n := 0
		for info, err := range sessions {
			if a.bound(n); !yield(info, err) {
				return
			}
			n++
		}
	}
}
