package importrun

import (
	"context"
	"sync"
)

// Present counts the records of a file whose events another import stored, after the
// import of the file had read the session. The importer has counted them as new.
type Present struct {
	mu            sync.Mutex
	imported, raw int
}

type presentKey struct{}

// WithPresent returns a context for the import of one file, and the counts of this import.
func WithPresent(ctx context.Context) (context.Context, *Present) {
	p := new(Present)
	return context.WithValue(ctx, presentKey{}, p), p
}

// PresentOf returns the counts of the import that ctx belongs to; nil if it belongs to none.
func PresentOf(ctx context.Context) *Present {
	p, _ := ctx.Value(presentKey{}).(*Present)
	return p
}

// Add adds records that became events of their own, and records that became raw events.
func (p *Present) Add(imported, raw int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.imported += imported
	p.raw += raw
}

// Counts returns the sums of Add. The import has ended.
func (p *Present) Counts() (imported, raw int) { return p.imported, p.raw }
