package ownstore

import (
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/store/storetest"
)

func open(testing.TB) storetest.Harness {
	data := new(Data)
	return storetest.Harness{Open: func() (eventlog.Store, error) { return New(data), nil }}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestLog(t *testing.T) { logtest.Run(t, open) }
