package eventlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// sealed makes a finished event, the way an append does.
func sealed(t testing.TB, e Event, prev Hash) Event {
	t.Helper()
	if e.ID == (ulid.ULID{}) {
		e.ID = ulid.MustParse("01KAHG4QZ0ABCDEFGHJKMNPQRS")
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Date(2026, 11, 20, 19, 5, 0, 42, time.UTC)
	}
	if err := e.checkEnvelope(); err != nil {
		t.Fatalf("check: %v", err)
	}
	e.seal(nil, prev, [16]byte{1, 2, 3})
	return e
}

func sample(t testing.TB) Event {
	e := Event{
		Seq: 7, SessionID: `a "b\c`, Type: "note", Cost: 12_300_000,
		Metadata: jsontext.Value(`{ "n": 9007199254740993, "x": "é" }`),
		Data:     jsontext.Value(`{ "text": "hi", "n": [1.0, 1E400, -0] }`),
		more:     2,
	}
	e.rarely().cut = &Cut{Bytes: 211, SHA256: Hash{9}}
	e.rare.blobs = []Digest{DigestOf([]byte("x"))}
	if err := e.SetExtras(jsontext.Value(`{"later":{"a":[1,"}"]},"tags":"data"}`)); err != nil {
		t.Fatal(err)
	}
	return sealed(t, e, Hash{5})
}

