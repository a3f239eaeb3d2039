package modeltest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/flow"
)

// Now is the time of the models.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Busy."},"request_id":"r"}`

// refusals are answers of servers with errors.
var refusals = []struct {
	name    string
	status  int
	header  map[string]string
	body    string
	code    string
	message string
	delay   time.Duration
	final   bool
}{
	{name: "rate limit", status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"error":{"message":"Slow down.","type":"tokens","code":"rate_limit_exceeded"}}`, code: "rate_limit_exceeded", message: "Slow down.", delay: 7 * time.Second},
	{name: "fraction", status: 429, header: map[string]string{"Retry-After": "0.5"}, message: "Too Many Requests", delay: time.Second / 2},
	{name: "milliseconds", status: 503, header: map[string]string{"Retry-After": "7", "Retry-After-Ms": "250"}, message: "Service Unavailable", delay: time.Second / 4},
	{name: "date", status: 503, header: map[string]string{"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT"}, message: "Service Unavailable", delay: time.Minute},
	{name: "past date", status: 503, header: map[string]string{"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, message: "Service Unavailable"},
	{name: "wrong delay", status: 503, header: map[string]string{"Retry-After": "-5"}, message: "Service Unavailable"},
	{name: "no number", status: 503, header: map[string]string{"Retry-After": "NaN", "Retry-After-Ms": "soon"}, message: "Service Unavailable"},
	{name: "very long delay", status: 503, header: map[string]string{"Retry-After": "1e300"}, message: "Service Unavailable", delay: 24 * time.Hour},
	{name: "overloaded", status: 529, body: overloaded, code: "overloaded_error", message: "Busy."},
	{name: "timeout", status: 408, message: "Request Timeout"},
	{name: "conflict", status: 409, message: "Conflict"},
	{name: "server", status: 500, body: `oops`, message: "Internal Server Error"},
	{name: "proxy", status: 502, body: `<html>Bad gateway</html>`, message: "Bad Gateway"},
	{name: "no quota", status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"error":{"message":"Pay.","type":"insufficient_quota","code":"insufficient_quota"}}`, code: "insufficient_quota", message: "Pay.", final: true},
	{name: "invalid", status: 400, header: map[string]string{"Retry-After": "7"}, body: `{"error":{"message":"No.","type":"invalid_request_error","code":null}}`, code: "invalid_request_error", message: "No.", final: true},
	{name: "key", status: 401, body: `{"error":{"message":"Wrong key secret-key."}}`, message: "Wrong key [key].", final: true},
	{name: "forbidden", status: 403, body: `{"error":"no"}`, message: "no", final: true},
	{name: "unknown model", status: 404, body: `{"object":"error","message":"No such model.","code":404}`, code: "404", message: "No such model.", final: true},
	{name: "detail", status: 422, body: `{"detail":"Not this."}`, message: "Not this.", final: true},
	{name: "array", status: 422, body: `[1]`, message: "Unprocessable Entity", final: true},
	{name: "retry anyway", status: 400, header: map[string]string{"X-Should-Retry": "true"}, message: "Bad Request"},
	{name: "do not retry", status: 500, header: map[string]string{"X-Should-Retry": "false"}, message: "Internal Server Error", final: true},
	{name: "huge", status: 500, body: strings.Repeat("\xff", 1<<20), message: "Internal Server Error"},
	{name: "page", status: 200, header: map[string]string{"Content-Type": "text/html"}, body: "<html>", message: "the answer is a page and not JSON: check the base URL", final: true},
	{name: "error as answer", status: 200, body: `{"error":{"message":"No.","code":400}}`, code: "400", message: "No.", final: true},
	{name: "error in the stream", status: 200, body: "data: " + overloaded + "\n\n", code: "overloaded_error", message: "Busy."},
	{name: "permanent error in the stream", status: 200, body: `data: {"type":"error","error":{"type":"invalid_request_error","message":"No."}}` + "\n\n", code: "invalid_request_error", message: "No.", final: true},
	{name: "nothing", status: 200, message: "the answer broke off"},
	{name: "no JSON", status: 200, body: "{oops", message: "the answer broke off"},
	{name: "no events", status: 200, body: "oops", message: "the answer broke off"},
	{name: "no object", status: 200, body: "data: 5\n\n", message: "the answer broke off"},
	{name: "no answer", status: 200, body: "{}", message: "the answer broke off"},
}

// Every refusal is an error that says what the server said, and whether another attempt
// makes sense. No error shows the key.
func (s *Suite) refusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			url := Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Request-Id", "req-1")
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := Ask(t, s.New(url, nil))
			e := refusal(t, err)
			if e.Status != c.status || e.Code != c.code || e.Message != c.message || e.RetryAfter() != c.delay || e.Permanent() != c.final {
				t.Errorf("error %q: status %d, code %q, message %q, delay %v, permanent %v", e, e.Status, e.Code, e.Message, e.RetryAfter(), e.Permanent())
			}
			if c.status != http.StatusOK && e.RequestID != "req-1" || len(e.Body) > 3*2<<10 || strings.Contains(e.Error()+e.Body, s.Key) {
				t.Errorf("request %q, %d bytes of body, %v", e.RequestID, len(e.Body), e)
			}
		})
	}
}

// Parameters that are fixed, or that are not an object, are a permanent error.
func (s *Suite) parameters(t *testing.T) {
	for _, p := range append([]string{`[]`, `{`}, s.Fixed...) {
		_, err := s.New("http://127.0.0.1:1", nil).Generate(t.Context(), &flow.Request{Parameters: []byte(p)}, nil)
		if e := refusal(t, err); !e.Permanent() || !strings.Contains(e.Error(), "parameters") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// A stream that breaks the rules of the API is worth another attempt.
func (s *Suite) broken(t *testing.T) {
	for _, stream := range s.Broken {
		url := Serve(t, func(w http.ResponseWriter, _ *http.Request) { Say(w, stream) })
		if _, err := Ask(t, s.New(url, nil)); err != nil {
			isBroken(t, err)
		} else {
			t.Errorf("%q is an answer", stream)
		}
	}
}

func refusal(t *testing.T, err error) *flow.ModelError {
	t.Helper()
	var e *flow.ModelError
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T) is no *flow.ModelError", err, err)
	}
	return e
}

// A server that does not answer may answer later; an address that is wrong stays wrong. No
// error shows the address, which may have a key.
func (s *Suite) noServer(t *testing.T) {
	for _, c := range []struct {
		url   string
		final bool
	}{{"http://127.0.0.1:1/?k=hidden", false}, {"http://[::1/?k=hidden", true}, {"\n", true}} {
		_, err := Ask(t, s.New(c.url, nil))
		if e := refusal(t, err); e.Status != 0 || e.Permanent() != c.final || strings.Contains(e.Error(), "hidden") {
			t.Errorf("%q: %v, permanent %v", c.url, e, e.Permanent())
		}
	}
}

// A redirect would take the key to another server.
func (s *Suite) redirect(t *testing.T) {
	other := Serve(t, func(_ http.ResponseWriter, q *http.Request) { t.Errorf("a request came with %v", q.Header) })
	url := Serve(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other, http.StatusTemporaryRedirect)
	})
	_, err := Ask(t, s.New(url, nil))
	if e := refusal(t, err); e.Status != http.StatusTemporaryRedirect || !e.Permanent() {
		t.Errorf("error %v", e)
	}
}
