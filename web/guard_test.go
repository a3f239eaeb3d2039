package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/web"
)

// site is a server of pages over a log in memory.
type site struct {
	t     *testing.T
	log   *eventlog.Log
	url   string // without a token
	token string
}

func newSite(t *testing.T, o web.Options) *site {
	t.Helper()
	return siteOver(t, eventlog.Open(memory.New()), o)
}

// siteOver is a server of pages over a log, which it closes.
func siteOver(t *testing.T, log *eventlog.Log, o web.Options) *site {
	t.Helper()
	t.Cleanup(func() { _ = log.Close() })
	o.Prices = prices.Builtin()
	h, err := web.New(log, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	address := h.PlainURL(strings.TrimPrefix(server.URL, "http://"))
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, log: log, url: server.URL, token: u.Query().Get("token")}
}

func (s *site) add(session string, events ...event.Event) {
	s.t.Helper()
	if _, err := s.log.Append(s.t.Context(), session, eventlog.Any(), events...); err != nil {
		s.t.Fatal(err)
	}
}

// request is a request with headers, given as names and values in turn.
func (s *site) request(method, path string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// send sends a request with the token, unless it has another authority.
func (s *site) send(r *http.Request) (status int, body string) {
	s.t.Helper()
	if r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	return do(s.t, http.DefaultClient, r)
}

func do(t *testing.T, client *http.Client, r *http.Request) (status int, body string) {
	t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (s *site) page(path string) string {
	s.t.Helper()
	status, body := s.send(s.request("GET", path, "Accept", "text/html"))
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

const secretText = "the-words-of-a-session"

// A request without authority, of another host or of another origin learns nothing.
func TestRefusedRequests(t *testing.T) {
	s, other := newSite(t, web.Options{}), newSite(t, web.Options{})
	s.add("s", event.UserMessage(secretText))
	bearer := "Bearer " + s.token
	for _, c := range []struct {
		name    string
		status  int
		method  string
		path    string
		headers []string
	}{
		{"a name that a web site bound to this machine", http.StatusMisdirectedRequest, "GET", "/s/s", []string{"Host", "evil.example:80", "Authorization", bearer}},
		{"a name that ends like this machine", http.StatusMisdirectedRequest, "GET", "/s/s", []string{"Host", "localhost.evil.example", "Authorization", bearer}},
		{"the name of another server", http.StatusMisdirectedRequest, "GET", "/s/s", []string{"Host", "log-other.localhost", "Authorization", bearer}},
		{"no host", http.StatusMisdirectedRequest, "GET", "/s/s", []string{"Host", ":80", "Authorization", bearer}},
		{"the style of a page, for another host", http.StatusMisdirectedRequest, "GET", "/style.css", []string{"Host", "evil.example"}},
		{"a foreign origin", http.StatusForbidden, "GET", "/s/s", []string{"Origin", "https://evil.example", "Authorization", bearer}},
		{"the origin of a file", http.StatusForbidden, "GET", "/s/s", []string{"Origin", "null", "Authorization", bearer}},
		{"the origin of another port", http.StatusForbidden, "GET", "/s/s", []string{"Origin", "http://127.0.0.1:1", "Authorization", bearer}},
		{"an image on a page of another site", http.StatusForbidden, "GET", "/s/s", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Authorization", bearer}},
		{"a script on a page of another port", http.StatusForbidden, "GET", "/s/s", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script", "Authorization", bearer}},
		{"a frame on a page of another site", http.StatusForbidden, "GET", "/s/s", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe", "Authorization", bearer}},
		{"no token", http.StatusUnauthorized, "GET", "/s/s", []string{"Authorization", "Basic x"}},
		{"an empty token", http.StatusUnauthorized, "GET", "/s/s?token=", []string{"Authorization", "Bearer "}},
		{"the token of another start", http.StatusUnauthorized, "GET", "/s/s", []string{"Authorization", "Bearer " + other.token}},
		{"the token of another start, in the address", http.StatusUnauthorized, "GET", "/s/s?token=" + other.token, []string{"Authorization", "x"}},
		{"a cookie with the token", http.StatusUnauthorized, "GET", "/s/s", []string{"Cookie", "convlog-" + port(s.url) + "=" + s.token}},
		{"a write to a server that changes nothing", http.StatusForbidden, "POST", "/s/s", []string{"Authorization", bearer}},
		{"a delete", http.StatusForbidden, "DELETE", "/s/s", []string{"Authorization", bearer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := s.send(s.request(c.method, c.path, c.headers...))
			if status != c.status || strings.Contains(body, secretText) {
				t.Errorf("%d %s, want %d", status, body, c.status)
			}
		})
	}
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// Every request that writes is refused, also from the holder of the token.
func TestWrites(t *testing.T) {
	s := newSite(t, web.Options{})
	cookie := s.cookie()
	for _, c := range []struct {
		name    string
		headers []string
	}{
		{"a program", []string{"Authorization", "Bearer " + s.token}},
		{"a program with a foreign origin", []string{"Authorization", "Bearer " + s.token, "Origin", "https://evil.example"}},
		{"a page of the server", []string{"Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "same-origin"}},
		{"a cookie without an origin", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"}},
		{"a cookie without Sec-Fetch-Site", []string{"Cookie", cookie, "Origin", s.url}},
		{"a page of another port", []string{"Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "same-site"}},
		{"a page of another site", []string{"Cookie", cookie, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}},
		{"a bookmark", []string{"Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				for _, path := range []string{"/", "/s/s", "/s/s/verify?check=now", "/nothing"} {
					if status, body := s.send(s.request(method, path, c.headers...)); status != http.StatusForbidden {
						t.Errorf("%s %s: %d %s", method, path, status, body)
					}
				}
			}
		})
	}
}

// cookie exchanges the token for a cookie.
func (s *site) cookie() string {
	s.t.Helper()
	answer, err := http.DefaultClient.Do(s.request("GET", "/s/s?from=1&token="+s.token))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || strings.Contains(string(body), s.token) || !strings.Contains(string(body), `content="0;url=/s/s?from=1"`) {
		s.t.Errorf("the exchange answers %s (%v)", body, err)
	}
	cookies := answer.Cookies()
	if len(cookies) != 1 {
		s.t.Fatalf("%d cookies", len(cookies))
	}
	c := cookies[0]
	if c.Name != "convlog-"+port(s.url) || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Value == s.token || c.Domain != "" {
		s.t.Errorf("the cookie is %s", c)
	}
	return c.Name + "=" + c.Value
}

// One browser uses two servers of one host at the same time: each has its own cookie.
func TestTwoServersInOneBrowser(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	a, b := newSite(t, web.Options{}), newSite(t, web.Options{})
	for _, s := range []*site{a, b} {
		s.add("s", event.UserMessage("of "+s.url))
		if status, _ := do(t, browser, s.request("GET", "/?token="+s.token)); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	for _, s := range []*site{a, b} {
		if status, body := do(t, browser, s.request("GET", "/s/s")); status != http.StatusOK || !strings.Contains(body, "of "+s.url) {
			t.Errorf("%s: %d %s", s.url, status, body)
		}
	}
}

// Every answer forbids scripts of sessions, frames, other sites and caches.
func TestHeaders(t *testing.T) {
	s := newSite(t, web.Options{})
	s.add("s", event.UserMessage("x"))
	for _, path := range []string{"/", "/s/s", "/s/none", "/style.css", "/page.js", "/nothing", "/?token=" + s.token, "/s/s/entries", "/s/s/stream?from=9"} {
		r := s.request("GET", path, "Authorization", "Bearer "+s.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
}

// A path leads to a session or to a problem, and never to a file.
func TestPaths(t *testing.T) {
	s := newSite(t, web.Options{})
	for _, id := range []string{"a b", "ä", "100%", "a?b#c"} {
		s.add(id, event.UserMessage("words of "+id))
		if body := s.page("/s/" + url.PathEscape(id)); !strings.Contains(body, "words of "+id) {
			t.Errorf("%q is not on its page", id)
		}
	}
	for _, path := range []string{"/s/..%2f..%2fetc%2fpasswd", "/s/%2e%2e", "/s/a%00b", "/../etc/passwd", "/s//a", "/s/a/body/sha256:..%2f..%2fx", "/s/a/body/x", "/s/none/e/1", "/s/a%20b/e/0", "/s/a%20b/e/99999999999999999999", "/s/a%20b?from=-1", "/s/a%20b?from=x",
		"/?sort=x", "/?since=x", "/search?q=%22", "/templates/sessions.html", "/?token=x"} {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r := s.request("GET", path, "Authorization", "Bearer "+s.token, "Accept", "text/html")
		status, body := do(t, client, r)
		if status >= 500 || strings.Contains(body, "root:") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
