package event

import (
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/mint"
)

var ids mint.Minter

// NewID mints the id of an event, with the system's clock and randomness. The ids of one
// program increase strictly.
func NewID() ulid.ULID { return ids.NewID() }
