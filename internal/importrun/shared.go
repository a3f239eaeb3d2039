// Package importrun has the state that the files of one import share. A context carries it from
// interop.Import through a format to the packages that formats use.
package importrun

import (
	"context"
	"sync"
)

// shared are the values that the files of an import share.
type shared struct {
	mu     sync.Mutex
	values map[any]func() any
}

type sharedKey struct{}

// WithShared returns a context in which the files of an import share values. In a context
// that has shared values it changes nothing.
func WithShared(ctx context.Context) context.Context {
	if _, ok := ctx.Value(sharedKey{}).(*shared); ok {
		return ctx
	}
	return context.WithValue(ctx, sharedKey{}, &shared{values: map[any]func() any{}})
}

// Shared returns the value of a key for the import that ctx belongs to. The first file of
// the import that asks for it calls read, and the others get the same value: it is safe for
// concurrent use. Outside of a context of WithShared, each call calls read.
func Shared[K comparable, V any](ctx context.Context, key K, read func(context.Context, K) V) V {
	s, ok := ctx.Value(sharedKey{}).(*shared)
	if !ok {
		return read(ctx, key)
	}
	s.mu.Lock()
	once := s.values[key]
	if once == nil {
		once = sync.OnceValue(func() any { return read(ctx, key) })
		s.values[key] = once
	}
	s.mu.Unlock()
	return once().(V)
}
