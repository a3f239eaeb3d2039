package event

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
)

// The rules that payloads share. Each returns nil or an ErrInvalidPayload that
// names the member.

// firstError is the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// require refuses an empty member.
func require[T ~string](name string, value T) error {
	if value == "" {
		return fmt.Errorf("%w: %s is missing", ErrInvalidPayload, name)
	}
	return nil
}

// requireOneOf refuses a member that is not one of the allowed words.
func requireOneOf[T ~string](name string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%w: %s is %q, not one of %q", ErrInvalidPayload, name, line.Clip(string(value)), allowed)
}

// requireWord is requireOneOf for an open word: a newer program may write another one. A
// lenient append keeps it, and readers take it for the careful one.
func requireWord[T ~string](name string, value T, known ...T) error {
	if err := requireOneOf(name, value, known...); err != nil {
		return fmt.Errorf("%w: %w", unknownWord, err)
	}
	return nil
}

// knownWord returns value, or the careful word if this program does not know value.
func knownWord[T ~string](value, careful T, known []T) T {
	if slices.Contains(known, value) {
		return value
	}
	return careful
}

// requireID refuses the zero id.
func requireID(name string, id interface{ IsZero() bool }) error {
	if id.IsZero() {
		return fmt.Errorf("%w: %s is missing", ErrInvalidPayload, name)
	}
	return nil
}

// requireMin refuses a number below least.
func requireMin[T int | int64](name string, n, least T) error {
	if n < least {
		return fmt.Errorf("%w: %s is %d, at least %d", ErrInvalidPayload, name, n, least)
	}
	return nil
}

// requireDigest refuses a malformed digest; an empty one is absent.
func requireDigest(name string, d Digest) error {
	if d != "" && !d.valid() {
		return fmt.Errorf("%w: %s is %q, not a digest", ErrInvalidPayload, name, line.Clip(string(d)))
	}
	return nil
}

// requireObject refuses a raw value that is present and no object.
func requireObject(name string, value jsontext.Value) error {
	if value != nil && value.Kind() != jsontext.KindBeginObject {
		return fmt.Errorf("%w: %s is not an object", ErrInvalidPayload, name)
	}
	return nil
}

func requireExtra(extra jsontext.Value) error { return requireObject("extra", extra) }
