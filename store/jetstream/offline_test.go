package jetstream_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
)

// The first append waits for a server of the cluster that is not up yet.
func TestServerStartsLate(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Nodes: 3})
	late := servers.Nodes[2]
	if err := late.Kill(); err != nil {
		t.Fatal(err)
	}
	log := openLog(t, jetstream.Options{Replicas: 3, Connect: servers.Connect})
	stored := make(chan error, 1)
	go func() {
		_, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello"))
		stored <- err
	}()
	if err := late.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	suite.CheckEvents(t, log, "s", 1)
}
