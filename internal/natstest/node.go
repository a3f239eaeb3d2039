package natstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/internal/tcpproxy"
)

// Node is a server. Its files outlive Kill.
type Node struct {
	Name string // the name that JetStream has for it

	cluster         *Cluster
	account         string // of the test, if the server is shared
	port, routePort int
	clients         *tcpproxy.Proxy
	routes          map[*Node]*tcpproxy.Proxy // from this node to the others

	mu      sync.Mutex
	process *exec.Cmd     // of a node that runs
	ended   chan struct{} // closed after the end of the process
}

func (n *Node) folder() string { return filepath.Join(n.cluster.folder, n.Name) }

func (n *Node) config() string { return n.folder() + ".conf" }

// writeConfig writes the configuration of a node into a file.
func (n *Node) writeConfig() error {
	opts := n.cluster.opts
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %s\n", n.Name)
	fmt.Fprintf(&b, "listen: 127.0.0.1:%d\n", n.port)
	if n.clients != nil {
		fmt.Fprintf(&b, "client_advertise: %q\n", n.clients.Addr())
	}
	fmt.Fprintf(&b, "jetstream {\n\tstore_dir: %q\n%s\n}\n", n.folder(), opts.JetStream)
	if opts.Nodes > 1 {
		fmt.Fprintf(&b, "cluster {\n\tname: natstest\n\tlisten: 127.0.0.1:%d\n", n.routePort)
		if opts.Proxied {
			// Nodes learn addresses from each other. Nothing listens at this one, so all
			// routes pass through the proxies.
			b.WriteString("\tadvertise: \"127.0.0.1:1\"\n")
		}
		fmt.Fprintf(&b, "\troutes: [%s]\n}\n", strings.Join(n.routeURLs(), ", "))
	}
	if opts.Payload > 0 {
		fmt.Fprintf(&b, "max_payload: %d\n", opts.Payload)
	}
	if !opts.Account.isZero() {
		b.WriteString(opts.Account.config())
	}
	fmt.Fprintln(&b, opts.Settings)
	return os.WriteFile(n.config(), []byte(b.String()), 0o600)
}

// routeURLs are the addresses of the other nodes.
func (n *Node) routeURLs() []string {
	var urls []string
	for _, other := range n.cluster.Nodes {
		switch {
		case other == n:
		case n.routes != nil:
			urls = append(urls, fmt.Sprintf("%q", "nats://"+n.routes[other].Addr()))
		default:
			urls = append(urls, fmt.Sprintf("%q", "nats://"+other.routeAddr()))
		}
	}
	return urls
}

func (n *Node) addr() string      { return fmt.Sprintf("127.0.0.1:%d", n.port) }
func (n *Node) routeAddr() string { return fmt.Sprintf("127.0.0.1:%d", n.routePort) }

// URL is the address of the node for clients: its proxy if there is one.
func (n *Node) URL() string {
	if n.clients != nil {
		return "nats://" + n.user() + n.clients.Addr()
	}
	return n.DirectURL()
}

// DirectURL is the address of the node behind its proxy.
func (n *Node) DirectURL() string { return "nats://" + n.user() + n.addr() }

// user is the user and the password in the addresses of a shared server.
func (n *Node) user() string {
	if n.account == "" {
		return ""
	}
	return n.account + ":" + n.account + "@"
}

// Folder is the folder with the files of JetStream. On a shared server it has the files of the
// test only.
func (n *Node) Folder() string { return filepath.Join(n.folder(), "jetstream", n.account) }

func (n *Node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil
}

// Start starts a killed node again, and waits until it takes connections.
func (n *Node) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return until(ctx, func(context.Context) error {
		if !n.running() {
			if err := n.launch(); err != nil {
				return err
			}
		}
		return n.wait(ctx)
	})
}

// wait waits until the node takes connections.
func (n *Node) wait(ctx context.Context) error {
	n.mu.Lock()
	ended := n.ended
	n.mu.Unlock()
	return until(ctx, func(ctx context.Context) error {
		select {
		case <-ended:
			return n.report()
		default:
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", n.addr())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// Kill kills a node without a farewell, and waits for its end. What it has only in memory
// is lost.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return fmt.Errorf("node %s does not run", n.Name)
	}
	err := n.process.Process.Kill()
	<-n.ended
	n.process = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// leaderOf returns the name of the node that leads a stream, as this node knows it.
func (n *Node) leaderOf(ctx context.Context, stream string) (string, error) {
	nc, err := nats.Connect(n.DirectURL(), append([]nats.Option{nats.Timeout(brief), nats.NoReconnect()}, n.cluster.opts.Client...)...)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return "", err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return "", err
	}
	if info := s.CachedInfo(); info.Cluster != nil {
		return info.Cluster.Leader, nil
	}
	return n.Name, nil
}

// freePorts returns ports of the loopback interface that are free now, all different.
func freePorts(count int) (ports []int, err error) {
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
