package importrun

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// File counts what the sessions of a file found out after the importer had counted its
// records as new. All methods of a nil File do nothing.
type File struct {
	// Again imports sessions that were removed from the log.
	Again bool
	// EvenErased stores records that may be erased ones.
	EvenErased bool
	// Growing says that the import is one of many, each after a program has written.
	Growing bool

	mu      sync.Mutex
	present Counts
	lost    Counts
	leftOut Counts
	removed map[string]bool
}

// Counts are numbers of records.
type Counts struct {
	Imported int // records that became events of their own
	Raw      int // records that became raw events
}

func (c *Counts) add(more Counts) {
	c.Imported += more.Imported
	c.Raw += more.Raw
}

type fileKey struct{}

// WithFile returns a context for the import of one file.
func WithFile(ctx context.Context, f *File) context.Context {
	return context.WithValue(ctx, fileKey{}, f)
}

// FileOf returns the file whose import ctx belongs to; nil if it belongs to none.
func FileOf(ctx context.Context) *File {
	f, _ := ctx.Value(fileKey{}).(*File)
	return f
}

// AddPresent adds records whose events another import stored, after this import had read
// the session.
func (f *File) AddPresent(c Counts) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.present.add(c)
}

// AddLost adds records that the import discarded, because their session cannot be imported.
func (f *File) AddLost(c Counts) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost.add(c)
}

// AddLeftOut adds records of a session that was removed from the log.
func (f *File) AddLeftOut(session string, c Counts) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed == nil {
		f.removed = map[string]bool{}
	}
	f.removed[session] = true
	f.leftOut.add(c)
}

// Present returns the sums of AddPresent. The import has ended.
func (f *File) Present() Counts { return f.present }

// Lost returns the sums of AddLost. The import has ended.
func (f *File) Lost() Counts { return f.lost }

// LeftOut returns the sessions of AddLeftOut, in order, and its sums. The import has ended.
func (f *File) LeftOut() ([]string, Counts) {
	return slices.Sorted(maps.Keys(f.removed)), f.leftOut
}
