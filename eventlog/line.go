package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// The envelope version this program writes, and the highest it reads.
const Version = 1

const (
	crcStart  = len(`{"crc":"`)
	bodyStart = len(`{"crc":"00000000",`)

	// maxEnvelope bounds metadata and unknown members together.
	maxEnvelope = 64 << 10
	// maxAppend bounds the lines of one append, so that a torn tail is found
	// by reading no more than that.
	maxAppend = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors inside a CorruptError.
var (
	errCRC          = errors.New("checksum does not match")
	errMalformed    = errors.New("malformed line")
	errWrongSession = errors.New("line of another session")
)

// ParseLine reads one line, without its newline, as docs/FORMAT.md describes
// it. The event shares line's bytes. A line that names another session than
// session is refused, unless session is empty.
//
// Lines in canonical form are sliced; others go through a full parse. The crc
// is checked either way. ErrForeign is a JSON object that no log wrote;
// VersionError a line of a newer version; any other error is damage.
func ParseLine(line []byte, session string) (Event, error) {
	e, ok := slice(line, session)
	if !ok {
		var err error
		if e, err = parseFully(line, session); err != nil {
			return Event{}, err
		}
	}
	if session != "" && e.SessionID != session {
		return Event{}, fmt.Errorf("%w: %q", errWrongSession, clip(e.SessionID))
	}
	return e, nil
}

// slice reads a canonical line with a correct crc; ok is false for any other.
func slice(line []byte, session string) (e Event, ok bool) {
	if len(line) < bodyStart || len(line) > math.MaxUint32 || string(line[:crcStart]) != `{"crc":"` ||
		line[bodyStart-2] != '"' || line[bodyStart-1] != ',' {
		return e, false
	}
	var crc [4]byte
	if !decodeHex(crc[:], line[crcStart:crcStart+8]) {
		return e, false
	}
	sum := uint32(crc[0])<<24 | uint32(crc[1])<<16 | uint32(crc[2])<<8 | uint32(crc[3])
	if crc32.Checksum(line[bodyStart:], castagnoli) != sum {
		return e, false
	}
	s := slicer{line: line, at: bodyStart}
	e.line = line
	return e, s.header(&e, session) && s.chain(&e) && s.envelope(&e) && s.payload(&e)
}

// slicer walks a canonical line.
type slicer struct {
	line []byte
	at   int
}

func (s *slicer) header(e *Event, session string) bool {
	if !s.literal(`"v":1,"seq":`) {
		return false
	}
	var ok bool
	if e.Seq, ok = s.integer(); !ok || e.Seq < 1 {
		return false
	}
	if !s.literal(`,"id":"`) || !s.ulid(&e.ID) || !s.literal(`","session_id":`) {
		return false
	}
	if e.SessionID, ok = s.text(session); !ok || e.SessionID != session && checkSessionID(e.SessionID) != nil {
		return false
	}
	if !s.literal(`,"type":`) {
		return false
	}
	name, ok := s.text("")
	if !ok || checkType(name) != nil {
		return false
	}
	e.Type = Type(name)
	if !s.literal(`,"timestamp":"`) || len(s.line)-s.at < timestampLen {
		return false
	}
	if e.Timestamp, ok = parseTimestamp(s.line[s.at : s.at+timestampLen]); !ok {
		return false
	}
	s.at += timestampLen
	return s.literal(`"`) && s.optionals(e)
}

func (s *slicer) optionals(e *Event) bool {
	if s.literal(`,"cost":`) {
		token := s.token()
		cost, err := ParseCost(string(token))
		if err != nil || cost <= 0 || cost.String() != string(token) {
			return false
		}
		e.Cost = cost
	}
	if s.literal(`,"more":`) {
		more, ok := s.integer()
		if !ok || more < 1 || more > math.MaxInt32 {
			return false
		}
		e.more = int32(more)
	}
	if s.literal(`,"cut":{"bytes":`) {
		cut := new(Cut)
		var ok bool
		if cut.Bytes, ok = s.integer(); !ok || cut.Bytes < 1 {
			return false
		}
		if !s.literal(`,"sha256":"`) || !s.hex(cut.SHA256[:]) || !s.literal(`"}`) {
			return false
		}
		e.rarely().cut = cut
	}
	e.off.headerEnd = uint32(s.at)
	return true
}

func (s *slicer) chain(e *Event) bool {
	if s.literal(`,"salt":"`) {
		if !s.hexDigits(32) || !s.literal(`"`) {
			return false
		}
	} else {
		e.rarely().redacted = true
	}
	if !s.literal(`,"hash":"`) {
		return false
	}
	e.off.hash = uint32(s.at)
	return s.hexDigits(64) && s.literal(`"`)
}

func (s *slicer) envelope(e *Event) bool {
	if s.literal(`,"blobs":[`) && !s.blobs(e) {
		return false
	}
	e.off.metaStart, e.off.metaEnd = uint32(s.at), uint32(s.at)
	if !s.literal(`,"`) {
		return false
	}
	s.at -= 2
	start := s.at + 1
	if s.literal(`,"metadata":`) {
		value := s.at
		if !s.skip() || s.line[value] != '{' {
			return false
		}
		e.Metadata = s.line[value:s.at:s.at]
	}
	extras := s.at + 1
	for !s.atPayload() {
		if !s.literal(`,`) || !s.unknownName() || !s.literal(`:`) || !s.skip() {
			return false
		}
	}
	if s.at > extras {
		e.rarely().extras = s.line[extras:s.at:s.at]
	}
	if s.at > start {
		e.off.metaStart, e.off.metaEnd = uint32(start), uint32(s.at)
	}
	return true
}

func (s *slicer) blobs(e *Event) bool {
	r := e.rarely()
	for {
		name, ok := s.text("")
		if !ok {
			return false
		}
		d := Digest(name)
		if _, ok := d.sum(); !ok || len(r.blobs) > 0 && r.blobs[len(r.blobs)-1] >= d {
			return false
		}
		r.blobs = append(r.blobs, d)
		if s.literal(`]`) {
			return true
		}
		if !s.literal(`,`) {
			return false
		}
	}
}

func (s *slicer) atPayload() bool {
	rest := s.line[s.at:]
	return bytes.HasPrefix(rest, []byte(`,"data":`)) || bytes.HasPrefix(rest, []byte(`,"digest":`)) ||
		bytes.HasPrefix(rest, []byte(`,"commit":`))
}

// unknownName steps over the name of a member that this version does not know.
func (s *slicer) unknownName() bool {
	start := s.at
	if s.at >= len(s.line) || s.line[s.at] != '"' || !s.skip() {
		return false
	}
	quoted := s.line[start:s.at]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return !knownMember(string(quoted))
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && !knownMember(`"`+string(name)+`"`)
}

func (s *slicer) payload(e *Event) bool {
	last := len(s.line) - 1
	if s.line[last] != '}' {
		return false
	}
	switch {
	case e.Redacted():
		return s.kept(e)
	case s.literal(`,"data":`):
		e.Data = s.line[s.at:last:last]
		return len(e.Data) > 0
	case s.literal(`,"digest":"`):
		r := e.rarely()
		end := s.at + len(digestPrefix) + 64
		if end > len(s.line) {
			return false
		}
		r.digest = Digest(s.line[s.at:end])
		s.at = end
		if _, ok := r.digest.sum(); !ok || !s.literal(`","bytes":`) {
			return false
		}
		var ok bool
		r.bytes, ok = s.integer()
		return ok && s.at == last
	default:
		return false
	}
}

func (s *slicer) kept(e *Event) bool {
	r := e.rare
	if r.blobs != nil || e.off.metaEnd > e.off.metaStart || !s.literal(`,"commit":"`) {
		return false
	}
	e.off.commit = uint32(s.at)
	if !s.hexDigits(64) || !s.literal(`","kept":`) {
		return false
	}
	start := s.at
	if !s.skip() || s.at != len(s.line)-1 || s.line[start] != '{' {
		return false
	}
	r.kept = s.line[start:s.at:s.at]
	return true
}

func (s *slicer) literal(text string) bool {
	if len(s.line)-s.at < len(text) || string(s.line[s.at:s.at+len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

// integer reads a number without sign or leading zero.
func (s *slicer) integer() (n int64, ok bool) {
	start := s.at
	for s.at < len(s.line) && '0' <= s.line[s.at] && s.line[s.at] <= '9' && s.at-start < 19 {
		n = 10*n + int64(s.line[s.at]-'0')
		s.at++
	}
	if s.at == start || n < 0 || s.line[start] == '0' && s.at-start > 1 {
		return 0, false
	}
	return n, true
}

// ulid reads 26 upper-case Crockford digits.
func (s *slicer) ulid(id *ulid.ULID) bool {
	if len(s.line)-s.at < ulid.EncodedSize {
		return false
	}
	text := s.line[s.at : s.at+ulid.EncodedSize]
	for _, c := range text {
		if 'a' <= c && c <= 'z' {
			return false
		}
	}
	parsed, err := ulid.ParseStrict(string(text))
	*id = parsed
	s.at += ulid.EncodedSize
	return err == nil
}

// token reads up to the next comma or brace.
func (s *slicer) token() []byte {
	start := s.at
	for s.at < len(s.line) && s.line[s.at] != ',' && s.line[s.at] != '}' {
		s.at++
	}
	return s.line[start:s.at]
}

// hexDigits steps over n lower-case hex digits.
func (s *slicer) hexDigits(n int) bool {
	end := s.at + n
	if end > len(s.line) || !isHex(s.line[s.at:end]) {
		return false
	}
	s.at = end
	return true
}

func (s *slicer) hex(dst []byte) bool {
	end := s.at + 2*len(dst)
	if end > len(s.line) || !decodeHex(dst, s.line[s.at:end]) {
		return false
	}
	s.at = end
	return true
}

// text reads a string; it returns likely itself, or a known type's constant,
// where they are equal, so that reading many events allocates little.
func (s *slicer) text(likely string) (string, bool) {
	if s.at >= len(s.line) || s.line[s.at] != '"' {
		return "", false
	}
	start := s.at + 1
	for i := start; i < len(s.line); i++ {
		switch c := s.line[i]; {
		case c == '"':
			s.at = i + 1
			return share(s.line[start:i], likely), true
		case c == '\\':
			return s.escaped(start, i)
		case c < 0x20:
			return "", false
		}
	}
	return "", false
}

// escaped reads a string whose first backslash is at i. Only \" and \\ are
// canonical.
func (s *slicer) escaped(start, i int) (string, bool) {
	text := append([]byte(nil), s.line[start:i]...)
	for ; i < len(s.line); i++ {
		switch c := s.line[i]; {
		case c == '"':
			s.at = i + 1
			return string(text), true
		case c < 0x20:
			return "", false
		case c == '\\':
			i++
			if i >= len(s.line) || s.line[i] != '"' && s.line[i] != '\\' {
				return "", false
			}
			text = append(text, s.line[i])
		default:
			text = append(text, c)
		}
	}
	return "", false
}

func share(b []byte, likely string) string {
	if string(b) == likely {
		return likely
	}
	if t, ok := vocabulary[Type(b)]; ok {
		return string(t.name)
	}
	return string(b)
}

// skip steps over one JSON value that is known to be well-formed.
func (s *slicer) skip() bool {
	depth := 0
	for s.at < len(s.line) {
		switch s.line[s.at] {
		case '"':
			if !s.skipString() {
				return false
			}
			s.at--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ':':
			if depth == 0 {
				return false
			}
		default:
			if depth == 0 {
				s.token()
				return true
			}
		}
		s.at++
		if depth == 0 {
			return true
		}
		if depth < 0 {
			return false
		}
	}
	return false
}

func (s *slicer) skipString() bool {
	for i := s.at + 1; i < len(s.line); i++ {
		j := bytes.IndexByte(s.line[i:], '"')
		if j < 0 {
			return false
		}
		i += j
		slashes := 0
		for s.line[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			s.at = i + 1
			return true
		}
	}
	return false
}

// knownMember reports whether a quoted name is one of the envelope's own.
func knownMember(quoted string) bool {
	switch quoted {
	case `"crc"`, `"v"`, `"seq"`, `"id"`, `"session_id"`, `"type"`, `"timestamp"`, `"cost"`, `"more"`, `"cut"`,
		`"salt"`, `"hash"`, `"blobs"`, `"metadata"`, `"data"`, `"digest"`, `"bytes"`, `"commit"`, `"kept"`:
		return true
	default:
		return false
	}
}
