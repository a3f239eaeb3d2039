package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/convlog/convlog/interop"
)

// importBar is the line that says how far an import is. Its methods may be called
// concurrently.
type importBar struct {
	*progress
	began time.Time
	files int   // to import
	all   int64 // bytes to import

	mu     sync.Mutex
	done   int
	read   int64
	events int64
}

// newImportBar begins a line that appears when an import takes longer than a second.
func newImportBar(a *app, found *interop.Found) *importBar {
	b := &importBar{progress: a.progress(), began: a.now(), files: len(found.Files()), all: found.Bytes()}
	b.next = b.began.Add(time.Second)
	return b
}

// file notes that a file is done.
func (b *importBar) file(row interop.Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.events += int64(row.Events)
	b.draw()
}

// bytes notes that bytes of files were read.
func (b *importBar) bytes(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += n
	b.draw()
}

func (b *importBar) draw() {
	if b.due() {
		b.show("%s", b.line(b.now()))
	}
}

func (b *importBar) line(now time.Time) string {
	const width = 24
	share := 1.0
	if b.all > 0 {
		share = min(float64(b.read)/float64(b.all), 1)
	}
	full := int(share * width)
	rate := int64(float64(b.read) / max(now.Sub(b.began).Seconds(), 0.001))
	return fmt.Sprintf("importing %s%s %3.0f%%  %s of %s  %s  %s/s", strings.Repeat("█", full), strings.Repeat("░", width-full),
		100*share, thousands(int64(b.done)), count(int64(b.files), "file"), count(b.events, "event"), size(rate))
}
