package natstest

import (
	"errors"

	"github.com/convlog/convlog/internal/tcpproxy"
)

// addProxies puts a proxy before each node for its clients, and one into each route.
func (c *Cluster) addProxies() error {
	for _, n := range c.Nodes {
		var err error
		if n.clients, err = tcpproxy.New(n.addr()); err != nil {
			return err
		}
		n.routes = make(map[*Node]*tcpproxy.Proxy)
		for _, other := range c.Nodes {
			if other == n {
				continue
			}
			if n.routes[other], err = tcpproxy.New(other.routeAddr()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *Node) closeProxies() error {
	var errs error
	for _, p := range n.routes {
		if p != nil {
			errs = errors.Join(errs, p.Close())
		}
	}
	if n.clients != nil {
		errs = errors.Join(errs, n.clients.Close())
	}
	return errs
}

// Clients is the proxy between the clients and the node. Without Options.Proxied it is
// nil.
func (n *Node) Clients() *tcpproxy.Proxy { return n.clients }

// Isolate cuts a proxied node off from the other nodes. Its clients still reach it.
func (n *Node) Isolate() {
	n.eachRoute(func(p *tcpproxy.Proxy) {
		p.Refuse(true)
		p.Cut()
	})
}

// Join ends Isolate.
func (n *Node) Join() { n.eachRoute(func(p *tcpproxy.Proxy) { p.Refuse(false) }) }

// eachRoute calls fn for every proxy between the node and the others.
func (n *Node) eachRoute(fn func(*tcpproxy.Proxy)) {
	for _, other := range n.cluster.Nodes {
		if other != n {
			fn(n.routes[other])
			fn(other.routes[n])
		}
	}
}
