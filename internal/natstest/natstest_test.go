package natstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/internal/testsize"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newStream creates a stream with a replica on each node.
func newStream(t *testing.T, c *Cluster) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := c.Connect(nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: len(c.Nodes)}); err != nil {
		t.Fatal(err)
	}
	publish(t, js)
	return nc, js
}

// publish stores one message.
func publish(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	id := jetstream.WithMsgID(rand.Text()) // of a message that is sent again
	err := until(ctx, func(ctx context.Context) error {
		_, err := js.Publish(ctx, "s", []byte("x"), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// count returns the number of messages in a stream.
func count(t *testing.T, js jetstream.JetStream) (n uint64) {
	t.Helper()
	err := until(t.Context(), func(ctx context.Context) error {
		s, err := js.Stream(ctx, "S")
		if err == nil {
			n = s.CachedInfo().State.Msgs
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The files of a killed node outlive it, and its clients come back by themselves.
func TestKill(t *testing.T) {
	for name, opts := range map[string]Options{
		"direct": {}, "proxied": {Proxied: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := Start(t, opts)
			_, js := newStream(t, c)
			if err := c.Nodes[0].Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Nodes[0].Kill(); err == nil {
				t.Error("a killed node was killed again")
			}
			if err := c.Nodes[0].Start(); err != nil {
				t.Fatal(err)
			}
			if n := count(t, js); n != 1 {
				t.Errorf("%d messages are stored, want 1", n)
			}
		})
	}
}

// A cluster stores messages without one of its nodes: stopped, cut off or killed. The usual
// form stops a follower: to elect another leader takes seconds.
func TestCluster(t *testing.T) {
	c := Start(t, Options{Nodes: 3, Proxied: true})
	_, js := newStream(t, c)
	leader := leaderOf(t, c)
	follower := c.Nodes[0]
	if follower == leader {
		follower = c.Nodes[1]
	}
	if err := follower.Pause(); err != nil {
		t.Fatal(err)
	}
	leaveClients(follower)
	publish(t, js)
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	if name, err := follower.leaderOf(ctx, "S"); err == nil {
		t.Errorf("a stopped node answers %s", name)
	}
	if err := follower.Continue(); err != nil {
		t.Fatal(err)
	}
	follower.Clients().Refuse(false)
	stored := uint64(2)
	if testsize.Of() == testsize.Long {
		withoutLeader(t, c, js, leader, follower)
		stored += 2
	}
	if n := count(t, js); n != stored {
		t.Errorf("%d messages are stored, want %d", n, stored)
	}
}

// withoutLeader cuts the leader of the stream off, and then kills a follower.
func withoutLeader(t *testing.T, c *Cluster, js jetstream.JetStream, leader, follower *Node) {
	t.Helper()
	leader.Isolate()
	leaveClients(leader)
	publish(t, js)
	next := leaderOf(t, c)
	if next == leader {
		t.Error("a node that is cut off leads the stream")
	}
	leader.Join()
	if err := follower.Kill(); err != nil {
		t.Fatal(err)
	}
	leader.Clients().Refuse(false)
	publish(t, js)
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
}

// leaveClients moves the clients of a node to the others.
func leaveClients(n *Node) {
	n.Clients().Refuse(true)
	n.Clients().Cut()
}

func leaderOf(t *testing.T, c *Cluster) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	leader, err := c.Leader(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	return leader
}

// Tests of a shared server do not see each other's streams, and break the connections of
// their own proxies only.
func TestShared(t *testing.T) {
	first, second := Shared(t, true), Shared(t, false)
	nc, js := newStream(t, first)
	_, other := newStream(t, second)
	publish(t, other)
	first.Nodes[0].Clients().Refuse(true)
	first.Nodes[0].Clients().Cut()
	publish(t, other)
	first.Nodes[0].Clients().Refuse(false)
	for c, want := range map[jetstream.JetStream]uint64{js: 1, other: 3} {
		if n := count(t, c); n != want {
			t.Errorf("%d messages are stored, want %d", n, want)
		}
	}
	if url := nc.ConnectedUrl(); url != first.URL() {
		t.Errorf("the client is connected to %s, and not to the proxy %s", url, first.URL())
	}
	if first.Nodes[0].Folder() == second.Nodes[0].Folder() {
		t.Error("two tests have one folder")
	}
	if err := first.Nodes[0].Kill(); err == nil {
		t.Error("a shared server was killed")
	}
}

// Options.Settings and Options.JetStream are lines of the configuration.
func TestSettings(t *testing.T) {
	c := Start(t, Options{JetStream: "enabled: false", Settings: `authorization { user: "u", password: "p" }`, Client: []nats.Option{nats.UserInfo("u", "p")}})
	nc, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AccountInfo(t.Context()); err == nil {
		t.Error("JetStream is enabled")
	}
	if other, err := c.Connect(nats.UserInfo("u", "wrong")); err == nil {
		other.Close()
		t.Error("a wrong password was accepted")
	}
}
