// Package apitest checks requests and answers of an HTTP handler against its OpenAPI document.
package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Document is an OpenAPI document. Its methods may be called concurrently.
type Document struct {
	root map[string]any

	mu      sync.Mutex
	schemas map[string]*jsonschema.Resolved
	seen    map[string]bool
}

// Parse parses a document.
func Parse(text []byte) (*Document, error) {
	d := &Document{schemas: map[string]*jsonschema.Resolved{}, seen: map[string]bool{}}
	return d, json.Unmarshal(text, &d.root)
}

// member is a value inside an object, with its reference resolved; nil if it is missing.
func (d *Document) member(of any, names ...string) any {
	for _, name := range names {
		object, _ := of.(map[string]any)
		of = object[name]
		if object, ok := of.(map[string]any); ok {
			if to, ok := object["$ref"].(string); ok && !strings.Contains(to, "/schemas/") {
				of = d.member(d.root, strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
			}
		}
	}
	return of
}

// Operations are the paths with their methods, as GET /sessions.
func (d *Document) Operations() (all []string) {
	paths, _ := d.member(d.root, "paths").(map[string]any)
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// operation is the operation of a request, with its name.
func (d *Document) operation(method, path string) (name string, o any, err error) {
	path, _, _ = strings.Cut(path, "?")
	best := ""
	paths, _ := d.member(d.root, "paths").(map[string]any)
	for template := range paths {
		fits := slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") })
		if fits && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	if o = d.member(d.root, "paths", best, strings.ToLower(method)); o == nil {
		return "", nil, fmt.Errorf("%s %s is not in the document", method, path)
	}
	return method + " " + best, o, nil
}

// Parameters are the names of the parameters of an operation in a place, as query.
func (d *Document) Parameters(method, path, in string) (names []string) {
	_, o, _ := d.operation(method, path)
	for _, p := range list(d.member(o, "parameters")) {
		if d.member(p, "in") == in {
			names = append(names, d.member(p, "name").(string))
		}
	}
	return names
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// CheckRequest checks the parameters and the body of a request for a path.
func (d *Document) CheckRequest(method, path string, header http.Header, body []byte) error {
	name, o, err := d.operation(method, path)
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(path, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return err
	}
	for _, p := range list(d.member(o, "parameters")) {
		values := query
		switch d.member(p, "in") {
		case "header":
			values = url.Values(header)
		case "path":
			continue // the path fits
		}
		key := d.member(p, "name").(string)
		value := values.Get(key)
		if d.member(p, "in") == "header" {
			value = header.Get(key)
		}
		delete(query, key)
		if value == "" {
			if d.member(p, "required") == true {
				return fmt.Errorf("%s: the parameter %s is missing", name, key)
			}
			continue
		}
		text, _ := json.Marshal(value)
		if d.member(p, "schema", "type") == "integer" {
			text = []byte(value)
		}
		if err := d.valid(d.member(p, "schema"), text); err != nil {
			return fmt.Errorf("%s: parameter %s: %w", name, key, err)
		}
		d.see(name + " parameter " + key)
	}
	for key := range query {
		return fmt.Errorf("%s has no parameter %s", name, key)
	}
	schema := d.member(o, "requestBody", "content", "application/json", "schema")
	if schema == nil {
		if len(body) > 0 {
			return fmt.Errorf("%s has no body", name)
		}
		return nil
	}
	if kind := header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("%s: the body is of type %q", name, kind)
	}
	return d.valid(schema, body)
}

// CheckAnswer checks an answer to a request for a path.
func (d *Document) CheckAnswer(method, path string, status int, header http.Header, body []byte) error {
	name, o, err := d.operation(method, path)
	if err != nil {
		return err
	}
	code := fmt.Sprint(status)
	answer := d.member(o, "responses", code)
	if answer == nil {
		code = "default"
		answer = d.member(o, "responses", code)
	}
	headers, _ := d.member(answer, "headers").(map[string]any)
	for key := range headers {
		if header.Get(key) == "" {
			return fmt.Errorf("%s: status %d: the header %s is missing", name, status, key)
		}
	}
	kind := header.Get("Content-Type")
	content := d.member(answer, "content", kind)
	if content == nil && len(body) > 0 {
		return fmt.Errorf("%s: status %d: %q is not in the document", name, status, kind)
	}
	if schema := d.member(content, "schema"); schema != nil && kind != "text/event-stream" {
		if err := d.valid(schema, body); err != nil {
			return fmt.Errorf("%s: status %d: %w: %.300s", name, status, err, body)
		}
	}
	d.see(name + " answer " + code)
	return nil
}

// CheckSchema checks JSON against a schema of the document.
func (d *Document) CheckSchema(name string, body []byte) error {
	return d.valid(map[string]any{"$ref": "#/components/schemas/" + name}, body)
}

func (d *Document) see(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[what] = true
}

// Unseen are the parameters and the answers that no checked request and answer had.
func (d *Document) Unseen() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.Operations() {
		method, path, _ := strings.Cut(name, " ")
		o := d.member(d.root, "paths", path, strings.ToLower(method))
		answers, _ := d.member(o, "responses").(map[string]any)
		for code := range answers {
			all = append(all, name+" answer "+code)
		}
		for _, p := range list(d.member(o, "parameters")) {
			if d.member(p, "in") != "path" {
				all = append(all, name+" parameter "+d.member(p, "name").(string))
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(what string) bool { return d.seen[what] })
}

// valid checks JSON against a schema.
func (d *Document) valid(schema any, body []byte) error {
	s, err := d.resolved(schema)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

func (d *Document) resolved(schema any) (*jsonschema.Resolved, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	key := string(text)
	if s := d.schemas[key]; s != nil {
		return s, nil
	}
	text, err = json.Marshal(map[string]any{"allOf": []any{schema}, "$defs": d.member(d.root, "components", "schemas")})
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), &s); err != nil {
		return nil, err
	}
	d.schemas[key], err = s.Resolve(nil)
	return d.schemas[key], err
}
