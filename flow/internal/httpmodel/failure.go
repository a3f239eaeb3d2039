package httpmodel

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/rawjson"
)

// clipBody is the number of bytes of a body that an error keeps.
const clipBody = 2 << 10

// Refusal makes the error of a value with an error of the server, which came in an
// answer with status 200.
func (c *Call) Refusal(v jsontext.Value) *flow.ModelError {
	e := c.failure(http.StatusOK, nil, v)
	e.Final = permanentCodes[e.Code]
	if status, err := strconv.Atoi(e.Code); err == nil {
		e.Final = permanentStatus(status)
	}
	return e
}

// failed makes the error of a response without status 200.
func (c *Call) failed(r *http.Response, body []byte) *flow.ModelError {
	e := c.failure(r.StatusCode, r.Header, body)
	e.Final = permanentStatus(r.StatusCode) || e.Code == "insufficient_quota"
	switch r.Header.Get("X-Should-Retry") {
	case "true":
		e.Final = false
	case "false":
		e.Final = true
	}
	if !e.Final {
		e.Delay = retryAfter(r.Header, c.now())
	}
	if e.Message == "" {
		e.Message = http.StatusText(r.StatusCode)
	}
	return e
}

// failure makes an error of a body.
func (c *Call) failure(status int, h http.Header, body []byte) *flow.ModelError {
	code, message := describe(body)
	return &flow.ModelError{
		Provider: c.Provider, Status: status, Code: c.hide(code), Message: c.hide(message), Body: c.hide(clip(body)),
		RequestID: cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id")),
	}
}

func (c *Call) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// hide replaces the key of the client: some servers repeat it in an error.
func (c *Call) hide(text string) string {
	if c.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, c.Key, "[key]")
}

// clip returns the beginning of a body as valid UTF-8.
func clip(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), clipBody)]), "\uFFFD")
}

// describe returns the code and the message of an error. Servers send them in the member
// "error", or without it. Other bodies have neither.
func describe(body []byte) (code, message string) {
	v, err := clean(body)
	if err != nil {
		return "", ""
	}
	if inner, ok, _ := rawjson.Lookup(v, "error"); ok {
		if text, ok := rawjson.Text(inner); ok {
			return "", text
		}
		v = inner
	}
	members, err := rawjson.Members(v)
	if err != nil {
		return "", ""
	}
	for _, name := range []string{"code", "type"} {
		if code = codeOf(members, name); code != "" {
			break
		}
	}
	for _, name := range []string{"message", "detail"} {
		v, _ := rawjson.Value(members, name)
		if message, _ = rawjson.Text(v); message != "" {
			break
		}
	}
	return code, message
}

// codeOf returns a text or a number in a member.
func codeOf(members []rawjson.Member, name string) string {
	v, _ := rawjson.Value(members, name)
	if v.Kind() == '0' {
		return string(v)
	}
	code, _ := rawjson.Text(v)
	return code
}

// permanentStatus reports whether the same request gets the same status again.
func permanentStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

// permanentCodes are the codes of errors inside an answer that another attempt does not
// mend. Any other error inside an answer is worth one.
var permanentCodes = map[string]bool{
	"invalid_request_error": true, "authentication_error": true, "billing_error": true, "permission_error": true,
	"not_found_error": true, "request_too_large": true, "insufficient_quota": true, "context_length_exceeded": true,
	"invalid_api_key": true, "model_not_found": true, "content_policy_violation": true,
}

// maxDelay bounds the delay that a server can ask for.
const maxDelay = 24 * time.Hour

// retryAfter returns the delay that the headers ask for: milliseconds, seconds, or a
// date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms / 1000)
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return bounded(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return bounded(at.Sub(now).Seconds())
	}
	return 0
}

// bounded converts seconds; anything that is not positive is 0.
func bounded(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxDelay.Seconds()) * float64(time.Second))
}
