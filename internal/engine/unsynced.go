package engine

import "context"

type unsynced struct{}

// SetUnsynced returns the context of an append that need not wait for the disk, whatever the
// sync policy of the store, or of one that follows the policy. The append survives the death
// of the process. A loss of power may lose it, unless a later append to the session is durable.
func SetUnsynced(ctx context.Context, on bool) context.Context {
	if Unsynced(ctx) == on {
		return ctx
	}
	return context.WithValue(ctx, unsynced{}, on)
}

// Unsynced reports whether an append need not wait for the disk. A store may ignore it.
func Unsynced(ctx context.Context) bool {
	on, _ := ctx.Value(unsynced{}).(bool)
	return on
}
