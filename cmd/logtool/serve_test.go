package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	mathbig "math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// servedPages is a running logtool serve.
type servedPages struct {
	t     *testing.T
	notes *bytes.Buffer
	servedAt
	token string
	// client trusts the certificate, and finds the server at every name.
	client *http.Client
}

// servePages runs logtool serve on a store until the test ends. trust has the certificate.
func servePages(t *testing.T, store string, trust *x509.CertPool, args ...string) *servedPages {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s := &servedPages{t: t, notes: new(bytes.Buffer)}
	out, print := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- quietApp(strings.NewReader(""), print, s.notes, nil).run(ctx, append([]string{"--store", store, "serve", "--json", "--addr", address}, args...))
		_ = print.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("serve exits with %d: %s", code, s.notes)
		}
	})
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil || json.Unmarshal(bytes.TrimSpace(line[:n]), &s.servedAt) != nil {
		t.Fatalf("serve prints %q (%v) %s", line[:n], err, s.notes)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.token = u.Query().Get("token")
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// get sends a request with headers, given as names and values in turn.
func (s *servedPages) get(address string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// newCertificate writes a certificate of a name, and its key.
func newCertificate(t *testing.T, name string) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: mathbig.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), trust
}

// A server for other machines answers at the names of --expose only, and its cookie is for TLS
// only: with a certificate, and behind a proxy.
func TestServeExposed(t *testing.T) {
	store := filepath.Join(t.TempDir(), "log")
	if code := quiet().run(t.Context(), []string{"--store", store, "append", "s", "the words"}); code != 0 {
		t.Fatal(code)
	}
	cert, key, trust := newCertificate(t, "log.example.org")
	const origin = "https://log.example.org"
	for name, c := range map[string]struct {
		base string
		args []string
	}{
		"with TLS":       {origin, []string{"--tls-cert", cert, "--tls-key", key}},
		"behind a proxy": {"http://log.example.org", nil}, // a proxy ends TLS
	} {
		t.Run(name, func(t *testing.T) {
			s := servePages(t, store, trust, append(c.args, "--expose", origin, "--expose", "https://second.example.org")...)
			if !strings.HasPrefix(s.URL, origin+"/?token=") || s.PlainURL != "" {
				t.Errorf("serve prints %+v", s.servedAt)
			}
			answer, _ := s.get(c.base + "/?token=" + s.token)
			cookies := answer.Cookies()
			if len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
				t.Fatalf("%s, cookies %v", answer.Status, cookies)
			}
			if name == "with TLS" && answer.ProtoMajor != 2 {
				t.Errorf("the protocol is %s", answer.Proto)
			}
			cookie := cookies[0].Name + "=" + cookies[0].Value
			for _, r := range []struct {
				name    string
				status  int
				headers []string
			}{
				{"a page", http.StatusOK, []string{"Cookie", cookie}},
				{"a form of the page", http.StatusOK, []string{"Cookie", cookie, "Origin", origin}},
				{"the second name", http.StatusOK, []string{"Host", "second.example.org", "Cookie", cookie}},
				{"a program", http.StatusOK, []string{"Authorization", "Bearer " + s.token}},
				{"a name that a web site bound to the address", http.StatusMisdirectedRequest, []string{"Host", "evil.example", "Cookie", cookie}},
				{"the number of the address", http.StatusMisdirectedRequest, []string{"Host", "127.0.0.1", "Authorization", "Bearer " + s.token}},
				{"a name below localhost", http.StatusMisdirectedRequest, []string{"Host", "localhost", "Authorization", "Bearer " + s.token}},
				{"another port", http.StatusMisdirectedRequest, []string{"Host", "log.example.org:8443", "Cookie", cookie}},
				{"a page of another origin", http.StatusForbidden, []string{"Cookie", cookie, "Origin", "https://evil.example"}},
				{"a page of the second name", http.StatusForbidden, []string{"Cookie", cookie, "Origin", "https://second.example.org"}},
				{"a page without TLS", http.StatusForbidden, []string{"Cookie", cookie, "Origin", "http://log.example.org"}},
				{"no token", http.StatusUnauthorized, nil},
			} {
				answer, body := s.get(c.base+"/s/s", r.headers...)
				if answer.StatusCode != r.status || strings.Contains(body, "the words") != (r.status == http.StatusOK) {
					t.Errorf("%s: %s", r.name, answer.Status)
				}
			}
		})
	}
}

