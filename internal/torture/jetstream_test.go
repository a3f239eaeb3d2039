//go:build unix

package torture

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
)

// jetstreamBackend is a store on servers of NATS.
var jetstreamBackend = serverBackend("jetstream",
	func(url string) (eventlog.Store, error) { return jetstream.New(url, jetstreamOptions(false)) },
	func(url string) (eventlog.Store, error) { return jetstream.New(url, jetstreamOptions(true)) })

// jetstreamOptions let a lock end soon after its holder was killed. The power does not fail,
// so it does not matter that the servers sync rarely.
func jetstreamOptions(readOnly bool) jetstream.Options {
	return jetstream.Options{ReadOnly: readOnly, LeaseTime: testsize.Pick[time.Duration](1, 1, 2) * time.Second, Synced: true}
}

// newNATSFixture returns a fixture whose store is on servers, with options in the URL.
func newNATSFixture(t *testing.T, servers *natstest.Cluster, options string) *fixture {
	s := newServerFixture(t, jetstreamBackend, servers.URL()+options)
	s.serverStacks = servers.Stacks
	return s
}

// sessions is the stream of the sessions of a log with one shard.
const sessions = "convlog_0"

// One NATS server is killed at any moment while processes write, and starts again.
func TestKillNode(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{})
	s := newNATSFixture(t, servers, "")
	restart := func(*group) {
		s.must(servers.Nodes[0].Kill())
		s.must(servers.Nodes[0].Start())
	}
	endure(t, s, slices.Repeat([]func(*group){restart}, max(*killsFlag/20, 1))...)
}

// Processes that write to one store on a NATS server are killed at any moment.
func TestKillJetStream(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{})
	c := newNATSFixture(t, servers, "").startGroup(groupSize, job{})
	c.killMany(min(killsPerStore, max(*killsFlag/2, groupSize+1)))
	t.Logf("%d kills, %d of them within a step; %d events acknowledged, none lost", c.killed, c.inStep, c.ledger.events())
}

// A cluster of three servers loses one at a time, or its network, while processes write.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Nodes: 3, Proxied: true})
	s := newNATSFixture(t, servers, "?replicas=3")
	x := cluster{s, servers}
	incidents := []func(*group){x.killFollower, x.cut, x.swallow, x.part, x.killLeader, x.stopLeader}
	endure(t, s, incidents[:testsize.Pick(1, 3, len(incidents))]...)
}

// A leader that is parted from the other servers stores nothing for its clients, who get an
// error at their deadline. The others go on.
func TestIsolatedLeader(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Nodes: 3, Proxied: true})
	s := newNATSFixture(t, servers, "?replicas=3")
	x := cluster{s, servers}
	log := s.backend.log(s.dir)
	hello := func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := log.Append(ctx, session, eventlog.Any(), event.UserMessage("hello"))
		return err
	}
	s.must(hello(s.ctx, log, "s"))
	s.must(log.Close())
	leader, others := x.leader(), ""
	for _, n := range servers.Nodes {
		if n != leader {
			others += "," + n.URL()
		}
	}
	open := func(url string) *eventlog.Log {
		store, err := jetstream.New(url, jetstreamOptions(false))
		s.must(err)
		return eventlog.Open(store)
	}
	minority, majority := open(leader.URL()), open(others[1:])
	leader.Isolate()
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	if err := hello(ctx, minority, "alone"); err == nil {
		t.Error("an isolated server acknowledges an append")
	}
	s.must(minority.Close())
	for err := hello(s.ctx, majority, "s"); err != nil; err = hello(s.ctx, majority, "s") {
		if !isOutage(err) {
			t.Fatal(err)
		}
	}
	leader.Join()
	if head, err := majority.Head(s.ctx, "alone"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the isolated server has stored up to %v, %v", head, err)
	}
	s.must(majority.Close())
}

// cluster is three servers under a store.
type cluster struct {
	*fixture
	servers *natstest.Cluster
}

func (x *cluster) leader() *natstest.Node { return x.leaderOf(sessions) }

func (x *cluster) leaderOf(stream string) *natstest.Node {
	n, err := x.servers.Leader(x.ctx, stream)
	x.must(err)
	return n
}

// follower returns a node that does not lead the stream of the sessions. In the smaller forms
// it leads no stream: an election takes up to ten seconds.
func (x *cluster) follower() *natstest.Node {
	leaders := []*natstest.Node{x.leader()}
	if testsize.Of() < testsize.Long {
		leaders = append(leaders, x.leaderOf("convlog_control"))
	}
	for _, n := range x.servers.Nodes {
		if !slices.Contains(leaders, n) {
			return n
		}
	}
	panic("a cluster has more nodes than streams")
}

// without waits for acknowledgements while a node is away.
func (x *cluster) without(c *group, what string, away, back func() error) {
	since := time.Now()
	x.must(away())
	c.waitAcknowledged(groupSize*writersPerProcess + 1) // one of them began after that
	x.Logf("%s: a step that began then was acknowledged after %v", what, time.Since(since).Round(time.Millisecond))
	x.must(back())
}

func (x *cluster) killLeader(c *group) {
	n := x.leader()
	x.without(c, "leader killed", n.Kill, n.Start)
}

func (x *cluster) killFollower(c *group) {
	n := x.follower()
	x.without(c, "follower killed", n.Kill, n.Start)
}

// stopLeader stops the leader, which later continues as if no time had passed.
func (x *cluster) stopLeader(c *group) {
	n := x.leader()
	x.without(c, "leader stopped", n.Pause, n.Continue)
}

func (x *cluster) each(fn func(n *natstest.Node)) {
	for _, n := range x.servers.Nodes {
		fn(n)
	}
}

func (x *cluster) wait() { time.Sleep(time.Duration(x.random.IntN(50)) * time.Millisecond) }

// cut closes every connection of clients.
func (x *cluster) cut(*group) { x.each(func(n *natstest.Node) { n.Clients().Cut() }) }

// swallow loses answers of messages that are stored.
func (x *cluster) swallow(*group) {
	x.each(func(n *natstest.Node) { n.Clients().Swallow(true) })
	x.wait()
	x.each(func(n *natstest.Node) {
		n.Clients().Cut()
		n.Clients().Swallow(false)
	})
}

// part parts the clients from all servers.
func (x *cluster) part(*group) {
	x.each(func(n *natstest.Node) { n.Clients().Stall(true) })
	x.wait()
	x.each(func(n *natstest.Node) {
		n.Clients().Cut()
		n.Clients().Stall(false)
	})
}
