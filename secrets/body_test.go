package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/memory"
)

// brokenBlobs is a store whose bodies are damaged.
type brokenBlobs struct{ *memory.Store }

func (b brokenBlobs) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := b.Store.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, 5), r}, nil
}

func maskBody(t *testing.T, body io.Reader) string {
	t.Helper()
	r, err := secrets.Policy{Scanner: secrets.Default(), Mask: true}.Body(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// A secret is found wherever the parts of a long body meet.
func TestBodiesOfAnyLength(t *testing.T) {
	line := "password: T0kyo-4ever! " + token + " and a line of text that is about a hundred bytes long, or so\n"
	text := strings.Repeat(line, testsize.Pick(2500, 2500, 6000)) // two chunks or three
	want := strings.NewReplacer("T0kyo-4ever!", "[secret:generic-password]", token, masked).Replace(text)
	for name, r := range map[string]io.Reader{
		"at once": strings.NewReader(text), "in halves": iotest.HalfReader(strings.NewReader(text)), "data with EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		if got := maskBody(t, r); got != want {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
	for _, shift := range []int{0, 1, 7, 64, 100} {
		pad := strings.Repeat("é", shift)
		if got := maskBody(t, strings.NewReader(pad+text)); got != pad+want {
			t.Errorf("shifted by %d: %d bytes, want %d", shift, len(got), len(pad+want))
		}
	}
}

// A long body is masked as the whole text is.
func TestBodyEqualsText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"password=", "Secret-77-x", " ", "\n", token, "https://", "a:b0b-5ecret@host", strings.Repeat("lorem ipsum ", 50), "api_key: ", "0123456789abcdefghij ", "-----BEGIN RSA PRIVATE" + " KEY-----\n", "AbCdEfGh01"}
	for range 2 {
		var text bytes.Buffer
		for text.Len() < testsize.Pick(300_000, 300_000, 700_000) {
			text.WriteString(words[rnd.IntN(len(words))])
		}
		want, _ := secrets.Default().Mask(text.Bytes())
		if got := maskBody(t, bytes.NewReader(text.Bytes())); got != string(want) {
			t.Fatal("the body differs from the text")
		}
	}
}

// In a body of JSON, a secret at the start of a line comes after the letter of an escape.
func TestBodiesOfJSON(t *testing.T) {
	mask := mark.Mask("github-token")
	for text, want := range map[string]string{
		`{"a":"b\n` + token + `\n"}`: `{"a":"b\n` + mask + `\n"}`,
		`["\t` + token + `"]`:        `["\t` + mask + `"]`,
		`C:\\n` + token:              `C:\\n` + token, // a backslash, and a name that begins with n
		`\`:                          `\`,
	} {
		if got := maskBody(t, strings.NewReader(text)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestBodiesThatAreNotText(t *testing.T) {
	for name, body := range map[string]string{
		"zeros": "\x00\x01" + token, "not UTF-8": "\xff\xfe" + token, "empty": "", "image": "\x89PNG\r\n\x1a\n" + strings.Repeat(token+"\x00", 100_000),
	} {
		if got := maskBody(t, strings.NewReader(body)); got != body {
			t.Errorf("%s has changed", name)
		}
	}
	if got := maskBody(t, strings.NewReader("é"+token[:5]+"\xc3")); got != "é"+token[:5]+"\xc3" {
		t.Errorf("an incomplete character: %q", got)
	}
}

func TestErrorsOfBodies(t *testing.T) {
	broken := errors.New("the disk fails")
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true})
	if _, err := log.PutBlob(t.Context(), io.MultiReader(strings.NewReader("text"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("put: %v", err)
	}
	var none secrets.Policy
	if r, err := none.Body(t.Context(), strings.NewReader(token)); err != nil || r == nil {
		t.Errorf("no policy: %v", err)
	}
	if _, err := eventlog.Open(memory.New()).Append(t.Context(), "s", eventlog.New(), custom(`1`, "")); err != nil {
		t.Error(err)
	}
}
