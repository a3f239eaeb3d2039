package memory_test

import (
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Harness {
		s := memory.New()
		return storetest.Harness{
			Open:         func() (eventlog.Store, error) { return s.Handle(), nil },
			OpenReadOnly: func() (eventlog.Store, error) { return s.ReadOnly(), nil },
			Damage:       s.Damage,
		}
	})
}
