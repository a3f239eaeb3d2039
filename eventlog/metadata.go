package eventlog

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// SetMetadata adds a member to e's metadata, or replaces it; the others stay as
// they are, byte for byte. value is anything that encodes as JSON; a
// jsontext.Value is taken verbatim. ErrInvalidMetadata says that the value
// cannot be encoded, or that the metadata so far is not an object. An event
// that is stored does not change in its store.
func (e *Event) SetMetadata(name string, value any) error {
	encoded, err := encodeMetadata(value)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalidMetadata, clip(name), err)
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return fmt.Errorf("%w: name %q: %w", ErrInvalidMetadata, clip(name), err)
	}
	members, err := metadataMembers(e.Metadata)
	if err != nil {
		return err
	}
	fresh := member{quoted: quoted, name: name, value: encoded}
	for i := range members {
		if members[i].name == name {
			fresh.quoted = members[i].quoted
			members[i] = fresh
			e.Metadata = joinMembers(members)
			return nil
		}
	}
	e.Metadata = joinMembers(append(members, fresh))
	return nil
}

func encodeMetadata(value any) (jsontext.Value, error) {
	if v, ok := value.(jsontext.Value); ok && isCompact(v) {
		return v, nil
	}
	return json.Marshal(value, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// MetadataValue is the value of one member of e's metadata, or of what redaction
// left of it. ok is false when there is none, or the metadata is not an object.
func (e *Event) MetadataValue(name string) (value jsontext.Value, ok bool) {
	metadata := e.Metadata
	if len(metadata) == 0 && e.Redacted() {
		metadata = e.keptMetadata()
	}
	members, err := metadataMembers(metadata)
	if err != nil {
		return nil, false
	}
	return find(members, name)
}

func metadataMembers(metadata jsontext.Value) ([]member, error) {
	if len(metadata) == 0 {
		return nil, nil
	}
	members, err := splitMembers(metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	return members, nil
}

// joinMembers is the object of members, without white space.
func joinMembers(members []member) jsontext.Value {
	object := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			object = append(object, ',')
		}
		object = append(append(append(object, m.quoted...), ':'), m.value...)
	}
	return append(object, '}')
}

// mergeMetadata adds to an event's own metadata the members of the context's
// that it lacks. Both are objects or empty; the values of both stay byte for
// byte, but for white space.
func mergeMetadata(ctxValue, own jsontext.Value) (jsontext.Value, error) {
	members, err := metadataMembers(own)
	if err != nil {
		return nil, err
	}
	inherited, err := metadataMembers(ctxValue)
	if err != nil {
		return nil, err
	}
	if len(members)+len(inherited) == 0 {
		return nil, nil
	}
	for _, m := range inherited {
		if _, taken := find(members, m.name); !taken {
			members = append(members, m)
		}
	}
	return joinMembers(members), nil
}

type metadataKey struct{}

// contextMetadata is what a context carries: an object, or why it is none.
type contextMetadata struct {
	value jsontext.Value
	err   error
}

// WithMetadata returns a context whose metadata Append merges into that of each
// event; the event's own members win, and those of an inner context over those
// of an outer one. The values are encoded at once, names sorted; a value that
// cannot be encoded makes Append fail with ErrInvalidMetadata.
func WithMetadata(ctx context.Context, metadata map[string]any) context.Context {
	outer, _ := ctx.Value(metadataKey{}).(contextMetadata)
	if outer.err != nil || len(metadata) == 0 {
		return ctx
	}
	value, err := json.Marshal(metadata, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
		return context.WithValue(ctx, metadataKey{}, contextMetadata{err: err})
	}
	merged, err := mergeMetadata(outer.value, value)
	return context.WithValue(ctx, metadataKey{}, contextMetadata{value: merged, err: err})
}

// metadataFrom is the metadata of a context: an object, or nil.
func metadataFrom(ctx context.Context) (jsontext.Value, error) {
	m, _ := ctx.Value(metadataKey{}).(contextMetadata)
	return m.value, m.err
}
