package modelapi

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

// ErrRequest reports a request that a provider rejects.
var ErrRequest = errors.New("not a valid request")

// Object is an object of a request that is being checked.
type Object struct {
	// Path is the object's path in the request, for example messages[3].content[0].
	Path    string
	members map[string]jsontext.Value
}

// ReadObject parses an object.
func ReadObject(path string, v jsontext.Value) (o Object, err error) {
	o.Path = path
	if !v.IsValid() || v.Kind() != '{' {
		return o, o.Fail("not an object")
	}
	return o, json.Unmarshal(v, &o.members)
}

// Fail makes an error about o.
func (o *Object) Fail(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrRequest, o.Path, fmt.Sprintf(format, args...))
}

// Has reports whether o has the member.
func (o *Object) Has(name string) bool { return o.members[name] != nil }

// Only checks that o has all required members, and no other members than the
// required and the optional ones.
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

// Text is the text of a member, which may be missing and must be a string.
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

// NonBlank is the text of a member, which must not be blank.
func (o *Object) NonBlank(name string) (string, error) {
	s, err := o.Text(name)
	if err == nil && Blank(s) {
		err = o.Fail("%q is empty", name)
	}
	return s, err
}

// Base64 checks that a member is base64 and not empty.
func (o *Object) Base64(name string) error {
	s, err := o.NonBlank(name)
	if err != nil {
		return err
	}
	if _, err := base64.StdEncoding.DecodeString(s); err != nil {
		return o.Fail("%q is not base64", name)
	}
	return nil
}

// Address checks that a member is an HTTP URL, or a data: URL of one of the types.
func (o *Object) Address(name string, types ...string) error {
	s, err := o.NonBlank(name)
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
		return o.Fail("%q is neither an http(s) URL nor a data URL of an accepted type", name)
	}
	return nil
}

// Value is the value of a member; nil if it is missing.
func (o *Object) Value(name string) jsontext.Value { return o.members[name] }

// Object is the object in a member.
func (o *Object) Object(name string) (Object, error) {
	return ReadObject(o.Path+"."+name, o.members[name])
}

// Objects are the objects of the array in a member; nil if the member is missing.
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
