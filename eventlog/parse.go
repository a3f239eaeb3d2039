package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// member is one member of an envelope: its name, as it stands quoted and
// without escapes, and its value without white space outside strings.
type member struct {
	quoted jsontext.Value
	name   string
	value  jsontext.Value
}

// parseFully reads a line in any member order and with white space, builds its
// canonical rendering, and checks the crc over that.
func parseFully(line []byte, session string) (Event, error) {
	members, err := splitMembers(line)
	if err != nil {
		return Event{}, err
	}
	if err := checkVersion(members); err != nil {
		return Event{}, err
	}
	_, sealed := find(members, "crc")
	_, chained := find(members, "hash")
	if !sealed && !chained {
		return Event{}, ErrForeign
	}
	if !sealed || !chained {
		return Event{}, fmt.Errorf("%w: crc and hash go together", errMalformed)
	}
	canonical := render(members)
	e, ok := slice(canonical, session)
	if !ok {
		return Event{}, diagnose(canonical)
	}
	e.own().verbatim = line
	return e, nil
}

// splitMembers reads the top-level object of a line.
func splitMembers(line []byte) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if kind := dec.PeekKind(); kind != '{' {
		if _, err := dec.ReadToken(); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: %v", errMalformed, err)
		}
		return nil, fmt.Errorf("%w: not an object", errMalformed)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("%w: %v", errMalformed, err)
	}
	var members []member
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("%w: %v", errMalformed, err)
		}
		m := member{quoted: quoted.Clone()}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", errMalformed, err)
		}
		m.name = string(name)
		value, err := dec.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("%w: %v", errMalformed, err)
		}
		if m.value, err = compact(value); err != nil {
			return nil, fmt.Errorf("%w: %v", errMalformed, err)
		}
		members = append(members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("%w: %v", errMalformed, err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more than one value on the line", errMalformed)
	}
	return members, nil
}

// compact is a copy of src without white space outside strings, every literal kept
// byte for byte; src must be one well-formed value without duplicate names.
func compact(src jsontext.Value) (jsontext.Value, error) {
	if isCompact(src) {
		return src.Clone(), nil
	}
	return jsontext.AppendFormat(nil, src, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false))
}

var scanners = sync.Pool{New: func() any { return new(rawjson.Scanner) }}

// isCompact reports whether a value is sure to be well-formed and compact.
func isCompact(v jsontext.Value) bool {
	s := scanners.Get().(*rawjson.Scanner)
	defer scanners.Put(s)
	sure := s.Sound(v)
	s.Begin(nil) // the value may be large
	return sure
}

func checkVersion(members []member) error {
	text, ok := find(members, "v")
	if !ok {
		return nil
	}
	v, err := strconv.Atoi(string(text))
	if err == nil && v > Version {
		return &VersionError{What: "envelope", Got: v, Max: Version}
	}
	return nil
}

func find(members []member, name string) (jsontext.Value, bool) {
	for _, m := range members {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

var (
	leadingMembers  = []string{"crc", "v", "seq", "id", "session_id", "type", "timestamp", "cost", "more", "cut", "salt", "hash", "blobs", "metadata"}
	trailingMembers = []string{"digest", "bytes", "commit", "kept", "data"}
)

// render writes members in canonical order. Members that do not form a valid
// envelope give bytes that slice refuses.
func render(members []member) []byte {
	dst := []byte{'{'}
	for _, name := range leadingMembers {
		if value, ok := find(members, name); ok {
			dst = appendMember(dst, `"`+name+`"`, canonicalValue(name, value))
		}
	}
	for _, m := range members {
		if !knownMember(`"` + m.name + `"`) {
			dst = appendMember(dst, string(m.quoted), m.value)
		}
	}
	for _, name := range trailingMembers {
		if value, ok := find(members, name); ok {
			dst = appendMember(dst, `"`+name+`"`, value)
		}
	}
	return append(dst, '}')
}

// canonicalValue rewrites the strings that the log itself writes with its own
// escapes, and orders the members of a cut.
func canonicalValue(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "session_id", "type", "id", "timestamp", "crc", "salt", "hash":
		if text, err := jsontext.AppendUnquote(nil, value); err == nil {
			return appendText(nil, string(text))
		}
	case "cut":
		if inner, err := splitMembers(value); err == nil && len(inner) == 2 {
			size, _ := find(inner, "bytes")
			sum, _ := find(inner, "sha256")
			return append(append(append(append([]byte(`{"bytes":`), size...), `,"sha256":`...), sum...), '}')
		}
	}
	return value
}

func appendMember(dst []byte, quoted string, value jsontext.Value) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(append(append(dst, quoted...), ':'), value...)
}

// diagnose says why slice refused a canonical rendering.
func diagnose(canonical []byte) error {
	prefix := strings.HasPrefix(string(canonical[:min(len(canonical), crcStart)]), `{"crc":"`)
	if !prefix || len(canonical) < bodyStart {
		return fmt.Errorf("%w: crc is not 8 hex digits", errMalformed)
	}
	if digits := crcHex(canonical[bodyStart:]); string(canonical[crcStart:bodyStart-2]) != string(digits[:]) {
		return errCRC
	}
	return fmt.Errorf("%w: envelope is not valid", errMalformed)
}
