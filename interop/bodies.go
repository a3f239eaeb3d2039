package interop

import (
	"context"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Bodies gets the bodies of images, sounds and documents, each whole. The
// renderings of histories take it as their Blob.
func Bodies(ctx context.Context, log *eventlog.Log) func(event.BlobRef) ([]byte, error) {
	return func(ref event.BlobRef) ([]byte, error) {
		r, err := log.OpenBlob(ctx, ref.Blob)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
}
