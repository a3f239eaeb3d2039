package storetest

import (
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

func TestMemory(t *testing.T) { Run(t, openMemory) }

// openMemory is the harness of the reference.
func openMemory(testing.TB) Harness {
	m := memory.New()
	return Harness{
		Open:         func() (eventlog.Store, error) { return m.Handle(), nil },
		OpenReadOnly: func() (eventlog.Store, error) { return m.ReadOnly(), nil },
		Damage:       m.Damage,
	}
}
