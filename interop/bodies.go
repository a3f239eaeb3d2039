package interop

import (
	"context"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Bodies returns a function that reads the whole body of an image, a sound or a
// document. The renderers of histories accept it as their Blob option.
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
