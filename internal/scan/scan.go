// Package scan checks JSON, and takes it apart, several times faster than a
// decoder does.
package scan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Scanner steps over JSON. It is sure or it is not: where it is, the text is
// well-formed, valid UTF-8, and no object in it has a name twice; and it is
// compact, unless Spaces are set. Where it is not, the text may still be all that,
// and a decoder decides. The zero value is ready for use, by one goroutine.
//
// Sound, SoundMembers, First, Members and Elements are sure of a text as a whole.
// The other methods step over a piece of it; of such the scanner is sure when End
// is true, too.
type Scanner struct {
	// Spaces lets white space stand between the tokens.
	Spaces bool
	// Text is what is being scanned, At where.
	Text []byte
	At   int

	depth    int
	names    []Span // of the objects that are open
	controls int    // control characters that are white space, so far
}

// Span is a piece of the text.
type Span struct{ From, To int }

const (
	maxDepth = 200
	maxNames = 32 // of an object: they are compared with each other
)

// Sound reports whether the scanner is sure of a whole value.
func (s *Scanner) Sound(value []byte) bool {
	s.Begin(value)
	s.space()
	return s.Value() && s.End()
}

// SoundMembers is Sound for the members of an object without its braces.
func (s *Scanner) SoundMembers(members []byte) bool {
	s.Begin(members)
	return s.members(func(Span) bool { return s.Value() }) && s.End()
}

// First gives the object or array at the start of b, if the scanner is sure of it.
func (s *Scanner) First(b []byte) (value []byte, sure bool) {
	s.Begin(b)
	if c := s.Peek(); c != '{' && c != '[' || !s.Value() {
		return nil, false
	}
	value = b[:s.At:s.At]
	return value, s.printable(value)
}

// Members gives each member of an object to a function, in order: where its name
// stands, which has no escapes, and its value. They count only if the scanner is sure
// of the whole object.
func (s *Scanner) Members(object []byte, each func(name, value Span)) (sure bool) {
	s.Begin(object)
	s.space()
	return s.object(func(name Span) bool {
		from := s.At
		if !s.Value() {
			return false
		}
		each(name, Span{from, s.At})
		return true
	}) && s.End()
}

// Elements is Members for the elements of an array.
func (s *Scanner) Elements(array []byte, each func(value Span)) (sure bool) {
	s.Begin(array)
	s.space()
	return s.Array(func() bool {
		from := s.At
		if !s.Value() {
			return false
		}
		each(Span{from, s.At})
		return true
	}) && s.End()
}

// Unquote gives the string that a value is, if the scanner is sure of it.
func (s *Scanner) Unquote(value []byte) (text string, sure bool) {
	s.Begin(value)
	content, escapes, ok := s.Quoted()
	if !ok || s.At != len(value) || !printable(value) {
		return "", false
	}
	b := value[content.From:content.To]
	if escapes {
		return unescaped(b), true
	}
	return string(b), true
}

// Begin begins a text.
func (s *Scanner) Begin(text []byte) {
	s.Text, s.At, s.depth, s.names, s.controls = text, 0, 0, s.names[:0], 0
}

// End reports whether all of the text was stepped over, and its characters are such
// as a text may have.
func (s *Scanner) End() bool {
	s.space()
	return s.At == len(s.Text) && s.printable(s.Text)
}

// printable reports whether text, which was stepped over, is UTF-8 without control
// characters in its strings.
func (s *Scanner) printable(text []byte) bool {
	if s.controls == 0 {
		return printable(text)
	}
	n := 0
	for _, c := range text {
		if c < 0x20 {
			n++
		}
	}
	return n == s.controls && utf8.Valid(text)
}

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

// Peek is the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.At < len(s.Text) {
		return s.Text[s.At]
	}
	return 0
}

// Literal steps over a text, if that is what comes next.
func (s *Scanner) Literal(text string) bool {
	if len(s.Text)-s.At < len(text) || string(s.Text[s.At:s.At+len(text)]) != text {
		return false
	}
	s.At += len(text)
	return true
}

// space steps over white space, where it may stand.
func (s *Scanner) space() {
	if s.Spaces {
		s.blank()
	}
}

func (s *Scanner) blank() {
	for ; s.At < len(s.Text); s.At++ {
		switch s.Text[s.At] {
		case ' ':
		case '\t', '\n', '\r':
			s.controls++
		default:
			return
		}
	}
}

