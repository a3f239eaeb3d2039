package pgtest

import (
	"net/url"
	"testing"

	"github.com/convlog/convlog/internal/tcpproxy"
)

// Proxied starts a proxy in front of the server of a DSN, and returns the DSN through it.
// The proxy ends with the test.
func Proxied(t testing.TB, dsn string) (*tcpproxy.Proxy, string) {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := tcpproxy.New(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	at.Host = proxy.Addr()
	return proxy, at.String()
}
