package line

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/internal/rawjson"
)

// FuzzParseLine checks that no input panics, that an accepted line renders to the same
// canonical bytes, and that slicing and the full parse agree on canonical lines.
func FuzzParseLine(f *testing.F) {
	f.Add(sampleLine())
	f.Add([]byte(`{"crc":"00000000","v":1,"seq":1}`))
	f.Add([]byte(`{"type":"user"}`))
	for _, lines := range goldenLines(f) {
		for _, text := range lines {
			if len(text) < 4096 {
				f.Add(text)
				f.Add(reverseMembers(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, candidate := range [][]byte{text, withCRC(text), withCanonicalCRC(text)} {
			var l, sliced Line
			err := l.Parse(candidate, Strings{})
			ok := sliced.slice(candidate, Strings{})
			if ok && (err != nil || !bytes.Equal(sliced.raw, l.raw)) {
				t.Fatalf("slice accepts the line, Parse does not: %v\n%s", err, candidate)
			}
			compareParsers(t, candidate, ok)
			if err == nil {
				checkRoundTrip(t, &l)
			}
		}
	})
}

// compareParsers compares the full parse with slicing. sliced is the result of
// slicing.
func compareParsers(t *testing.T, text []byte, sliced bool) {
	t.Helper()
	var full Line
	err := full.parseFully(text, Strings{})
	if err == nil && bytes.Equal(full.raw, text) && !sliced {
		t.Fatalf("slice rejects a canonical line:\n%s", text)
	}
	if !rawjson.IsCompact(text) || !sliced {
		return // a malformed or non-compact text cannot be a canonical line
	}
	if err != nil {
		t.Fatalf("slice accepts the line, the full parse does not: %v\n%s", err, text)
	}
	if !bytes.Equal(full.raw, text) {
		t.Fatalf("the canonical rendering of a sliced line differs:\n%s\n%s", text, full.raw)
	}
}

// checkRoundTrip checks that an accepted line can be parsed again, and rendered again
// from its fields.
func checkRoundTrip(t *testing.T, l *Line) {
	t.Helper()
	again := parse(t, l.Canonical())
	if !bytes.Equal(again.raw, l.raw) || again.Hash() != l.Hash() || again.Commit() != l.Commit() {
		t.Fatalf("the canonical line has other fields:\n%s\n%s", l.raw, again.raw)
	}
	if header := l.appendHeader(nil); !bytes.Equal(header, l.Header()) {
		t.Fatalf("header is rendered as\n%s\nnot\n%s", header, l.Header())
	}
	if l.Redacted {
		return
	}
	if fresh := l.Relocate(); !bytes.Equal(fresh, l.raw) {
		t.Fatalf("rendered again:\n%s\n%s", fresh, l.raw)
	}
}

func withCRC(text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) > bodyStart {
		finish(text, 0)
	}
	return text
}

// withCanonicalCRC gives a line in any form the crc of its canonical rendering.
func withCanonicalCRC(text []byte) []byte {
	members, err := rawjson.Members(text)
	if err != nil {
		return text
	}
	canonical, err := Canonicalize(members)
	if crc, ok := rawjson.Value(members, "crc"); err == nil && ok && len(canonical) > bodyStart {
		digits := crcHex(canonical[bodyStart:])
		return bytes.Replace(text, crc, slices.Concat([]byte(`"`), digits[:], []byte(`"`)), 1)
	}
	return text
}

// FuzzEnvelope checks that a rendered line parses to the same fields, in any order of
// members, and not with a flipped bit.
func FuzzEnvelope(f *testing.F) {
	f.Add(int64(7), "0123456789abcdef", `a "b\c`, "note", int64(1_700_000_000), int64(42), int64(12_300_000), int32(2), int64(211),
		[]byte(`{ "n": 9007199254740993 }`), []byte(`{"later":[1,"}"]}`), []byte(`{"a": [1.0, 1E400, -0]}`), uint8(3), uint16(77))
	f.Add(int64(1), "", "é", "message_added/2", int64(-62135596800), int64(0), int64(0), int32(0), int64(0),
		[]byte(nil), []byte(`{}`), []byte(`null`), uint8(4), uint16(500))
	f.Add(int64(1<<62), "zzzzzzzzzzzzzzzz", `"`, `\`, int64(253402300799), int64(999999999), int64(1), int32(1<<30), int64(1<<62),
		[]byte(`{"metadata":{"data":{}}}`), []byte(`{"":0,"dat\u0061x":"\\\""}`), []byte(`"\ud83d\ude00"`), uint8(5), uint16(9))
	f.Fuzz(func(t *testing.T, seq int64, id, session, typ string, sec, nsec, cost int64, more int32, cut int64, metadata, extras, data []byte, blobs uint8, flip uint16) {
		l := Line{Seq: seq, Session: session, Type: typ, Timestamp: time.Unix(sec, nsec).UTC(), Cost: cost, More: more}
		copy(l.ID[:], id)
		year := l.Timestamp.Year()
		if seq < 1 || more < 0 || cost < 0 || year < 1 || year > 9999 || CheckName(session, MaxSession) != nil || CheckName(typ, MaxType) != nil ||
			!fill(&l, metadata, extras, data, cut, blobs) {
			return
		}
		canonical := l.Append(nil, Hash{5}, sampleSalt)
		for _, text := range [][]byte{canonical, reverseMembers(canonical)} {
			got := parse(t, text)
			if !bytes.Equal(got.raw, canonical) || !bytes.Equal(text, canonical) && !bytes.Equal(got.NotCanonical(), text) {
				t.Fatalf("read\n%s\nas\n%s", text, got.raw)
			}
			sameFields(t, l, got)
			if !got.Follows(Hash{5}) || got.Follows(Hash{6}) {
				t.Fatalf("Follows is wrong for the previous hash or for another hash:\n%s", text)
			}
			checkRoundTrip(t, &got)
		}
		damaged := bytes.Clone(canonical)
		damaged[int(flip/8)%len(damaged)] ^= 1 << (flip % 8)
		var got Line
		if err := got.Parse(damaged, Strings{}); err == nil && !bytes.Equal(got.raw, canonical) {
			t.Fatalf("accepted with a bit flipped:\n%s\n%s", canonical, damaged)
		}
	})
}

// fill gives a line content. It returns false for content that an append would reject.
func fill(l *Line, metadata, extras, data []byte, cut int64, blobs uint8) bool {
	var err error
	if l.Data, err = rawjson.Compact(data); err != nil {
		return false
	}
	if len(metadata) > 0 {
		if l.Metadata, err = rawjson.Compact(metadata); err != nil || l.Metadata[0] != '{' {
			return false
		}
	}
	if members, err := rawjson.Members(extras); len(extras) > 0 {
		if err != nil || slices.ContainsFunc(members, func(m rawjson.Member) bool { return KnownMember(m.Name) }) {
			return false
		}
		l.Extras = bytes.TrimSuffix(bytes.TrimPrefix(rawjson.Object(members), []byte("{")), []byte("}"))
	}
	if cut > 0 {
		l.Cut = Cut{Bytes: cut, SHA256: Hash{9}}
	}
	for i := range blobs % 4 {
		l.Blobs = append(l.Blobs, Digest(sha256.Sum256([]byte{i})))
	}
	if blobs%8 >= 4 {
		l.Digest, l.Bytes, l.Data = Digest(sha256.Sum256(l.Data)), int64(len(l.Data)), nil
		l.Blobs = append(l.Blobs, l.Digest)
	}
	slices.Sort(l.Blobs)
	l.Blobs = slices.Compact(l.Blobs)
	return true
}

// FuzzHash checks that hashes and digests have one form each.
func FuzzHash(f *testing.F) {
	f.Add(strings.Repeat("fedcba9876543210", 4))
	f.Add(DigestPrefix + strings.Repeat("0123456789abcdef", 4))
	f.Add(strings.Repeat("FEDCBA9876543210", 4))
	f.Fuzz(func(t *testing.T, text string) {
		hex := strings.Trim(text, "0123456789abcdef") == ""
		if isHex([]byte(text)) != hex {
			t.Fatalf("isHex(%q) is %v", text, !hex)
		}
		if _, ok := ParseHash(text); ok != (hex && len(text) == 64) {
			t.Fatalf("ParseHash(%q): %v", text, ok)
		}
		digits, prefixed := strings.CutPrefix(text, DigestPrefix)
		sum, ok := DigestSum(text)
		if want := prefixed && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""; ok != want || ok && Digest(sum) != text {
			t.Fatalf("DigestSum(%q): %v", text, ok)
		}
	})
}
