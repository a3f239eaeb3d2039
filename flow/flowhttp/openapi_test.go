package flowhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// document is openapi.json, with the members that the tests use.
type document struct {
	Paths map[string]map[string]struct {
		RequestBody struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

var readDocument = sync.OnceValues(func() (d document, err error) {
	text, err := os.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
})

// template is the path of the document that a path fits.
func (d *document) template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for name := range d.Paths {
		if slices.EqualFunc(strings.Split(name, "/"), strings.Split(path, "/"), func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") && b != "latest" || a == "{id}" }) {
			return name
		}
	}
	return ""
}

// check checks an answer against the document.
func (d *document) check(method, path string, status int, header http.Header, body []byte) error {
	o, ok := d.Paths[d.template(path)][strings.ToLower(method)]
	if !ok {
		return fmt.Errorf("%s %s is not in openapi.json", method, path)
	}
	r, ok := o.Responses[fmt.Sprint(status)]
	if !ok {
		r = o.Responses["default"]
	}
	kind := header.Get("Content-Type")
	content, ok := r.Content[kind]
	if !ok && len(body) > 0 {
		return fmt.Errorf("%s %s: status %d: %q is not in openapi.json", method, path, status, kind)
	}
	if !ok {
		return nil
	}
	return d.valid(content.Schema, body)
}

// valid checks JSON against a schema of the document.
func (d *document) valid(schema json.RawMessage, body []byte) error {
	all := map[string]any{"allOf": []any{schema}, "$defs": d.Components.Schemas}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

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
	n := 0
	for path, methods := range d.Paths {
		for method := range methods {
			n++
			if !strings.Contains(string(source), fmt.Sprintf("%q:", strings.ToUpper(method)+" "+path)) {
				t.Errorf("handler.go has no %s %s", method, path)
			}
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
	}
	if routes := strings.Count(string(source), "\"GET /") + strings.Count(string(source), "\"POST /"); routes != n {
		t.Errorf("handler.go has %d paths, openapi.json %d", routes, n)
	}
	s.call("GET", "/openapi.json", "", 200)
}
