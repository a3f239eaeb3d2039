package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/httpapi"
)

// guard decides who may send which request.
type guard struct {
	token string
	// cookie is the value of the cookie: another secret than the token, which programs have.
	cookie string
	// name is the host of this handler alone, below localhost.
	name    string
	origins []string
	write   bool // the API may change sessions
}

// tokenBytes is the length of a token: 256 bits.
const tokenBytes = 32

func newGuard(o Options) (*guard, error) {
	g := &guard{token: cmp.Or(o.Token, base64.RawURLEncoding.EncodeToString(random(tokenBytes))), write: o.Write}
	sum := hmac.New(sha256.New, []byte(g.token))
	sum.Write([]byte("cookie"))
	g.cookie = base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
	g.name = "log-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random(10))) + ".localhost"
	for _, origin := range o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("%q is not an origin, as https://log.example.org is", origin)
		}
		g.origins = append(g.origins, strings.ToLower(u.Scheme+"://"+u.Host))
	}
	return g, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// url is the address of the first page with the token.
func (g *guard) url(address string, own bool) string {
	if len(g.origins) > 0 {
		return g.origins[0] + "/?token=" + g.token
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, ""
	}
	if own {
		host = g.name
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	}
	return "http://" + host + "/?token=" + g.token
}

// secure sets the headers of every answer.
func secure(header http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"X-Frame-Options": "DENY",
	} {
		header.Set(name, value)
	}
}

// ownOrigin is the origin of the server as the client named it; ok is false if the name is of
// another server. A web site can bind its own name to this address, and then its pages could
// read the answers.
func (g *guard) ownOrigin(r *http.Request) (origin string, ok bool) {
	host := strings.ToLower(r.Host)
	for _, origin := range g.origins {
		if _, at, _ := strings.Cut(origin, "://"); at == host {
			return origin, true
		}
	}
	if len(g.origins) > 0 {
		return "", false
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	if name != g.name && name != "localhost" && (err != nil || !ip.IsLoopback()) {
		return "", false
	}
	if r.TLS != nil {
		return "https://" + host, true
	}
	return "http://" + host, true
}

// checkOrigin refuses a request for another host, and one that a page of another origin sent.
// A person may follow a link from anywhere.
func (g *guard) checkOrigin(r *http.Request) *httpapi.Problem {
	own, ok := g.ownOrigin(r)
	if !ok {
		return httpapi.NewProblem(http.StatusMisdirectedRequest, "the request is for another host", "open the address that logtool serve printed")
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != own {
		return httpapi.NewProblem(http.StatusForbidden, "a page of another origin sent the request", "send it from a page of this server, or from a program without Origin")
	}
	site, read := r.Header.Get("Sec-Fetch-Site"), isRead(r)
	navigates := read && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if site != "" && site != "same-origin" && site != "none" && !navigates {
		return httpapi.NewProblem(http.StatusForbidden, "a page of another site sent the request", "send it from a page of this server, or from a program")
	}
	return nil
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// cookieName is the name of the cookie. Browsers send the cookies of a host to all its ports, so
// the name has the port.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "default"
	}
	return "convlog-" + port
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// exchange answers a request that has the token in its address: it sets the cookie, and leads to
// the address without the token. A redirect would keep a strict cookie from a browser that came
// from another site.
func (g *guard) exchange(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if !query.Has("token") || r.Method != http.MethodGet || !equal(query.Get("token"), g.token) {
		return false
	}
	own, _ := g.ownOrigin(r)
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: g.cookie, Path: "/", HttpOnly: true,
		Secure: strings.HasPrefix(own, "https:"), SameSite: http.SameSiteStrictMode})
	query.Del("token")
	next := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}
	to := next.EscapedPath()
	if next.RawQuery != "" {
		to += "?" + next.RawQuery
	}
	to = "/" + strings.TrimLeft(to, "/") // an address of this server
	write(w, "text/html; charset=utf-8", http.StatusOK, []byte(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>convlog</title><link rel="icon" href="/icon.svg">`+
		`<meta http-equiv="refresh" content="0;url=`+template.HTMLEscapeString(to)+`"><p><a href="`+template.HTMLEscapeString(to)+`">Go on</a></p></html>`))
	return true
}

// authorize refuses a request without the token or the cookie. On a server for writing, programs
// with the token may write with the API, and people with the forms of its pages, which browsers
// send with their origin.
func (g *guard) authorize(r *http.Request) *httpapi.Problem {
	switch {
	case !g.bearer(r) && !g.hasCookie(r):
		return httpapi.NewProblem(http.StatusUnauthorized, "the request has no token of this server", "open the address that logtool serve printed when it started, or send Authorization: Bearer TOKEN")
	case isRead(r):
		return nil
	case !g.write:
		return httpapi.NewProblem(http.StatusForbidden, "this server changes nothing", "start it with logtool serve --write, or use the commands of logtool")
	case strings.HasPrefix(r.URL.Path, agentsPath+"/") && (g.bearer(r) || r.Header.Get("Origin") != "" && r.Header.Get("Sec-Fetch-Site") != "none"):
		return nil // checkOrigin has compared the origin
	case !g.bearer(r) || !strings.HasPrefix(r.URL.Path, apiPath+"/"):
		return httpapi.NewProblem(http.StatusForbidden, "only programs and the forms of "+agentsPath+" change sessions", "use such a form, or send Authorization: Bearer TOKEN to a path below "+apiPath)
	}
	return nil
}

func (g *guard) bearer(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && equal(token, g.token)
}

func (g *guard) hasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r)), func(c *http.Cookie) bool { return equal(c.Value, g.cookie) })
}
