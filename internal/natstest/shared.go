package natstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/internal/tcpproxy"
)

// accounts is how many tests share a server.
const accounts = 64

// shared are the shared servers of this process. The newest one has free accounts.
var shared struct {
	mu      sync.Mutex
	servers []*Cluster
	tests   int
}

// Shared returns a server that the tests of this process share, with an account for this test:
// no other test sees its streams. If it is proxied, the clients pass through a proxy of the
// test. The node cannot be killed, stopped or isolated. TestMain calls CloseShared in the end.
func Shared(t testing.TB, proxied bool) *Cluster {
	t.Helper()
	c, err := share()
	if err == nil && proxied {
		c.Nodes[0].clients, err = tcpproxy.New(c.Nodes[0].addr())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Nodes[0].closeProxies(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// share returns a shared server with an account of its own.
func share() (*Cluster, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	n := shared.tests % accounts
	if n == 0 {
		server, err := New(Options{Settings: accountConfig(), Payload: 8 << 20}) // some laws append more than the default, 1 MiB
		if err != nil {
			return nil, err
		}
		shared.servers = append(shared.servers, server)
	}
	shared.tests++
	server := shared.servers[len(shared.servers)-1]
	// The server tells clients its address, which is not the one of the proxy.
	c := &Cluster{folder: server.folder, opts: Options{Nodes: 1, Client: []nats.Option{nats.IgnoreDiscoveredServers()}}}
	c.Nodes = []*Node{{Name: server.Nodes[0].Name, cluster: c, port: server.Nodes[0].port, account: accountName(n)}}
	return c, nil
}

// accountName is the name of an account of a shared server, of its user, and the password.
func accountName(n int) string { return fmt.Sprint("T", n) }

func accountConfig() string {
	var b strings.Builder
	b.WriteString("accounts {\n")
	for n := range accounts {
		fmt.Fprintf(&b, "\t%[1]s { jetstream: enabled, users: [ { user: %[1]q, password: %[1]q } ] }\n", accountName(n))
	}
	b.WriteString("}\n")
	return b.String()
}

// CloseShared ends the shared servers.
func CloseShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	var errs error
	for _, c := range shared.servers {
		errs = errors.Join(errs, c.Close())
	}
	shared.servers, shared.tests = nil, 0
	return errs
}