// Value steps over a value.
func (s *Scanner) Value() bool {
	switch s.Peek() {
	case '"':
		return s.Str()
	case '{':
		return s.object(func(Span) bool { return s.Value() })
	case '[':
		return s.Array(s.Value)
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Literal("null")
	default:
		return s.number()
	}
}

// object steps over an object whose member values are stepped over by member,
// which is given their names.
func (s *Scanner) object(member func(name Span) bool) bool {
	if !s.Enter("{") {
		return false
	}
	s.space()
	if s.Literal("}") {
		return s.Leave()
	}
	return s.members(member) && s.Literal("}") && s.Leave()
}

// Enter steps over the beginning of an object or an array, to be followed by Leave
// behind its end.
func (s *Scanner) Enter(beginning string) bool {
	if s.depth == maxDepth || !s.Literal(beginning) {
		return false
	}
	s.depth++
	return true
}

// Leave is true.
func (s *Scanner) Leave() bool {
	s.depth--
	return true
}

// members steps over the members of an object, at least one.
func (s *Scanner) members(member func(name Span) bool) bool {
	own := len(s.names)
	for {
		name, ok := s.Plain()
		if !ok || !s.fresh(own, name) {
			return false
		}
		s.space()
		if !s.Literal(":") {
			return false
		}
		s.space()
		if !member(name) {
			return false
		}
		s.space()
		if s.Peek() != ',' {
			s.names = s.names[:own]
			return true
		}
		s.At++
		s.space()
	}
}

// fresh notes a name; false if an object has too many, or it twice.
func (s *Scanner) fresh(own int, name Span) bool {
	if len(s.names)-own >= maxNames {
		return false
	}
	for _, other := range s.names[own:] {
		if other.To-other.From == name.To-name.From && bytes.Equal(s.Text[other.From:other.To], s.Text[name.From:name.To]) {
			return false
		}
	}
	s.names = append(s.names, name)
	return true
}

// Array steps over an array whose elements are stepped over by element.
func (s *Scanner) Array(element func() bool) bool {
	if !s.Enter("[") {
		return false
	}
	s.space()
	if s.Literal("]") {
		return s.Leave()
	}
	for {
		if !element() {
			return false
		}
		s.space()
		if s.Peek() != ',' {
			return s.Literal("]") && s.Leave()
		}
		s.At++
		s.space()
	}
}

// Plain steps over a string without escapes, and gives what is in it.
func (s *Scanner) Plain() (content Span, ok bool) {
	content, escapes, ok := s.Quoted()
	return content, ok && !escapes
}

// Str steps over a string.
func (s *Scanner) Str() bool {
	_, _, ok := s.Quoted()
	return ok
}

// Quoted steps over a string and gives what is in it, and whether that has
// escapes. What a short string holds is passed eight bytes at a time; in long
// ones quotes and backslashes are far apart, and searched. Control characters
// are found at the end.
func (s *Scanner) Quoted() (content Span, escapes, ok bool) {
	const short, each, high = 32, 0x0101010101010101, 0x8080808080808080
	text, i := s.Text, s.At+1
	if s.Peek() != '"' {
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
				content = Span{s.At + 1, i}
				s.At = i + 1
				return content, false, true
			}
			break
		}
	}
	return s.rest(i)
}

// rest is Quoted from i on, inside the string.
func (s *Scanner) rest(i int) (content Span, escapes, ok bool) {
	text := s.Text
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
			content = Span{s.At + 1, quote}
			s.At = quote + 1
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
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		n = n<<4 | int(c)
	}
	return n
}

// number steps over a number.
func (s *Scanner) number() bool {
	s.Literal("-")
	if !s.Literal("0") && !s.Digits() {
		return false
	}
	if s.Literal(".") && !s.Digits() {
		return false
	}
	if s.Literal("e") || s.Literal("E") {
		if !s.Literal("+") {
			s.Literal("-")
		}
		return s.Digits()
	}
	return true
}

// Digits steps over at least one digit.
func (s *Scanner) Digits() bool {
	from := s.At
	for s.At < len(s.Text) && '0' <= s.Text[s.At] && s.Text[s.At] <= '9' {
		s.At++
	}
	return s.At > from
}
