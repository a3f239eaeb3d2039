package flow

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// diff is the JSON Patch (RFC 6902) that changes one document into another. Numbers keep
// their digits, and the order of members does not count. If the patch would take too long
// to apply, it replaces the whole document.
func diff(from, to jsontext.Value) (jsontext.Value, error) {
	before, err := projection.Canonical(from)
	if err != nil {
		return nil, err
	}
	after, err := projection.Canonical(to)
	if err != nil {
		return nil, err
	}
	patch, err := changes(before, after)
	if err != nil {
		return nil, err
	}
	got, err := projection.ApplyPatch(before, patch)
	if err == nil {
		got, err = projection.Canonical(got)
	}
	if err != nil || !bytes.Equal(got, after) {
		return replacement(to), nil
	}
	return patch, nil
}

// changes is the patch that changes a into b. Both are canonical, so that equal values have
// equal bytes.
func changes(a, b jsontext.Value) (jsontext.Value, error) {
	if !bytes.Equal(a, b) && !nested(a, b) {
		return replacement(b), nil
	}
	var d differ
	err := d.compare("", a, b)
	return rawjson.Array(d.operations), err
}

// nested reports whether both values are objects, or both are arrays.
func nested(a, b jsontext.Value) bool {
	return a.Kind() == b.Kind() && (a.Kind() == jsontext.KindBeginObject || a.Kind() == jsontext.KindBeginArray)
}

// differ collects the operations of a patch.
type differ struct{ operations []jsontext.Value }

// add adds an operation. Only a removal has no value.
func (d *differ) add(op, path string, value jsontext.Value) {
	b := append([]byte(`{"op":"`), op...)
	b = append(b, `","path":`...)
	b, _ = jsontext.AppendQuote(b, path) // names of valid JSON are valid UTF-8
	if value != nil {
		b = append(append(b, `,"value":`...), value...)
	}
	d.operations = append(d.operations, append(b, '}'))
}

// compare adds the operations that change a, which is at path, into b.
func (d *differ) compare(path string, a, b jsontext.Value) error {
	switch {
	case bytes.Equal(a, b):
		return nil
	case !nested(a, b):
		d.add("replace", path, b)
		return nil
	case a.Kind() == jsontext.KindBeginObject:
		return d.members(path, a, b)
	}
	return d.items(path, a, b)
}

// escape writes a name as a token of a JSON pointer (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// members compares two objects.
func (d *differ) members(path string, a, b jsontext.Value) error {
	before, err := rawjson.Members(a)
	if err != nil {
		return err
	}
	after, err := rawjson.Members(b)
	if err != nil {
		return err
	}
	values := make(map[string]jsontext.Value, len(after))
	for _, m := range after {
		values[m.Name] = m.Value
	}
	known := make(map[string]bool, len(before))
	for _, m := range before {
		known[m.Name] = true
		at := path + "/" + escape.Replace(m.Name)
		if value, ok := values[m.Name]; !ok {
			d.add("remove", at, nil)
		} else if err := d.compare(at, m.Value, value); err != nil {
			return err
		}
	}
	for _, m := range after {
		if !known[m.Name] {
			d.add("add", path+"/"+escape.Replace(m.Name), m.Value)
		}
	}
	return nil
}

// items compares two arrays. Equal items at the beginning and at the end stay. The others
// are compared by their place, and the longer array has more of them. If the operations are
// longer than the new array, it replaces the old one.
func (d *differ) items(path string, a, b jsontext.Value) error {
	before, err := rawjson.Elements(a)
	if err != nil {
		return err
	}
	after, err := rawjson.Elements(b)
	if err != nil {
		return err
	}
	begin := len(d.operations)
	n := 0 // items at the beginning that were compared
	for n < min(len(before), len(after)) && bytes.Equal(before[n], after[n]) {
		n++
	}
	for len(before) > n && len(after) > n && bytes.Equal(before[len(before)-1], after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	for ; n < min(len(before), len(after)); n++ {
		if err := d.compare(path+"/"+strconv.Itoa(n), before[n], after[n]); err != nil {
			return err
		}
	}
	for i := len(before) - 1; i >= n; i-- {
		d.add("remove", path+"/"+strconv.Itoa(i), nil)
	}
	for ; n < len(after); n++ {
		d.add("add", path+"/"+strconv.Itoa(n), after[n])
	}
	if size := len(rawjson.Array(d.operations[begin:])); size > len(b) {
		whole := differ{operations: d.operations[:begin:begin]}
		if whole.add("replace", path, b); size > len(rawjson.Array(whole.operations[begin:])) {
			*d = whole
		}
	}
	return nil
}
