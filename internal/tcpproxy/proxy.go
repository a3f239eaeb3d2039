// Package tcpproxy is a network between the clients and the server of a test. It delays
// bytes, holds them back, cuts connections, and swallows answers.
package tcpproxy

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy passes TCP connections on to a server. All methods may be called concurrently.
type Proxy struct {
	server string
	listen net.Listener
	done   sync.WaitGroup

	mu      sync.Mutex
	delay   time.Duration
	refuse  bool          // new connections are closed at once
	swallow bool          // bytes of the server are dropped
	stalled chan struct{} // closed when bytes pass again; nil while they pass
	conns   map[net.Conn]struct{}
}

// New returns a proxy for the server at an address. It listens on the loopback
// interface until Close.
func New(server string) (*Proxy, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{server: server, listen: listen, conns: make(map[net.Conn]struct{})}
	p.done.Go(p.accept)
	return p, nil
}

// Addr is the address of the proxy.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// Delay delays all bytes, in both directions, by d each.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Swallow drops the bytes that the server sends from now on, or stops to do so. The
// bytes of clients still reach the server.
func (p *Proxy) Swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = on
}

// Stall holds all bytes back, in both directions, like a network that is parted, or
// stops to do so. Then the bytes pass.
func (p *Proxy) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.stalled == nil:
		p.stalled = make(chan struct{})
	case !on && p.stalled != nil:
		close(p.stalled)
		p.stalled = nil
	}
}

// Refuse closes new connections at once, or stops to do so.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.Refuse(true)
	p.Stall(false)
	err := p.listen.Close()
	p.Cut()
	p.done.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.done.Go(func() { p.connect(client) })
		}
	}
}

// connect passes a connection on, in both directions.
func (p *Proxy) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.join(client, server) {
		return
	}
	defer p.leave(client, server)
	var both sync.WaitGroup
	for _, way := range []struct {
		from, to net.Conn
		answers  bool
	}{{client, server, false}, {server, client, true}} {
		both.Go(func() {
			p.pass(way.from, way.to, way.answers)
			_ = way.from.Close()
			_ = way.to.Close()
		})
	}
	both.Wait()
}

func (p *Proxy) join(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
	return !p.refuse
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}

// pass copies bytes until one of the connections ends.
func (p *Proxy) pass(from, to net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		delay, stalled := p.delay, p.stalled
		p.mu.Unlock()
		time.Sleep(delay)
		if stalled != nil {
			<-stalled
		}
		p.mu.Lock()
		drop := answers && p.swallow
		p.mu.Unlock()
		if n > 0 && !drop {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
