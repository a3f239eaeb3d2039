package eventlog

import (
	"context"
	"fmt"
	"io"
)

// RecordArtifact appends an artifact_recorded event for a body that is kept
// elsewhere, or has been put as a blob.
func (l *Log) RecordArtifact(ctx context.Context, session string, expect Expect, a Artifact) (Head, error) {
	e, err := l.mint.NewEvent(a)
	if err != nil {
		return Head{}, err
	}
	return l.Append(ctx, session, expect, e)
}

// StoreArtifact keeps a body as a blob and appends the artifact_recorded event
// that refers to it. It returns the artifact with its body set. A body whose
// event could not be appended is left for gc.
func (l *Log) StoreArtifact(ctx context.Context, session string, expect Expect, a Artifact, body io.Reader) (Artifact, Head, error) {
	if err := CheckSessionID(session); err != nil {
		return a, Head{}, err
	}
	ref, err := l.PutBlob(ctx, body)
	if err != nil {
		return a, Head{}, fmt.Errorf("store artifact %q: %w", a.Name, err)
	}
	a.Body = ref
	head, err := l.RecordArtifact(ctx, session, expect, a)
	return a, head, err
}

// OpenArtifact opens the body of an artifact that was stored as a blob;
// ErrBlobNotFound if it is kept elsewhere.
func (l *Log) OpenArtifact(ctx context.Context, a Artifact) (io.ReadCloser, error) {
	if a.Body.Blob == "" {
		return nil, fmt.Errorf("artifact %q is kept elsewhere (%s): %w", a.Name, a.URI, ErrBlobNotFound)
	}
	return l.OpenBlob(ctx, a.Body.Blob)
}
