package engine

import "errors"

var (
	// ErrCycle: a session is its own ancestor. It comes in an eventlog.CorruptError.
	ErrCycle = errors.New("a session is its own ancestor")
	// ErrLineage: the parent of a session that may be a fork cannot be read. It comes with
	// eventlog.ErrInUse.
	ErrLineage = errors.New("lineage cannot be read")
)
