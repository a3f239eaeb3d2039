package stats

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill sets every field of a value to another value than zero, but those that no row has.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Date(2026, 1, 2, 3, 4, *n, 5, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(*n) << 7)
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		fill(t, v.Index(1), n)
	case reflect.Array:
		fill(t, v.Index(v.Len()-1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, n)
			fill(t, value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "ByHour" && name != "Err" && name != "Extra" {
				fill(t, v.Field(i), n)
			}
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

// A row has every field of a summary and of the part for listings, and no beginning of a row is
// read as a row.
func TestRowsHaveEveryField(t *testing.T) {
	var x Summary
	var l listedRow
	n := 0
	fill(t, reflect.ValueOf(&x).Elem(), &n)
	fill(t, reflect.ValueOf(&l).Elem(), &n)
	l.Head = listedRow{}.Head // which the row has apart
	for _, c := range []struct {
		name  string
		value any
		bytes func(*rowBytes, any)
	}{
		{"summary", &x, func(r *rowBytes, v any) { r.summary(v.(*Summary)) }},
		{"listed", &l, func(r *rowBytes, v any) { r.listed(v.(*listedRow)) }},
	} {
		var w rowBytes
		c.bytes(&w, c.value)
		for size := range len(w.b) {
			r := rowBytes{b: w.b[:size], reads: true}
			c.bytes(&r, reflect.New(reflect.TypeOf(c.value).Elem()).Interface())
			if !r.failed {
				t.Fatalf("%s: %d of %d bytes are read as a row", c.name, size, len(w.b))
			}
		}
		got := reflect.New(reflect.TypeOf(c.value).Elem()).Interface()
		r := rowBytes{b: w.b, reads: true}
		c.bytes(&r, got)
		if diff := cmp.Diff(c.value, got); diff != "" || r.failed || len(r.b) > 0 {
			t.Errorf("%s (-stored +read), %d bytes left:\n%s", c.name, len(r.b), diff)
		}
	}
}
