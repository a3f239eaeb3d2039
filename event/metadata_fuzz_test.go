package event

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// A cost that is read prints as a text that reads as the same cost, and every
// amount prints as one that is read.
func FuzzCost(f *testing.F) {
	for _, text := range []string{"0", "1", "0.0123", "12.50", "00.1", "9223372036.854775807", "9223372036.854775808", "1e3", "-1", ".", "0.0000000001"} {
		f.Add(text, int64(len(text)))
	}
	f.Add("", int64(math.MaxInt64))
	form := regexp.MustCompile(`^[0-9]+(\.[0-9]{1,9})?$`)
	f.Fuzz(func(t *testing.T, text string, n int64) {
		c, err := parseCost(text)
		if err != nil {
			if !errors.Is(err, errCost) {
				t.Fatalf("parseCost(%q): %v", text, err)
			}
			if whole, _, _ := strings.Cut(text, "."); form.MatchString(text) && len(strings.TrimLeft(whole, "0")) < 10 {
				t.Fatalf("parseCost(%q) refuses an amount: %v", text, err)
			}
		} else if !form.MatchString(text) {
			t.Fatalf("parseCost(%q) = %v", text, c)
		}
		for _, c := range []Cost{c, Cost(max(n, 0))} {
			if again, err := parseCost(c.String()); err != nil || again != c {
				t.Fatalf("%d prints as %s, which is %d, %v", c, c, again, err)
			}
			var again Cost
			if value, err := json.Marshal(c); err != nil || json.Unmarshal(value, &again) != nil || again != c {
				t.Fatalf("%d encodes as %s: %v", c, value, err)
			}
		}
	})
}

// Hashes, digests and blob references have one form each, and print in it.
func FuzzDigest(f *testing.F) {
	f.Add(sampleHash, []byte(`{"blob":"`+sampleDigest+`","bytes":3}`))
	f.Add(sampleDigest, []byte(`{"blob":"`+sampleDigest+`","bytes":-1}`))
	f.Add(strings.ToUpper(sampleHash), []byte(`{"bytes":3}`))
	form := regexp.MustCompile(`^[0-9a-f]{64}$`)
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		digits, prefixed := strings.CutPrefix(text, "sha256:")
		var h Hash
		err := h.UnmarshalText([]byte(text))
		if ok := form.MatchString(text); ok != (err == nil) || ok && h.String() != text {
			t.Fatalf("the hash %q is %v, %v", text, h, err)
		}
		d := Digest(text)
		if ok := prefixed && form.MatchString(digits); ok != (d.Check() == nil) || ok && d.Hex() != digits {
			t.Fatalf("Digest(%q).Check = %v", text, d.Check())
		}
		var r, again BlobRef
		if json.Unmarshal(data, &r) != nil || r.check("blob") != nil {
			return
		}
		if value, err := json.Marshal(r); err != nil || json.Unmarshal(value, &again) != nil || again != r {
			t.Fatalf("%+v encodes as %s: %v", r, value, err)
		}
		for _, d := range r.needs() {
			if err := d.Check(); err != nil {
				t.Fatalf("%+v needs %q: %v", r, d, err)
			}
		}
	})
}

// Merged metadata has the event's own members first, byte for byte, then the members
// of the context that the event lacks.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"a":1.0,"b":2}`), []byte(`{"b":"\u0061","\u0063":[ 1 ]}`), "c", []byte(`{"x":1e400}`))
	f.Add([]byte(``), []byte(`{}`), "", []byte(`null`))
	f.Fuzz(func(t *testing.T, inherited, own []byte, name string, value []byte) {
		e := Event{Metadata: own}
		if err := e.MergeMetadata(inherited); err != nil {
			if !errors.Is(err, errMetadata) {
				t.Fatal(err)
			}
			return
		}
		merged := e.Metadata
		mergedWell(t, inherited, own, merged)
		if e.SetMetadata(name, jsontext.Value(value)) != nil {
			return
		}
		want, err := rawjson.Compact(value)
		got, ok := e.MetadataValue(name)
		if err != nil || !ok || !bytes.Equal(got, want) {
			t.Fatalf("%q is %s, %v, in %s", name, got, ok, e.Metadata)
		}
		after, err := rawjson.Members(e.Metadata)
		if err != nil {
			t.Fatalf("%v: %s", err, e.Metadata)
		}
		before, _ := metadataMembers(merged)
		for i, m := range before {
			if n := after[i]; string(n.AppendName(nil)) != string(m.AppendName(nil)) || m.Name != name && string(n.Value) != string(m.Value) {
				t.Fatalf("setting %q made %s of %s", name, e.Metadata, merged)
			}
		}
	})
}

func mergedWell(t *testing.T, inherited, own, merged []byte) {
	t.Helper()
	members, err := metadataMembers(merged)
	if value, bad := rawjson.Compact(merged); len(merged) > 0 && (err != nil || bad != nil || !bytes.Equal(value, merged)) {
		t.Fatalf("%s and %s give %s: %v, %v", inherited, own, merged, err, bad)
	}
	want, _ := metadataMembers(own)
	theirs, _ := metadataMembers(inherited)
	for _, m := range theirs {
		if _, taken := rawjson.Value(want, m.Name); !taken {
			want = append(want, m)
		}
	}
	if len(members) != len(want) {
		t.Fatalf("%s and %s give %s", inherited, own, merged)
	}
	for i, m := range members {
		if string(m.AppendName(nil)) != string(want[i].AppendName(nil)) || string(m.Value) != string(want[i].Value) {
			t.Fatalf("%s and %s give %s", inherited, own, merged)
		}
	}
}
