package eventlog

import (
	"bytes"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
)

// goldenLines are the lines of all golden logs.
func goldenLines(t testing.TB) (lines [][]byte) {
	t.Helper()
	paths, err := filepath.Glob("../testdata/golden/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d golden logs: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))...)
	}
	return lines
}

// goldenEvents are the events of all golden logs that have data.
func goldenEvents(t testing.TB) iter.Seq[Event] {
	lines := goldenLines(t)
	return func(yield func(Event) bool) {
		for _, line := range lines {
			if e, err := ParseLine(line, ""); err == nil && e.Data != nil && !yield(e) {
				return
			}
		}
	}
}

// No input panics. What is accepted renders to the same canonical line again,
// and slicing and the full parse agree on every line that is canonical.
func FuzzParseLine(f *testing.F) {
	e := sample(f)
	f.Add(e.Line())
	f.Add([]byte(`{"crc":"00000000","v":1,"seq":1}`))
	f.Add([]byte(`{"type":"user"}`))
	for _, line := range goldenLines(f) {
		if len(line) < 4096 {
			f.Add(line)
			f.Add(inReverse(line))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, candidate := range [][]byte{line, withCRC(line), withCanonicalCRC(line)} {
			e, err := ParseLine(candidate, "")
			sliced, ok := slice(candidate, "")
			if ok && (err != nil || !bytes.Equal(sliced.line, e.line)) {
				t.Fatalf("sliced, but not read: %v\n%s", err, candidate)
			}
			agree(t, candidate, ok)
			if err == nil {
				sound(t, e)
			}
		}
	})
}

// agree compares the full parse with slicing, which took line or did not.
func agree(t *testing.T, line []byte, sliced bool) {
	t.Helper()
	full, err := parseFully(line, "")
	if err == nil && bytes.Equal(full.line, line) && !sliced {
		t.Fatalf("canonical, but not sliced:\n%s", line)
	}
	if value, bad := compact(line); bad != nil || !bytes.Equal(value, line) || !sliced {
		return // not well-formed, or not compact: its checksum stands for no canonical line
	}
	if err != nil {
		t.Fatalf("sliced, but the full parse refuses it: %v\n%s", err, line)
	}
	if !bytes.Equal(full.line, line) {
		t.Fatalf("sliced, but its canonical rendering is another:\n%s\n%s", line, full.line)
	}
}

// sound makes sure that an event that was read can be read again, and rendered
// anew from its fields.
func sound(t *testing.T, e Event) {
	t.Helper()
	again, err := ParseLine(e.line, e.SessionID)
	if err != nil {
		t.Fatalf("canonical line refused: %v\n%s", err, e.line)
	}
	if diff := cmp.Diff(string(again.line), string(e.line)); diff != "" || again.Hash() != e.Hash() || again.commit() != e.commit() {
		t.Fatalf("canonical line reads otherwise: %s", diff)
	}
	if header := e.appendHeader(nil); !bytes.Equal(header, e.header()) {
		t.Fatalf("header is rendered as\n%s\nnot\n%s", header, e.header())
	}
	for _, accessor := range accessors {
		_, _, _ = accessor(&e)
	}
	if e.Redacted() {
		return
	}
	if err := e.rebuild(); err != nil || !bytes.Equal(e.line, again.line) {
		t.Fatalf("rebuilt: %v\n%s\n%s", err, e.line, again.line)
	}
}

func withCRC(line []byte) []byte {
	line = bytes.Clone(line)
	if len(line) > bodyStart {
		finish(line)
	}
	return line
}

// withCanonicalCRC gives a line in any form the crc of its canonical rendering.
func withCanonicalCRC(line []byte) []byte {
	members, err := splitMembers(line)
	if err != nil {
		return line
	}
	canonical := render(members)
	if crc, ok := find(members, "crc"); ok && len(canonical) > bodyStart {
		digits := crcHex(canonical[bodyStart:])
		return bytes.Replace(line, crc, slices.Concat([]byte(`"`), digits[:], []byte(`"`)), 1)
	}
	return line
}

