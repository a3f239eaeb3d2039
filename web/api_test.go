package web_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/httpapi/apitest"
	"github.com/convlog/convlog/web"
)

// document is openapi.json. All tests of the package share it.
var document = sync.OnceValue(func() *apitest.Document {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	d, err := apitest.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
})

// apiAnswer is an answer of the API.
type apiAnswer struct {
	status int
	header http.Header
	body   []byte
}

// value decodes the body.
func (x apiAnswer) value(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(x.body, v); err != nil {
		t.Fatalf("%v: %s", err, x.body)
	}
}

// call sends a request to the API, and checks it and its answer against the document. A request that
// the document does not allow must be refused.
func (s *site) call(method, path, body string, headers ...string) apiAnswer {
	s.t.Helper()
	r := s.request(method, "/api/v1"+path, headers...)
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	wrong := document().CheckRequest(method, path, r.Header, []byte(body))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if wrong != nil && answer.StatusCode < 400 {
		s.t.Errorf("%s %s: %v, and its status is %d", method, path, wrong, answer.StatusCode)
	}
	if err := document().CheckAnswer(method, path, answer.StatusCode, answer.Header, text); err != nil {
		s.t.Error(err)
	}
	return apiAnswer{answer.StatusCode, answer.Header, text}
}

// get is the body of a GET that succeeds.
func (s *site) get(path string) apiAnswer {
	s.t.Helper()
	x := s.call("GET", path, "")
	if x.status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, x.status, x.body)
	}
	return x
}

// says is the body of an append of messages of the user.
func says(texts ...string) string {
	var events []string
	for _, text := range texts {
		events = append(events, fmt.Sprintf(`{"id":%q,"type":"message_added","data":{"role":"user","parts":[{"type":"text","text":%q}]}}`, event.NewID(), text))
	}
	return `{"events":[` + strings.Join(events, ",") + `]}`
}

// problem is a problem document.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
	Rule   string `json:"rule"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
}

// refuses sends a request that must be refused with a status and words of its cause.
func (s *site) refuses(status int, words, method, path, body string, headers ...string) problem {
	s.t.Helper()
	x := s.call(method, path, body, headers...)
	var p problem
	if x.header.Get("Content-Type") == "application/problem+json" {
		x.value(s.t, &p)
	}
	if x.status != status || p.Status != status || !strings.Contains(p.Detail, words) || p.Remedy == "" {
		s.t.Errorf("%s %s: %d %s, want %d and %q", method, path, x.status, x.body, status, words)
	}
	return p
}

// Each path of the document is one of the handler, and each path of the handler is in the document, with
// the same parameters.
func TestDocumentHasTheRoutes(t *testing.T) {
	var all []string
	for pattern, query := range web.Routes() {
		all = append(all, pattern)
		method, path, _ := strings.Cut(pattern, " ")
		named := document().Parameters(method, path, "query")
		slices.Sort(named)
		slices.Sort(query)
		if !slices.Equal(named, query) {
			t.Errorf("%s has the parameters %s, and %s in the document", pattern, query, named)
		}
	}
	slices.Sort(all)
	if named := document().Operations(); !slices.Equal(named, all) {
		t.Errorf("the document has\n%s\nthe handler\n%s", strings.Join(named, "\n"), strings.Join(all, "\n"))
	}
}

func decoded[T any](t *testing.T, text jsontext.Value) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
