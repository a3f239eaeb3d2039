package engine

import "context"

// CheckedBlobs is an ability of a store that compares the digests of blobs itself, and may
// then show other bytes, for example with masks (package secrets). The log does not compare
// digests again.
type CheckedBlobs interface {
	// ChecksDigests does nothing; it marks the ability.
	ChecksDigests()
}

type blobsElsewhere struct{}

// WithBlobsElsewhere returns the context of a Store.Append whose blobs are in another store
// (eventlog.WithBlobs).
func WithBlobsElsewhere(ctx context.Context) context.Context {
	return context.WithValue(ctx, blobsElsewhere{}, true)
}

// BlobsElsewhere reports whether the blobs that an append names are in another store. If
// so, Store.Append does not check that the blobs exist.
func BlobsElsewhere(ctx context.Context) bool { return ctx.Value(blobsElsewhere{}) != nil }
