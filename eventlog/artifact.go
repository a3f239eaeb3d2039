package eventlog

import (
	"context"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
)

// StoreArtifact stores a body as a blob and appends an artifact_recorded event that
// refers to the blob. It returns the artifact with Body set, and the new head. If the
// append fails, the blob stays until garbage collection. For a body that is stored
// elsewhere, append event.New(a) instead.
func (l *Log) StoreArtifact(ctx context.Context, session string, expect Expect, a event.Artifact, body io.Reader) (event.Artifact, event.Head, error) {
	if err := l.readable(ctx, session); err != nil {
		return a, event.Head{}, err
	}
	ref, err := l.PutBlob(ctx, body)
	if err != nil {
		return a, event.Head{}, fmt.Errorf("store artifact %q: %w", a.Name, err)
	}
	a.Body = ref
	head, err := l.Append(ctx, session, expect, event.New(a))
	return a, head, err
}

// OpenArtifact opens the body of an artifact for reading, as OpenBlob does. An artifact
// without a body is ErrBlobNotFound: it has parts, or is stored elsewhere.
func (l *Log) OpenArtifact(ctx context.Context, a event.Artifact) (io.ReadCloser, error) {
	if a.Body.Blob == "" && len(a.Parts) > 0 {
		return nil, fmt.Errorf("artifact %q has %d parts and no body: %w", a.Name, len(a.Parts), ErrBlobNotFound)
	}
	if a.Body.Blob == "" {
		return nil, fmt.Errorf("artifact %q is stored elsewhere (%s): %w", a.Name, a.URI, ErrBlobNotFound)
	}
	return l.OpenBlob(ctx, a.Body.Blob)
}
