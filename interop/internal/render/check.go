package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// ErrRequest: a request that a provider would refuse.
var ErrRequest = errors.New("not a valid request")

// Object is an object of a request that is being checked.
type Object struct {
	// Path says where it stands, such as messages[3].content[0].
	Path    string
	members map[string]jsontext.Value
}

// ReadObject reads an object.
func ReadObject(path string, v jsontext.Value) (o Object, err error) {
	o.Path = path
	if !v.IsValid() || v.Kind() != '{' {
		return o, o.Fail("not an object")
	}
	return o, json.Unmarshal(v, &o.members)
}

// Fail makes the error that says what is wrong with o.
func (o *Object) Fail(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrRequest, o.Path, fmt.Sprintf(format, args...))
}

// Has reports whether there is such a member.
func (o *Object) Has(name string) bool { return o.members[name] != nil }

// Only refuses members that are neither required nor optional, and required
// ones that are missing.
func (o *Object) Only(required []string, optional ...string) error {
	for name := range o.members {
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return o.Fail("unknown member %q", name)
		}
	}
	for _, name := range required {
		if !o.Has(name) {
			return o.Fail("member %q is missing", name)
		}
	}
	return nil
}

// Text is a member that must be a string, if it is there.
func (o *Object) Text(name string) (string, error) {
	v, ok := o.members[name]
	if !ok {
		return "", nil
	}
	s, ok := rawjson.Text(v)
	if !ok {
		return "", o.Fail("%q is not a string", name)
	}
	return s, nil
}

// Said is a member that must be a string with something in it.
func (o *Object) Said(name string) (string, error) {
	s, err := o.Text(name)
	if err == nil && Blank(s) {
		err = o.Fail("%q is empty", name)
	}
	return s, err
}

// Base64 checks a member that must be base64 of something.
func (o *Object) Base64(name string) error {
	s, err := o.Said(name)
	if err != nil {
		return err
	}
	if _, err := base64.StdEncoding.DecodeString(s); err != nil {
		return o.Fail("%q is not base64", name)
	}
	return nil
}

// Address checks a member that must be an address that a provider can fetch, or
// else, where media types are named, one that holds a body of such a type.
func (o *Object) Address(name string, types ...string) error {
	s, err := o.Said(name)
	if err != nil {
		return err
	}
	for _, t := range types {
		if body, ok := strings.CutPrefix(s, "data:"+t+";base64,"); ok && body != "" {
			if _, err := base64.StdEncoding.DecodeString(body); err == nil {
				return nil
			}
		}
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o.Fail("%q is no address of such a body", name)
	}
	return nil
}

// Value is a member as it stands.
func (o *Object) Value(name string) jsontext.Value { return o.members[name] }

// Object is a member that must be an object.
func (o *Object) Object(name string) (Object, error) {
	return ReadObject(o.Path+"."+name, o.members[name])
}

// Objects is a member that must be an array of objects; nil if it is missing.
func (o *Object) Objects(name string) (all []Object, err error) {
	v, ok := o.members[name]
	if !ok {
		return nil, nil
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil, o.Fail("%q is not an array", name)
	}
	for i, v := range elements {
		element, err := ReadObject(fmt.Sprintf("%s.%s[%d]", o.Path, name, i), v)
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}
