package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
)

// keyData begins the message that tells a client the process of its connection.
var keyData = []byte{'K', 0, 0, 0, 12}

// pool serves clients like a pooler: it names a process of its own instead of the
// process of the server, which may change with each transaction.
func pool(t testing.TB, dsn string) string {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	server := at.Host
	go func() {
		for {
			client, err := listen.Accept()
			if err != nil {
				return
			}
			go servePooled(client, server)
		}
	}()
	at.Host = listen.Addr().String()
	return at.String()
}

func servePooled(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if i := bytes.Index(buf[:n], keyData); i >= 0 {
			buf[i+len(keyData)+3] ^= 1 // of the number of the process
		}
		if _, writing := client.Write(buf[:n]); err != nil || writing != nil {
			return
		}
	}
}

// A connection pooler loses locks and notifications, so the store refuses it.
func TestPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	if err := add(t, pool(t, dsn)); !errors.Is(err, postgres.ErrForeign) || !strings.Contains(err.Error(), "pooler") {
		t.Errorf("append: got error %v, want that there is a pooler", err)
	}
	if _, err := openLog(t, dsn, postgres.Options{ReadOnly: true}).Head(t.Context(), "s"); !errors.Is(err, postgres.ErrNoLog) {
		t.Errorf("got error %v: the pooler's client created tables", err)
	}
}

// A call waits for a free connection, as long as its context allows.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	dsn := with(t, pgtest.DSN(t), "pool_max_conns", "1")
	if err := add(t, dsn); err != nil {
		t.Fatal(err)
	}
	log := openLog(t, dsn)
	begun, stored := make(chan struct{}), make(chan error, 1)
	body := &slowBody{begun: begun, pass: make(chan struct{})}
	go func() {
		_, err := log.PutBlob(t.Context(), body) // it has the connection
		stored <- err
	}()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := log.Head(short, "s"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("head: got error %v, want an exceeded deadline", err)
	}
	if _, err := log.Append(short, "s", eventlog.Any(), event.UserMessage("hello")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: got error %v, want an exceeded deadline", err)
	}
	close(body.pass)
	if _, err := log.Head(t.Context(), "s"); err != nil {
		t.Errorf("head, with a free connection: %v", err)
	}
	if err := <-stored; err != nil {
		t.Errorf("put blob: %v", err)
	}
}

// slowBody is a body whose second piece comes when pass is closed.
type slowBody struct {
	sent  int
	begun chan<- struct{} // closed when the second piece is asked for
	pass  chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	const piece = 1 << 20
	switch {
	case b.sent < piece:
		n := min(len(p), piece-b.sent)
		b.sent += n
		return n, nil
	case b.begun != nil:
		close(b.begun)
		b.begun = nil
		<-b.pass
	}
	return 0, io.EOF
}

// The clock of the server jumps over the end of a lease: its holder learns that it has
// lost the lease, and another one gets it.
func TestLeaseClockJump(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	const leaseTime = 3 * time.Second
	log := openLog(t, dsn, postgres.Options{LeaseTime: leaseTime})
	leaser := log.Store().(eventlog.Leaser)
	first, err := leaser.Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	sql(t, dsn, `UPDATE %s.leases SET expires = expires - interval '1 hour'`)
	<-first.Lost()
	second, err := leaser.Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	// It jumps back: the next renewal ends the lease in time.
	sql(t, dsn, `UPDATE %s.leases SET expires = expires + interval '1 hour'`)
	server, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(3600)
	for ; left >= 60; time.Sleep(10 * time.Millisecond) {
		left, err = pgtest.Number(server, `SELECT extract(epoch FROM expires - clock_timestamp())::int FROM `+schema+`.leases`)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}
