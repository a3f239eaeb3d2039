package line

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/rawjson"
)

var sampleSalt = [16]byte{1, 2, 3}

// sample has every member of a line that is neither redacted nor spilled.
func sample() Line {
	return Line{
		Seq: 7, ID: ulid.MustParse("01KAHG4QZ0ABCDEFGHJKMNPQRS"), Session: `a "b\c`, Type: "note",
		Timestamp: time.Date(2026, 11, 20, 19, 5, 0, 42, time.UTC), Cost: 12_300_000, More: 2,
		Cut: Cut{Bytes: 211, SHA256: Hash{9}}, Blobs: []string{Digest(sha256.Sum256([]byte("x")))},
		Metadata: []byte(`{"n":9007199254740993,"x":"é"}`), Extras: []byte(`"later":{"a":[1,"}"]},"tags":"data"`),
		Data: []byte(`{"text":"hi","n":[1.0,1E400,-0]}`),
	}
}

// sampleLine renders the sample after a line with hash 5.
func sampleLine() []byte {
	l := sample()
	return l.Append(nil, Hash{5}, sampleSalt)
}

// parse parses a valid line.
func parse(t testing.TB, text []byte) Line {
	t.Helper()
	var l Line
	if err := l.Parse(text, Strings{}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return l
}

// sameFields compares the fields of two lines.
func sameFields(t testing.TB, want, got Line) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(Sealed{}), cmpopts.IgnoreUnexported(Line{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the parsed line has other fields (-written +read):\n%s", diff)
	}
}

func TestLineRoundTrip(t *testing.T) {
	got := parse(t, sampleLine())
	sameFields(t, sample(), got)
	if got.Salt() != sampleSalt {
		t.Errorf("salt is %x", got.Salt())
	}
	if !got.Follows(Hash{5}) || got.Follows(Hash{6}) {
		t.Error("Follows is wrong for the previous hash or for another hash")
	}
}

// TestRenderedLine compares a line after Append with the same line parsed: all fields
// and offsets are equal, also after other bytes and without the optional members.
func TestRenderedLine(t *testing.T) {
	variants := map[string]func(*Line){
		"all members":      func(*Line) {},
		"no metadata":      func(l *Line) { l.Metadata = nil },
		"empty metadata":   func(l *Line) { l.Metadata = []byte{} },
		"no extras":        func(l *Line) { l.Extras = nil },
		"neither":          func(l *Line) { l.Metadata, l.Extras = nil, nil },
		"no blobs, no cut": func(l *Line) { l.Blobs, l.Cut = nil, Cut{} },
		"local time":       func(l *Line) { l.Timestamp = l.Timestamp.In(time.FixedZone("east", 3600)) },
		"now":              func(l *Line) { l.Timestamp = time.Now() },
		"spilled":          func(l *Line) { l.Digest, l.Bytes, l.Data = "sha256:"+strings.Repeat("a", 64), 70_000, nil },
	}
	for name, change := range variants {
		t.Run(name, func(t *testing.T) {
			l := sample()
			change(&l)
			before := []byte("other bytes")
			text := l.Append(before, Hash{5}, sampleSalt)[len(before):]
			want := parse(t, text)
			if diff := cmp.Diff(want, l, cmp.AllowUnexported(Line{}, Sealed{}, offsets{})); diff != "" {
				t.Fatalf("the rendered line is not the parsed one (-parsed +rendered):\n%s", diff)
			}
		})
	}
}

// TestChainBytes computes the chain again, directly from FORMAT.md.
func TestChainBytes(t *testing.T) {
	line := string(sampleLine())
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
	l := parse(t, []byte(line))
	if want := Hash(h(prev[:], h([]byte(header)), commit)); l.Hash() != want {
		t.Errorf("hash %x, want %x", l.Hash(), want)
	}
}

func TestFlippedBits(t *testing.T) {
	good := sampleLine()
	for i := range good {
		for bit := range 8 {
			text := bytes.Clone(good)
			text[i] ^= 1 << bit
			var l Line
			if err := l.Parse(text, Strings{}); err == nil && !bytes.Equal(l.Canonical(), good) {
				t.Fatalf("byte %d bit %d: accepted as %s", i, bit, text)
			}
		}
	}
}

func TestMemberOrder(t *testing.T) {
	text := reverseMembers(sampleLine())
	got := parse(t, text)
	if !bytes.Equal(got.NotCanonical(), text) {
		t.Error("NotCanonical does not return the parsed bytes")
	}
	if !bytes.Equal(got.Canonical(), sampleLine()) {
		t.Errorf("canonical rendering:\ngot  %s\nwant %s", got.Canonical(), sampleLine())
	}
	sameFields(t, sample(), got)
}

// reverseMembers reverses the known members of a line and adds white space between
// members. The unknown members stay in order, because their order is part of the hash.
func reverseMembers(text []byte) []byte {
	members, err := rawjson.Members(text)
	if err != nil {
		return text
	}
	var known, unknown []rawjson.Member
	for _, m := range members {
		if KnownMember(m.Name) {
			known = append(known, m)
		} else {
			unknown = append(unknown, m)
		}
	}
	slices.Reverse(known)
	out := []byte("{ ")
	for i, m := range slices.Concat(known, unknown) {
		if i > 0 {
			out = append(out, " ,\t"...)
		}
		out = append(append(m.AppendName(out), " : "...), m.Value...)
	}
	return append(out, " }"...)
}

func TestBadLines(t *testing.T) {
	good := string(sampleLine())
	for _, c := range []struct {
		name, line string
		want       error
	}{
		{"empty", "", ErrMalformed},
		{"not JSON", "hello", ErrMalformed},
		{"an array", "[1]", ErrMalformed},
		{"foreign", `{"type":"user"}`, ErrForeign},
		{"crc without hash", `{"crc":"00000000","v":1}`, ErrMalformed},
		{"hash without crc", `{"v":1,"hash":"00"}`, ErrMalformed},
		{"truncated", good[:len(good)-1], ErrMalformed},
		{"two objects", good + good, ErrMalformed},
		{"wrong crc", `{"crc":"00000000"` + good[len(`{"crc":"00000000"`):], ErrCRC},
		{"a byte order mark", "\ufeff" + good, ErrMalformed},
		{"duplicate member", strings.Replace(good, `"v":1`, `"v":1,"v":1`, 1), ErrMalformed},
		{"NUL", "\x00\x00\x00", ErrMalformed},
	} {
		var l Line
		if err := l.Parse([]byte(c.line), Strings{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	var l Line
	var version *VersionError
	if err := l.Parse([]byte(strings.Replace(good, `"v":1`, `"v":2`, 1)), Strings{}); !errors.As(err, &version) || version.Got != 2 {
		t.Errorf("newer envelope: got %v", err)
	}
	if err := l.Parse([]byte(good), Strings{Session: "other"}); !errors.Is(err, ErrSession) {
		t.Errorf("other session: got %v", err)
	}
}

// Parse must reject a line with a correct crc and an invalid envelope.
func TestInvalidEnvelopes(t *testing.T) {
	good := string(sampleLine())
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
		text := []byte(strings.Replace(good, c[0], c[1], 1))
		if bytes.Equal(text, []byte(good)) {
			t.Fatalf("%s: not in the line", c[0])
		}
		finish(text, 0)
		var l Line
		if err := l.Parse(text, Strings{}); err == nil && bytes.Equal(l.Canonical(), text) {
			t.Errorf("%s for %s: accepted: %s", c[1], c[0], text)
		}
	}
}

// An erased line keeps its header, hash and commit, so its chain still verifies.
func TestErase(t *testing.T) {
	whole := parse(t, sampleLine())
	erased := parse(t, whole.Erase([]byte(`{"role":"user"}`)))
	if !erased.Redacted || string(erased.Kept) != `{"role":"user"}` || erased.Data != nil || erased.Metadata != nil || erased.Extras != nil {
		t.Errorf("erased: %s", erased.Canonical())
	}
	if erased.Hash() != whole.Hash() || erased.Commit() != whole.Commit() || !erased.Follows(Hash{5}) {
		t.Error("the erased line is another link of the chain")
	}
}

// Moving data into a blob and back does not change the hash.
func TestRelocate(t *testing.T) {
	inline := parse(t, sampleLine())
	moved := inline
	moved.Data, moved.Digest, moved.Bytes = nil, Digest(sha256.Sum256(inline.Data)), int64(len(inline.Data))
	moved.Blobs = append(slices.Clone(inline.Blobs), moved.Digest)
	slices.Sort(moved.Blobs)
	spilled := parse(t, moved.Relocate())
	if spilled.Hash() != inline.Hash() || !spilled.Follows(Hash{5}) || spilled.Digest == "" {
		t.Errorf("spilled: %s", spilled.Canonical())
	}
	spilled.Data, spilled.Digest, spilled.Bytes, spilled.Blobs = inline.Data, "", 0, inline.Blobs
	if back := spilled.Relocate(); !bytes.Equal(back, sampleLine()) {
		t.Errorf("brought back as\n%s\nnot\n%s", back, sampleLine())
	}
}

func BenchmarkParse(b *testing.B) {
	plain := sample()
	plain.Cost, plain.More, plain.Cut, plain.Blobs, plain.Metadata, plain.Extras = 0, 0, Cut{}, nil, nil, nil
	plain.Data = []byte(`{"role":"user","parts":[{"type":"text","text":"a message of ordinary length, such as people write to their agents every day"}]}`)
	for name, text := range map[string][]byte{"plain": plain.Append(nil, Hash{}, sampleSalt), "everything": sampleLine()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			known := Strings{Session: sample().Session, Types: map[string]string{"note": "note"}}
			for b.Loop() {
				var l Line
				if err := l.Parse(text, known); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
