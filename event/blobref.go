package event

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/internal/line"
)

// BlobRef refers to a blob: a body stored by its content, beside the events. The
// zero BlobRef refers to nothing.
type BlobRef struct {
	Blob Digest `json:"blob"`
	// Bytes is the size of the body.
	Bytes int64 `json:"bytes"`
}

// IsZero reports whether r refers to nothing.
func (r BlobRef) IsZero() bool { return r == BlobRef{} }

// check refuses a malformed digest and a negative size.
func (r BlobRef) check(name string) error {
	if r.IsZero() {
		return nil
	}
	if !r.Blob.valid() {
		return fmt.Errorf("%w: %s is %q, not a digest", ErrInvalidBlob, name, line.Clip(string(r.Blob)))
	}
	if r.Bytes < 0 {
		return fmt.Errorf("%w: %s has %d bytes", ErrInvalidBlob, name, r.Bytes)
	}
	return nil
}

// needs lists the blob, if there is one.
func (r BlobRef) needs() []Digest {
	if r.Blob == "" {
		return nil
	}
	return []Digest{r.Blob}
}

// sortDigests sorts d in place without repeats; nil if d is empty.
func sortDigests(d []Digest) []Digest {
	if len(d) == 0 {
		return nil
	}
	slices.Sort(d)
	return slices.Compact(d)
}