func TestLineRoundTrip(t *testing.T) {
	want := sample(t)
	got, err := ParseLine(want.Line(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Seq != want.Seq || got.ID != want.ID || got.SessionID != want.SessionID || got.Type != want.Type ||
		!got.Timestamp.Equal(want.Timestamp) || got.Cost != want.Cost || got.More() != 2 || got.Hash() != want.Hash() {
		t.Errorf("header: got %+v, want %+v", got, want)
	}
	for _, c := range []struct{ name, got, want string }{
		{"metadata", string(got.Metadata), `{"n":9007199254740993,"x":"é"}`},
		{"data", string(got.Data), `{"text":"hi","n":[1.0,1E400,-0]}`},
		{"extras", string(got.Extras()), `"later":{"a":[1,"}"]},"tags":"data"`},
		{"blobs", fmt.Sprint(got.Blobs()), fmt.Sprint(want.Blobs())},
		{"cut", fmt.Sprint(*got.Cut()), fmt.Sprint(Cut{211, Hash{9}})},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
	if !got.chainsFrom(Hash{5}) || got.chainsFrom(Hash{6}) {
		t.Error("the chain does not follow from the hash before, or follows from another")
	}
}

// The chain is computed here once more, from FORMAT.md's words alone.
func TestChainBytes(t *testing.T) {
	e := sample(t)
	line := string(e.Line())
	cut := func(from, to string) string {
		i := strings.Index(line, from)
		return line[i : i+strings.Index(line[i:], to)]
	}
	header := cut(`"v":1`, `,"salt"`)
	meta := cut(`"metadata":`, `,"data":`)
	data := strings.TrimSuffix(line[strings.Index(line, `,"data":`)+len(`,"data":`):], "}")
	h := func(parts ...[]byte) []byte {
		sum := sha256.Sum256(bytes.Join(parts, nil))
		return sum[:]
	}
	salt := append([]byte{1, 2, 3}, make([]byte, 13)...)
	commit := h(salt, h([]byte(meta)), h([]byte(data)))
	prev := Hash{5}
	if want := Hash(h(prev[:], h([]byte(header)), commit)); e.Hash() != want {
		t.Errorf("hash %v, want %v", e.Hash(), want)
	}
}

func TestEveryFlippedBitIsSeen(t *testing.T) {
	e := sample(t)
	for i := range e.Line() {
		for bit := range 8 {
			line := bytes.Clone(e.Line())
			line[i] ^= 1 << bit
			if got, err := ParseLine(line, ""); err == nil && !bytes.Equal(got.line, e.line) {
				t.Fatalf("byte %d bit %d: accepted as %s", i, bit, line)
			}
		}
	}
}

func TestLineInAnotherOrder(t *testing.T) {
	want := sample(t)
	members, err := splitMembers(want.Line())
	if err != nil {
		t.Fatal(err)
	}
	var line []byte
	for i := len(members) - 1; i >= 0; i-- {
		line = append(line, ", "...)
		line = append(append(append(line, members[i].quoted...), " : "...), members[i].value...)
	}
	line = append(append([]byte("{ "), line[1:]...), " }"...)
	// Unknown members count in their order of appearance, so theirs must stay.
	line = bytes.Replace(line, []byte(`"tags"`), []byte(`"TAGS"`), 1)
	line = bytes.Replace(line, []byte(`"later" : {"a":[1,"}"]}`), []byte(`"tags" : "data"`), 1)
	line = bytes.Replace(line, []byte(`"TAGS" : "data"`), []byte(`"later" : {"a":[1,"}"]}`), 1)
	got, err := ParseLine(line, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	if !bytes.Equal(got.Line(), line) {
		t.Error("the line was not kept verbatim")
	}
	if !bytes.Equal(got.line, want.line) {
		t.Errorf("canonical rendering:\ngot  %s\nwant %s", got.line, want.line)
	}
}

func TestBadLines(t *testing.T) {
	good := string(sample(t).line)
	for _, c := range []struct {
		name, line string
		want       error
	}{
		{"empty", "", errMalformed},
		{"not JSON", "hello", errMalformed},
		{"an array", "[1]", errMalformed},
		{"foreign", `{"type":"user"}`, ErrForeign},
		{"crc without hash", `{"crc":"00000000","v":1}`, errMalformed},
		{"hash without crc", `{"v":1,"hash":"00"}`, errMalformed},
		{"truncated", good[:len(good)-1], errMalformed},
		{"two objects", good + good, errMalformed},
		{"wrong crc", `{"crc":"00000000"` + good[len(`{"crc":"00000000"`):], errCRC},
		{"newer envelope", strings.Replace(good, `"v":1`, `"v":2`, 1), ErrVersion},
		{"a byte order mark", "\ufeff" + good, errMalformed},
		{"duplicate member", strings.Replace(good, `"v":1`, `"v":1,"v":1`, 1), errMalformed},
		{"NUL", "\x00\x00\x00", errMalformed},
	} {
		if _, err := ParseLine([]byte(c.line), ""); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := ParseLine([]byte(good), "other"); !errors.Is(err, errWrongSession) {
		t.Errorf("other session: got %v", err)
	}
}

// A line whose crc is right but whose envelope is not must not be sliced into
// nonsense.
func TestForgedEnvelopes(t *testing.T) {
	good := string(sample(t).line)
	for _, c := range [][2]string{
		{`"seq":7`, `"seq":07`}, {`"seq":7`, `"seq":0`}, {`"seq":7`, `"seq":-1`}, {`"seq":7`, `"seq":7.0`},
		{`"seq":7`, `"seq":99999999999999999999`},
		{`"cost":0.0123`, `"cost":0.01230`}, {`"cost":0.0123`, `"cost":1e3`}, {`"cost":0.0123`, `"cost":-1`},
		{`"more":2`, `"more":0`}, {`"cut":{"bytes":211`, `"cut":{"bytes":0`},
		{`2026-11-20T19:05:00.000000042Z`, `2026-11-31T19:05:00.000000042Z`},
		{`2026-11-20T19:05:00.000000042Z`, `2026-02-29T19:05:00.000000042Z`},
		{`2026-11-20T19:05:00.000000042Z`, `2026-11-20T19:05:00.00000042Z`},
		{`"id":"01KAHG`, `"id":"01kahg`}, {`"id":"01KAHG`, `"id":"91KAHG`},
		{`"metadata":{`, `"metadata":[{`}, {`"type":"note"`, `"type":""`},
		{`"tags":"data"`, `"hash":"data"`}, {`,"tags":"data"`, `,"tags"`},
		{`,"data":{`, `,"date":{`}, {`"blobs":["sha256:`, `"blobs":["sha257:`},
		{`"salt":"01`, `"salt":"0G`}, {`"session_id":"a`, `"session_id":"\u0061`},
	} {
		line := []byte(strings.Replace(good, c[0], c[1], 1))
		if bytes.Equal(line, []byte(good)) {
			t.Fatalf("%s: not in the line", c[0])
		}
		finish(line)
		if e, err := ParseLine(line, ""); err == nil && bytes.Equal(e.line, line) {
			t.Errorf("%s for %s: accepted: %s", c[1], c[0], line)
		}
	}
}

func TestTimestamps(t *testing.T) {
	for _, want := range []time.Time{
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2000, 2, 29, 12, 0, 0, 1, time.UTC),
		time.Date(2026, 3, 1, 0, 0, 0, 100, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		text := appendTimestamp(nil, want)
		if got := want.Format("2006-01-02T15:04:05.000000000Z"); got != string(text) {
			t.Errorf("wrote %s, want %s", text, got)
		}
		if got, ok := parseTimestamp(text); !ok || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
	}
	for day := int64(-800_000); day < 2_900_000; day += 97 {
		want := time.Unix(day*86400, 0).UTC()
		if want.Year() < 1 || want.Year() > 9999 {
			continue
		}
		if got, ok := parseTimestamp(appendTimestamp(nil, want)); !ok || !got.Equal(want) {
			t.Fatalf("day %d: got %v, want %v", day, got, want)
		}
	}
}

func TestCosts(t *testing.T) {
	for text, want := range map[string]Cost{
		"0": 0, "1": Dollar, "0.000000001": 1, "0.0123": 12_300_000, "12.5": 12_500_000_000, "1.10": 1_100_000_000,
	} {
		got, err := ParseCost(text)
		if err != nil || got != want {
			t.Errorf("ParseCost(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".1", "-1", "+1", "1e3", "0.0000000001", "99999999999", "1 ", "NaN"} {
		if got, err := ParseCost(text); !errors.Is(err, ErrInvalidCost) {
			t.Errorf("ParseCost(%q) = %v, %v", text, got, err)
		}
	}
	if got, err := USD(0.1); err != nil || got+got+got != 300_000_000 || (got+got+got).String() != "0.3" {
		t.Errorf("three times 0.1 is %v (%v)", got+got+got, err)
	}
}
