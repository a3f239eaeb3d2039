package storetest

import (
	"testing"

	"github.com/convlog/convlog/eventlog"
)

func TestMemory(t *testing.T) { Run(t, openMemory) }

// openMemory is the harness of the reference.
func openMemory(testing.TB) Harness {
	m := NewMemory()
	return Harness{
		Open:         func() (eventlog.Store, error) { return m.Handle(), nil },
		OpenReadOnly: func() (eventlog.Store, error) { return m.ReadOnly(), nil },
		Damage:       m.Damage,
	}
}
