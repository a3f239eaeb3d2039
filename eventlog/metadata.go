package eventlog

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

type metadataKey struct{}

// contextMetadata is the metadata of a context: an object, or the error of encoding it.
type contextMetadata struct {
	value jsontext.Value
	err   error
}

// WithMetadata returns a context with metadata, which Append merges into each event.
// The event's own members win over members of the context; members of an inner
// context win over members of an outer one. WithMetadata encodes the values at once,
// with sorted names. If it cannot encode a value, Append fails with
// event.Rule("metadata"). A nil ctx stays nil, and Append refuses it.
func WithMetadata(ctx context.Context, metadata map[string]any) context.Context {
	if ctx == nil {
		return nil
	}
	outer, _ := ctx.Value(metadataKey{}).(contextMetadata)
	if outer.err != nil || len(metadata) == 0 {
		return ctx
	}
	value, err := json.Marshal(metadata, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		err = fmt.Errorf("%w: %w", event.Rule("metadata"), err)
		return context.WithValue(ctx, metadataKey{}, contextMetadata{err: err})
	}
	merged := event.Event{Metadata: value}
	err = merged.MergeMetadata(outer.value)
	return context.WithValue(ctx, metadataKey{}, contextMetadata{value: merged.Metadata, err: err})
}

// metadataFrom returns the metadata of a context: an object, or nil.
func metadataFrom(ctx context.Context) (jsontext.Value, error) {
	m, _ := ctx.Value(metadataKey{}).(contextMetadata)
	return m.value, m.err
}
