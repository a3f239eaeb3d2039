package eventlog

import (
	"context"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
)

// StoreArtifact stores a body as a blob and appends the artifact_recorded event
// that refers to it. It returns the artifact with its body set. If the append
// fails, the blob is left for garbage collection. To record a body that is stored
// elsewhere, append event.New(a).
func (l *Log) StoreArtifact(ctx context.Context, session string, expect Expect, a event.Artifact, body io.Reader) (event.Artifact, event.Head, error) {
	if err := event.CheckSessionID(session); err != nil {
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

// OpenArtifact opens the body of an artifact that is stored as a blob;
// ErrBlobNotFound if it is stored elsewhere.
func (l *Log) OpenArtifact(ctx context.Context, a event.Artifact) (io.ReadCloser, error) {
	if a.Body.Blob == "" {
		return nil, fmt.Errorf("artifact %q is stored elsewhere (%s): %w", a.Name, a.URI, ErrBlobNotFound)
	}
	return l.OpenBlob(ctx, a.Body.Blob)
}
