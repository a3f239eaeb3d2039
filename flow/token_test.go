package flow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// FuzzToken checks that a text is a token of one kind or an error of tokens, and that an
// accepted token names the same thing after it is encoded again. With a key, the tokens of
// that key are accepted only.
func FuzzToken(f *testing.F) {
	key := []byte(strings.Repeat("k", 32))
	ref := flow.Ref{Session: "s ü\x00", Snapshot: "1"}
	signed, _ := ref.Token(key)
	plain, _ := ref.Token(nil)
	for _, text := range []string{signed, plain, "", "convlog:wait:v1:", "convlog:snapshot:v1:.", "convlog:snapshot:v99999999999999999999:x",
		"convlog:snapshot:v-1:x", "convlog:snapshot:v01:x", "convlog:snapshot:v2:x.y", plain + "\n", plain + "." + plain, signed + ".", plain + "=",
		"convlog:wait:v1:eyJzZXNzaW9uIjoicyIsIndhaXQiOiJ3In0", "convlog:wait:v1:eyJzZXNzaW9uIjoiXHVkODAwIiwid2FpdCI6IncifQ",
		"convlog:snapshot:v1:" + strings.Repeat("W1tb", 1<<12), "convlog:snapshot:v1:" + strings.Repeat("A", 1<<16)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := flow.ParseToken(text, nil)
		checkTokenError(t, err)
		if err == nil {
			again, failed := r.Token(nil)
			if back, err := flow.ParseToken(again, nil); failed != nil || err != nil || back != r {
				t.Fatalf("%q is %+v, then %+v: %v %v", text, r, back, failed, err)
			}
		}
		if err == nil && (r.Session == "" || (r.Wait == "") == (r.Snapshot == "")) {
			t.Fatalf("%q is %+v", text, r)
		}
		if r, err := flow.ParseToken(text, key); err == nil {
			if want, _ := r.Token(key); want != text {
				t.Fatalf("%q is accepted, and %q is signed", text, want)
			}
		}
	})
}

func checkTokenError(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, flow.ErrToken) && !errors.Is(err, event.ErrVersion) {
		t.Fatal(err)
	}
}

// A signed token is refused if a byte of it is missing or another one.
func TestEachByteOfATokenIsSigned(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	good, err := flow.Ref{Session: "s", Snapshot: "1"}.Token(key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		other := []byte(good)
		other[i] ^= 1
		for _, text := range []string{good[:i], string(other), good[:i] + good[i+1:], good[:i] + "\n" + good[i:]} {
			if r, err := flow.ParseToken(text, key); err == nil {
				t.Fatalf("%q is %+v", text, r)
			}
		}
	}
	if _, err := flow.ParseToken(good, []byte("short")); !errors.Is(err, flow.ErrToken) {
		t.Fatal(err)
	}
}
