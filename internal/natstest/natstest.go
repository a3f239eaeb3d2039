// Package natstest gives tests NATS servers with JetStream: one node or a cluster. Each
// node is a process of its own, so that it can be killed and stopped, and the race
// detector of a test reports races of the test only.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options say how nodes run. The zero value is one node.
type Options struct {
	Nodes     int           // how many; 0 is one
	Proxied   bool          // routes and clients pass through proxies: see Node.Isolate and Node.Clients
	Settings  string        // lines of the configuration of every node
	JetStream string        // lines of its block jetstream, for example "sync_interval: always" or "enabled: false"
	Client    []nats.Option // of all connections, for example credentials
	Account   Account       // of all clients
	Payload   int           // the most bytes of a message; 0 is the default of the server
}

// Cluster is the nodes of a test. The methods of a cluster and of its nodes may be
// called concurrently, except that a node is started and ended by one goroutine.
type Cluster struct {
	Nodes  []*Node
	opts   Options
	folder string
}

// Start starts nodes that end with the test, and waits until they store messages. The short form
// of the tests has no private servers: the test is skipped.
func Start(t testing.TB, opts Options) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("the short form starts no private server")
	}
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("end the NATS servers: %v", err)
		}
	})
	return c
}

// attempts is how often New tries other ports: another program may take a port first.
const attempts = 5

// New starts nodes with files in a temporary folder, and waits until they store
// messages. The caller closes the cluster.
func New(opts Options) (*Cluster, error) {
	if _, err := program(); err != nil {
		return nil, fmt.Errorf("start NATS servers: %w", err)
	}
	opts.Nodes = max(opts.Nodes, 1)
	var errs error
	for range attempts {
		c, err := start(opts)
		if err == nil {
			return c, nil
		}
		errs = errors.Join(errs, err, c.Close())
	}
	return nil, fmt.Errorf("start NATS servers: %w", errs)
}

func start(opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts}
	var err error
	if c.folder, err = os.MkdirTemp("", "natstest-"); err != nil {
		return c, err
	}
	if err := c.addNodes(); err != nil {
		return c, err
	}
	for _, n := range c.Nodes {
		if err := n.launch(); err != nil {
			return c, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return c, c.Ready(ctx)
}

// addNodes makes the nodes, their ports, and the network between them.
func (c *Cluster) addNodes() error {
	ports, err := freePorts(2 * c.opts.Nodes)
	if err != nil {
		return err
	}
	for i := range c.opts.Nodes {
		c.Nodes = append(c.Nodes, &Node{
			Name: fmt.Sprintf("n%d", i+1), cluster: c, port: ports[2*i], routePort: ports[2*i+1],
		})
	}
	if c.opts.Proxied {
		if err := c.addProxies(); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if err := n.writeConfig(); err != nil {
			return err
		}
	}
	return nil
}

// startTime bounds the start of a node and of a cluster.
const startTime = 30 * time.Second

// Ready waits until every node runs, and the cluster can create a stream with a replica
// on each node.
func (c *Cluster) Ready(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.wait(ctx); err != nil {
			return err
		}
	}
	if len(c.Nodes) == 1 {
		return nil
	}
	nc, err := c.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	return c.try(ctx, nc)
}

// probe is the stream of Ready.
const probe = "NATSTEST"

func (c *Cluster) try(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: probe, Subjects: []string{"natstest"}, Replicas: len(c.Nodes), Storage: jetstream.MemoryStorage,
		})
		if err == nil {
			err = js.DeleteStream(ctx, probe)
		}
		return err
	})
}

// brief bounds one request of a loop that asks again.
const brief = 500 * time.Millisecond

// until calls fn until it succeeds. Its error at the end of ctx has the last error of fn.
func until(ctx context.Context, fn func(ctx context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, brief)
		err := fn(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// URL is the addresses of all nodes for clients, with commas. The addresses are of the
// proxies if there are some.
func (c *Cluster) URL() string {
	var urls []string
	for _, n := range c.Nodes {
		urls = append(urls, n.URL())
	}
	return strings.Join(urls, ",")
}

// Connect connects to the cluster. The options of Options.Client come before opts.
func (c *Cluster) Connect(opts ...nats.Option) (*nats.Conn, error) {
	opts = append(append([]nats.Option{}, c.opts.Client...), opts...)
	return nats.Connect(c.URL(), opts...)
}

// Leader waits until the majority of the nodes knows which node leads a stream, and returns
// that node. Its questions do not pass through the proxies.
func (c *Cluster) Leader(ctx context.Context, stream string) (leader *Node, err error) {
	err = until(ctx, func(ctx context.Context) error {
		leader, err = c.elected(ctx, stream)
		return err
	})
	return leader, err
}

// elected asks all nodes once.
func (c *Cluster) elected(ctx context.Context, stream string) (*Node, error) {
	names, errs := make([]string, len(c.Nodes)), make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		all.Go(func() { names[i], errs[i] = n.leaderOf(ctx, stream) })
	}
	all.Wait()
	votes := make(map[string]int)
	for _, name := range names {
		votes[name]++
	}
	for _, n := range c.Nodes {
		if 2*votes[n.Name] > len(c.Nodes) {
			return n, nil
		}
	}
	return nil, errors.Join(append(errs, fmt.Errorf("no majority knows a leader of stream %s", stream))...)
}

// Close ends the nodes and removes their files.
func (c *Cluster) Close() error {
	var errs error
	for _, n := range c.Nodes {
		if n.running() {
			errs = errors.Join(errs, n.Kill())
		}
		errs = errors.Join(errs, n.closeProxies())
	}
	return errors.Join(errs, os.RemoveAll(c.folder))
}
