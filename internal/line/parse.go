package line

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Strings are strings that many lines have. Parsed lines share them, which avoids
// allocations.
type Strings struct {
	// Session is the required session id. An empty Session allows any id.
	Session string
	// Types maps each known type to itself.
	Types map[string]string
}

// Parse parses one line without its newline and checks its crc. The Line shares the
// bytes of text. Errors match ErrForeign, ErrCRC, ErrMalformed or ErrSession, or are a
// *VersionError.
func (l *Line) Parse(text []byte, known Strings) error {
	if !l.slice(text, known) {
		if err := l.parseFully(text, known); err != nil {
			return err
		}
	}
	if known.Session != "" && l.Session != known.Session {
		return fmt.Errorf("%w: %q", ErrSession, Clip(l.Session))
	}
	return nil
}

// slice parses a canonical line with a correct crc. It returns false for any other
// line.
func (l *Line) slice(text []byte, known Strings) bool {
	if !Intact(text) {
		return false
	}
	s := slicer{text: text, at: bodyStart}
	*l = Line{Sealed: Sealed{raw: text}}
	return s.header(l, known) && s.chain(l) && s.envelope(l) && s.payload(l)
}

// parseFully parses a line with any member order and white space. It checks the crc of
// the canonical rendering.
func (l *Line) parseFully(text []byte, known Strings) error {
	members, err := rawjson.Members(text)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if err := checkVersion(members); err != nil {
		return err
	}
	_, sealed := rawjson.Value(members, "crc")
	_, chained := rawjson.Value(members, "hash")
	if !sealed && !chained {
		return ErrForeign
	}
	if !sealed || !chained {
		return fmt.Errorf("%w: the line has only one of crc and hash", ErrMalformed)
	}
	canonical, err := Canonicalize(members)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if !l.slice(canonical, known) {
		return diagnose(canonical)
	}
	l.verbatim = text
	return nil
}

func checkVersion(members []rawjson.Member) error {
	text, ok := rawjson.Value(members, "v")
	if !ok {
		return nil
	}
	if v, err := strconv.Atoi(string(text)); err == nil && v > Version {
		return &VersionError{Got: v}
	}
	return nil
}

var (
	leadingMembers  = []string{"crc", "v", "seq", "id", "session_id", "type", "timestamp", "cost", "more", "cut", "salt", "hash", "blobs", "metadata"}
	trailingMembers = []string{"digest", "bytes", "commit", "kept", "data"}
)

// Canonicalize renders members in canonical order. It does not check that the members
// are a valid envelope.
func Canonicalize(members []rawjson.Member) ([]byte, error) {
	var ordered []rawjson.Member
	for _, name := range leadingMembers {
		if value, ok := rawjson.Value(members, name); ok {
			ordered = append(ordered, rawjson.Member{Name: name, Value: canonicalValue(name, value)})
		}
	}
	for _, m := range members {
		if !KnownMember(m.Name) {
			ordered = append(ordered, m)
		}
	}
	for _, name := range trailingMembers {
		if value, ok := rawjson.Value(members, name); ok {
			ordered = append(ordered, rawjson.Member{Name: name, Value: value})
		}
	}
	return rawjson.Compact(rawjson.Object(ordered))
}

// canonicalValue renders known strings with the log's own escapes and orders the
// members of cut.
func canonicalValue(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "session_id", "type", "id", "timestamp", "crc", "salt", "hash":
		if text, ok := rawjson.Text(value); ok {
			return appendText(nil, text)
		}
	case "cut":
		if inner, err := rawjson.Members(value); err == nil && len(inner) == 2 {
			size, _ := rawjson.Value(inner, "bytes")
			sum, _ := rawjson.Value(inner, "sha256")
			return rawjson.Object([]rawjson.Member{{Name: "bytes", Value: size}, {Name: "sha256", Value: sum}})
		}
	}
	return value
}

// diagnose returns the reason why slice rejected a canonical rendering.
func diagnose(canonical []byte) error {
	prefix := strings.HasPrefix(string(canonical[:min(len(canonical), crcStart)]), `{"crc":"`)
	if !prefix || len(canonical) < bodyStart {
		return fmt.Errorf("%w: crc is not 8 hex digits", ErrMalformed)
	}
	if digits := crcHex(canonical[bodyStart:]); string(canonical[crcStart:bodyStart-2]) != string(digits[:]) {
		return ErrCRC
	}
	return fmt.Errorf("%w: the envelope has a missing or invalid member", ErrMalformed)
}

// KnownMember reports whether the envelope has a member with this name.
func KnownMember(name string) bool {
	switch name {
	case "crc", "v", "seq", "id", "session_id", "type", "timestamp", "cost", "more", "cut",
		"salt", "hash", "blobs", "metadata", "data", "digest", "bytes", "commit", "kept":
		return true
	default:
		return false
	}
}