// inReverse gives the members of a line the other way round, with white space
// between them; unknown members, whose order counts, keep theirs.
func inReverse(line []byte) []byte {
	members, err := splitMembers(line)
	if err != nil {
		return line
	}
	var known, unknown []member
	for _, m := range members {
		if knownMember(`"` + m.name + `"`) {
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
		out = append(append(append(out, m.quoted...), " : "...), m.value...)
	}
	return append(out, " }"...)
}

// Whatever an event holds, its line reads as what was sealed, in any order of
// members, and not with a bit flipped.
func FuzzEnvelope(f *testing.F) {
	f.Add(int64(7), "0123456789abcdef", `a "b\c`, "note", int64(1_700_000_000), int64(42), int64(12_300_000), int32(2), int64(211),
		[]byte(`{ "n": 9007199254740993 }`), []byte(`{"later":[1,"}"]}`), []byte(`{"a": [1.0, 1E400, -0]}`), uint8(3), uint16(77))
	f.Add(int64(1), "", "é", "message_added/2", int64(-62135596800), int64(0), int64(0), int32(0), int64(0),
		[]byte(nil), []byte(`{}`), []byte(`null`), uint8(4), uint16(500))
	f.Add(int64(1<<62), "zzzzzzzzzzzzzzzz", `"`, `\`, int64(253402300799), int64(999999999), int64(1), int32(1<<30), int64(1<<62),
		[]byte(`{"metadata":{"data":{}}}`), []byte(`{"":0,"dat\u0061x":"\\\""}`), []byte(`"\ud83d\ude00"`), uint8(5), uint16(9))
	f.Fuzz(func(t *testing.T, seq int64, id, session, typ string, sec, nsec, cost int64, more int32, cut int64, metadata, extras, data []byte, blobs uint8, flip uint16) {
		e := Event{
			Seq: seq, SessionID: session, Type: Type(typ), Timestamp: time.Unix(sec, nsec), Cost: Cost(cost), Metadata: metadata, Data: data, more: more,
		}
		copy(e.ID[:], id)
		if seq < 1 || more < 0 || checkSessionID(session) != nil || !fill(&e, extras, cut, blobs) {
			return
		}
		if e.checkEnvelope() != nil {
			return
		}
		e.seal(nil, Hash{5}, [16]byte{1, 2, 3})
		for _, line := range [][]byte{e.line, inReverse(e.line)} {
			got, err := ParseLine(line, session)
			if err != nil {
				t.Fatalf("%v\n%s", err, line)
			}
			if !bytes.Equal(got.line, e.line) || !bytes.Equal(got.Line(), line) {
				t.Fatalf("read\n%s\nas\n%s", line, got.line)
			}
			if diff := cmp.Diff(fieldsOf(&e), fieldsOf(&got)); diff != "" {
				t.Fatalf("read otherwise than sealed (-sealed +read):\n%s", diff)
			}
			if !got.chainsFrom(Hash{5}) || got.chainsFrom(Hash{6}) {
				t.Fatalf("the chain does not follow from the hash before, or follows from another:\n%s", line)
			}
			sound(t, got)
		}
		damaged := bytes.Clone(e.line)
		damaged[int(flip/8)%len(damaged)] ^= 1 << (flip % 8)
		if got, err := ParseLine(damaged, ""); err == nil && !bytes.Equal(got.line, e.line) {
			t.Fatalf("accepted with a bit flipped:\n%s\n%s", e.line, damaged)
		}
	})
}

// fill gives e what few events have.
func fill(e *Event, extras []byte, cut int64, blobs uint8) bool {
	if len(extras) > 0 && e.SetExtras(extras) != nil {
		return false
	}
	if cut > 0 {
		e.own().cut = &Cut{Bytes: cut, SHA256: Hash{9}}
	}
	for i := range int(blobs % 4) {
		if e.AddBlobs(DigestOf([]byte{byte(i)})) != nil {
			return false
		}
	}
	if d := DigestOf(e.Data); blobs%8 >= 4 && len(e.Data) > 0 && !e.Type.Known() {
		e.own().digest, e.rare.bytes = d, int64(len(e.Data))
		return e.AddBlobs(d) == nil
	}
	return true
}

// fields are what an event says, but for its line.
type fields struct {
	Seq                            int64
	ID                             ulid.ULID
	Session, Type, Metadata, Extra string
	Timestamp                      time.Time
	Cost                           Cost
	More                           int
	Cut                            *Cut
	Blobs                          []Digest
	Data                           jsontext.Value
	Digest                         Digest
	Bytes                          int64
	Hash                           Hash
}

func fieldsOf(e *Event) fields {
	f := fields{
		Seq: e.Seq, ID: e.ID, Session: e.SessionID, Type: string(e.Type), Metadata: string(e.Metadata), Extra: string(e.Extras()),
		Timestamp: e.Timestamp, Cost: e.Cost, More: e.More(), Cut: e.Cut(), Blobs: e.Blobs(), Data: e.Data, Hash: e.Hash(),
	}
	var spilled bool
	if f.Digest, f.Bytes, spilled = e.Spilled(); spilled {
		f.Data = nil // it stands in the blob
	}
	return f
}
