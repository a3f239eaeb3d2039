package eventlog

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// scanner checks JSON several times faster than a decoder, for who checks all
// of a log. It is sure or it is not: where it is, the text is well-formed,
// compact, valid UTF-8, and no object in it has a name twice. Where it is not,
// the text may still be all that, and a decoder decides.
type scanner struct {
	text  []byte
	at    int
	depth int
	names []span // of the objects that are open
}

// span is a piece of the text.
type span struct{ from, to int }

const (
	maxScanDepth = 200
	maxScanNames = 32 // of an object: they are compared with each other
)

// sound reports whether the scanner is sure of a whole value.
func (s *scanner) sound(value []byte) bool {
	s.begin(value)
	return s.value() && s.end()
}

// soundMembers is sound for the members of an object without its braces.
func (s *scanner) soundMembers(members []byte) bool {
	s.begin(members)
	return s.members(func(span) bool { return s.value() }) && s.end()
}

func (s *scanner) begin(text []byte) {
	s.text, s.at, s.depth, s.names = text, 0, 0, s.names[:0]
}

func (s *scanner) end() bool { return s.at == len(s.text) && printable(s.text) }

// printable reports whether text is UTF-8 without control characters.
func printable(text []byte) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	var all, below uint64 // all bits; a high bit where a byte is below 0x20
	b := text
	for ; len(b) >= 32; b = b[32:] {
		w, x := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		y, z := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		all |= w | x | y | z
		below |= (w-0x20*each)&^w | (x-0x20*each)&^x | (y-0x20*each)&^y | (z-0x20*each)&^z
	}
	for _, c := range b {
		all |= uint64(c)
		if c < 0x20 {
			return false
		}
	}
	return below&high == 0 && (all&high == 0 || utf8.Valid(text))
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) literal(text string) bool {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

func (s *scanner) value() bool {
	switch s.peek() {
	case '"':
		return s.str()
	case '{':
		return s.object(func(span) bool { return s.value() })
	case '[':
		return s.array(s.value)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// object steps over an object whose member values are stepped over by member,
// which is given their names.
func (s *scanner) object(member func(name span) bool) bool {
	if !s.enter('{') {
		return false
	}
	if s.peek() == '}' {
		s.at++
		return s.leave()
	}
	return s.members(member) && s.literal("}") && s.leave()
}

func (s *scanner) enter(brace byte) bool {
	if s.peek() != brace || s.depth == maxScanDepth {
		return false
	}
	s.at++
	s.depth++
	return true
}

func (s *scanner) leave() bool {
	s.depth--
	return true
}

// members steps over the members of an object, at least one.
func (s *scanner) members(member func(name span) bool) bool {
	own := len(s.names)
	for {
		name, ok := s.plain()
		if !ok || !s.fresh(own, name) || !s.literal(":") || !member(name) {
			return false
		}
		if s.peek() != ',' {
			s.names = s.names[:own]
			return true
		}
		s.at++
	}
}

// fresh notes a name; false if an object has too many, or it twice.
func (s *scanner) fresh(own int, name span) bool {
	if len(s.names)-own >= maxScanNames {
		return false
	}
	for _, other := range s.names[own:] {
		if other.to-other.from == name.to-name.from && bytes.Equal(s.text[other.from:other.to], s.text[name.from:name.to]) {
			return false
		}
	}
	s.names = append(s.names, name)
	return true
}

// array steps over an array whose elements are stepped over by element.
func (s *scanner) array(element func() bool) bool {
	if !s.enter('[') {
		return false
	}
	if s.peek() == ']' {
		s.at++
		return s.leave()
	}
	for {
		if !element() {
			return false
		}
		if s.peek() != ',' {
			return s.literal("]") && s.leave()
		}
		s.at++
	}
}

// plain steps over a string without escapes, and gives what is in it.
func (s *scanner) plain() (content span, ok bool) {
	content, escapes, ok := s.quoted()
	return content, ok && !escapes
}

// str steps over a string.
func (s *scanner) str() bool {
	_, _, ok := s.quoted()
	return ok
}

// quoted steps over a string and gives what is in it, and whether that has
// escapes. What a short string holds is passed eight bytes at a time; in long
// ones quotes and backslashes are far apart, and searched. Control characters
// are found at the end.
func (s *scanner) quoted() (content span, escapes, ok bool) {
	const short, each, high = 32, 0x0101010101010101, 0x8080808080808080
	text, i := s.text, s.at+1
	if s.peek() != '"' {
		return content, false, false
	}
	for last := min(i+short, len(text)-8); i <= last; i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		// Of bytes below 0x80, a difference has the high bit where the byte is a
		// quote or a backslash; the lowest such bit is that of the first.
		quote, slash := w^('"'*each), w^('\\'*each)
		if found := ((quote - each) | (slash - each)) &^ w & high; found != 0 {
			i += bits.TrailingZeros64(found) / 8
			if text[i] == '"' {
				content = span{s.at + 1, i}
				s.at = i + 1
				return content, false, true
			}
			break
		}
	}
	return s.rest(i)
}

// rest is quoted from i on, inside the string.
func (s *scanner) rest(i int) (content span, escapes, ok bool) {
	text := s.text
	for {
		n := bytes.IndexByte(text[min(i, len(text)):], '"')
		if n < 0 {
			return content, escapes, false
		}
		quote := i + n
		for i < quote {
			slash := bytes.IndexByte(text[i:quote], '\\')
			if slash < 0 {
				i = quote
				break
			}
			i += slash
			n := int(escapeLen[text[i+1]])
			if n > 2 {
				n = unicodeEscape(text[i:])
			}
			if n == 0 {
				return content, true, false
			}
			i += n
			escapes = true
		}
		if i == quote {
			content = span{s.at + 1, quote}
			s.at = quote + 1
			return content, escapes, true
		}
	}
}

// escapeLen is how long the escape is that goes on with a byte; 0 is none.
var escapeLen = [256]uint8{'"': 2, '\\': 2, '/': 2, 'b': 2, 'f': 2, 'n': 2, 'r': 2, 't': 2, 'u': 6}

// unicodeEscape is how long a \u with its digits is, 0 if it is none. Surrogates
// come in pairs.
func unicodeEscape(b []byte) int {
	switch n := unicodeDigits(b); {
	case n < 0, 0xdc00 <= n && n <= 0xdfff:
		return 0
	case n < 0xd800 || n > 0xdfff:
		return 6
	case len(b) < 12 || b[6] != '\\' || b[7] != 'u':
		return 0
	default:
		if low := unicodeDigits(b[6:]); low < 0xdc00 || low > 0xdfff {
			return 0
		}
		return 12
	}
}

// unicodeDigits reads the four digits behind a \u; it is negative if there are
// none.
func unicodeDigits(b []byte) (n int) {
	if len(b) < 6 {
		return -1
	}
	for _, c := range b[2:6] {
		if 'A' <= c && c <= 'F' {
			c += 'a' - 'A'
		}
		digit := hexValues[c]
		if digit == 0xff {
			return -1
		}
		n = n<<4 | int(digit)
	}
	return n
}

// number steps over a number.
func (s *scanner) number() bool {
	s.literal("-")
	if !s.literal("0") && !s.digits() {
		return false
	}
	if s.literal(".") && !s.digits() {
		return false
	}
	if s.literal("e") || s.literal("E") {
		if !s.literal("+") {
			s.literal("-")
		}
		return s.digits()
	}
	return true
}

// digits steps over at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
