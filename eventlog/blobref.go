package eventlog

import (
	"fmt"
	"slices"
)

// BlobRef refers to a blob: a body that is kept by its content beside the log.
// The zero BlobRef refers to nothing.
type BlobRef struct {
	Blob Digest `json:"blob"`
	// Bytes is the size of the body.
	Bytes int64 `json:"bytes"`
}

// IsZero reports whether r refers to nothing.
func (r BlobRef) IsZero() bool { return r == BlobRef{} }

// check refuses a reference whose digest or size cannot be.
func (r BlobRef) check(name string) error {
	if r.IsZero() {
		return nil
	}
	if _, ok := r.Blob.sum(); !ok {
		return fmt.Errorf("%w: %s is %q, not a digest", ErrInvalidBlob, name, clip(string(r.Blob)))
	}
	if r.Bytes < 0 {
		return fmt.Errorf("%w: %s has %d bytes", ErrInvalidBlob, name, r.Bytes)
	}
	return nil
}

// needs is what a payload with this reference needs.
func (r BlobRef) needs() []Digest {
	if r.Blob == "" {
		return nil
	}
	return []Digest{r.Blob}
}

// sortDigests sorts d in place and drops repeats; it is nil if none are left.
func sortDigests(d []Digest) []Digest {
	if len(d) == 0 {
		return nil
	}
	slices.Sort(d)
	return slices.Compact(d)
}
