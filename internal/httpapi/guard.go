package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// CheckLocal refuses a request that does not come from this machine, that names another host
// (a web site whose name was bound to 127.0.0.1), or that a page of another origin sent.
func CheckLocal(r *http.Request) *Problem {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return NewProblem(http.StatusForbidden, "the request does not come from this machine", "give the handler a function that authorizes requests")
	}
	if !localHost(r.Host) {
		return NewProblem(http.StatusForbidden, "the host of the request is not this machine", "use localhost or 127.0.0.1")
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return NewProblem(http.StatusForbidden, "a page of another origin sent the request", "send it from a page of this server, or from a program")
	}
	return nil
}

// localHost reports whether a Host header names this machine.
func localHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return ip.IsLoopback()
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
