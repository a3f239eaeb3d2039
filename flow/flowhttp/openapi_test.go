package flowhttp_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/internal/httpapi/apitest"
)

var readDocument = sync.OnceValues(func() (*apitest.Document, error) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	return apitest.Parse(text)
})

// Each path of the document is one of the handler, and each path of the handler is in the
// document: the handler answers another path with 404, and another method with 405.
func TestDocumentHasThePaths(t *testing.T) {
	t.Parallel()
	d, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, chat{}, options{})
	source, err := os.ReadFile("handler.go")
	if err != nil {
		t.Fatal(err)
	}
	all := d.Operations()
	for _, name := range all {
		if !strings.Contains(string(source), fmt.Sprintf("%q:", name)) {
			t.Errorf("handler.go has no %s", name)
		}
		_, path, _ := strings.Cut(name, " ")
		r, _ := http.NewRequestWithContext(t.Context(), "PUT", s.URL+strings.NewReplacer("{session}", "x", "{id}", "y").Replace(path), nil)
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("PUT %s: %d", path, answer.StatusCode)
		}
	}
	if routes := strings.Count(string(source), "\"GET /") + strings.Count(string(source), "\"POST /"); routes != len(all) {
		t.Errorf("handler.go has %d paths, openapi.json %d", routes, len(all))
	}
	s.call("GET", "/openapi.json", "", 200)
}