// Flags that would send the log over a network without TLS, or at any name, are refused.
func TestServeRefusesExposure(t *testing.T) {
	cert, key, _ := newCertificate(t, "log.example.org")
	_, other, _ := newCertificate(t, "log.example.org")
	const origin = "https://log.example.org"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"can be reached by other machines", []string{"--addr", "0.0.0.0:0"}},
		{"can be reached by other machines", []string{"--addr", ":0"}},
		{"give --tls-cert and --tls-key", []string{"--addr", "0.0.0.0:0", "--expose", origin}},
		{"give --tls-cert and --tls-key", []string{"--addr", "log.example.org:0", "--expose", origin}},
		{"is the origin that browsers see", []string{"--expose", "http://log.example.org"}},
		{"is the origin that browsers see", []string{"--expose", "log.example.org"}},
		{"is not an origin", []string{"--expose", origin + "/logs"}},
		{"need --expose", []string{"--addr", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key}},
		{"--tls-cert and --tls-key: ", []string{"--expose", origin, "--tls-cert", cert}},
		{"--tls-cert and --tls-key: ", []string{"--expose", origin, "--tls-cert", cert, "--tls-key", other}},
		{"--tls-cert and --tls-key: ", []string{"--expose", origin, "--tls-cert", "none.pem", "--tls-key", key}},
		{"are for reading", []string{"--write", "--mask-paths"}},
	} {
		var notes bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		code := quietApp(strings.NewReader(""), io.Discard, &notes, nil).run(ctx, append([]string{"--store", filepath.Join(t.TempDir(), "log"), "serve", "--write"}, c.args...))
		stop()
		if code == 0 || !strings.Contains(notes.String(), c.want) {
			t.Errorf("serve %s: exit %d, %s", c.args, code, notes.String())
		}
	}
}

// With --mask-paths, no page and no answer of the API has a folder, a user or an author: also not
// of an event that comes later.
func TestServeMasksPaths(t *testing.T) {
	store := filepath.Join(t.TempDir(), "log")
	run := func(text string, args ...string) {
		t.Helper()
		a := quiet()
		a.in = strings.NewReader(text)
		if code := a.run(t.Context(), append([]string{"--store", store}, args...)); code != 0 {
			t.Fatal(args, code)
		}
	}
	run(`{"type":"session_started","data":{"cwd":"/home/zelda/parcels","title":"Parcels of /home/zelda/parcels"}}`+"\n"+
		`{"type":"message_added","data":{"role":"user","parts":[{"type":"text","text":"Look into /home/zelda/parcels/yard and ask Zelda.\nAuthor: Zelda Morn <zm@parcels.dev>"}]}}`, "append", "s", "--event")
	run(`{"type":"message_added","data":{"role":"assistant","parts":[{"type":"tool_call","call_id":"c","name":"Edit","arguments":{"file_path":"/home/zelda/parcels/a.go","old_string":"zelda","new_string":"zm@parcels.dev"}}]}}`, "append", "s", "--event")
	run(`{"type":"message_added","data":{"role":"tool","parts":[{"type":"tool_result","call_id":"c","name":"Edit","content":[{"type":"text","text":"/home/zelda/parcels/a.go: done"}]}]}}`, "append", "s", "--event")
	run("", "fork", "s", "--as", "t")
	s := servePages(t, store, nil, "--mask-paths")
	base := strings.TrimSuffix(s.PlainURL, "/?token="+s.token)
	run(`{"type":"message_added","data":{"role":"user","parts":[{"type":"text","text":"later in /home/zelda/parcels/b by zm@parcels.dev"}]}}`, "append", "s", "--event")
	pages := strings.Fields(`/ /search?q=yard /search?q=zelda /stats /runs /s/s /s/s?from=1 /s/s/entries /s/s/tree /s/s/timeline /s/s/at /s/s/at/4 /s/s/files /s/s/verify /s/s/e/2 /diff?a=s&b=t
		/api/v1/sessions /api/v1/sessions/s /api/v1/sessions/s/events /api/v1/sessions/s/history /api/v1/sessions/s/state /api/v1/sessions/s/tree /api/v1/sessions/s/cost
		/api/v1/sessions/s/files /api/v1/sessions/s/verify /api/v1/search?q=yard /api/v1/diff?a=s&b=t /api/v1/stats`)
	masks := 0
	for _, page := range pages {
		answer, body := s.get(base+page, "Authorization", "Bearer "+s.token, "Accept", "text/html")
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", page, answer.Status, body)
		}
		text := strings.ReplaceAll(strings.ToLower(body), `value="zelda"`, "") // the words of the search
		for _, name := range []string{"zelda", "parcels/", "parcels.dev", "morn"} {
			if i := strings.Index(text, name); i >= 0 {
				t.Errorf("%s has %q: …%q…", page, name, text[max(0, i-80):min(len(text), i+60)])
			}
		}
		masks += strings.Count(text, "/path/1")
	}
	if _, body := s.get(base+"/s/s", "Authorization", "Bearer "+s.token); !strings.Contains(body, "later in /path/1/b by mail@example.com") || masks < 10 {
		t.Errorf("%d masks, the last page is\n%s", masks, body)
	}
	if !strings.Contains(s.notes.String(), "new after this start") {
		t.Errorf("serve says %s", s.notes)
	}
}
