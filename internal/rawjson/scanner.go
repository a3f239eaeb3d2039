package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Scanner steps over JSON text. A method that returns true is sure: the text is
// well-formed, valid UTF-8, no object in it repeats a name, and it is compact
// unless Spaces is set. A method that returns false is unsure: the text may still
// be valid, and a decoder must decide. The zero value is ready for use by one
// goroutine.
//
// Sound, SoundMembers, First, Members, Elements and Unquote answer for a whole
// text. The other methods step over one token or value; their answers hold only
// when End returns true as well.
type Scanner struct {
	// Spaces allows white space between tokens.
	Spaces bool
	// Text is the text being scanned, At the offset of the next byte.
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

// First returns the object or array at the start of b.
func (s *Scanner) First(b []byte) (value []byte, sure bool) {
	s.Begin(b)
	if c := s.Peek(); c != '{' && c != '[' || !s.Value() {
		return nil, false
	}
	value = b[:s.At:s.At]
	return value, s.printable(value)
}

// Members calls each with the position of every member's name and value, in
// order. A name has no escapes. Discard the positions when Members returns false.
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

// Unquote returns the string that a JSON string stands for.
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

// End reports whether the whole text was scanned and its characters are valid.
func (s *Scanner) End() bool {
	s.space()
	return s.At == len(s.Text) && s.printable(s.Text)
}

// printable reports whether a scanned text is UTF-8 without control characters
// in its strings.
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
	var all, below uint64 // all bits; a high bit for each byte below 0x20
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

// Literal steps over text if the input continues with it.
func (s *Scanner) Literal(text string) bool {
	if len(s.Text)-s.At < len(text) || string(s.Text[s.At:s.At+len(text)]) != text {
		return false
	}
	s.At += len(text)
	return true
}

// space steps over white space if Spaces allows it.
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

// object steps over an object. member gets each name and steps over its value.
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

// Enter steps over the beginning of an object or array. Call Leave after its end.
func (s *Scanner) Enter(beginning string) bool {
	if s.depth == maxDepth || !s.Literal(beginning) {
		return false
	}
	s.depth++
	return true
}

// Leave ends what Enter began. It returns true.
func (s *Scanner) Leave() bool {
	s.depth--
	return true
}

// members steps over one or more members of an object.
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

// fresh records a member name. It is false if the object has the name already, or
// too many names.
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

// Array steps over an array. element steps over one element.
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

// Plain steps over a string without escapes and returns its content.
func (s *Scanner) Plain() (content Span, ok bool) {
	content, escapes, ok := s.Quoted()
	return content, ok && !escapes
}

// Str steps over a string.
func (s *Scanner) Str() bool {
	_, _, ok := s.Quoted()
	return ok
}

// Quoted steps over a string. It returns the content between the quotes and
// whether that has escapes. Short strings are scanned eight bytes at a time; in
// long ones the next quote or backslash is searched. End finds control characters.
func (s *Scanner) Quoted() (content Span, escapes, ok bool) {
	const short, each, high = 32, 0x0101010101010101, 0x8080808080808080
	text, i := s.Text, s.At+1
	if s.Peek() != '"' {
		return content, false, false
	}
	for last := min(i+short, len(text)-8); i <= last; i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		// For bytes below 0x80, the difference sets the high bit where the byte is a
		// quote or a backslash. The lowest of these bits marks the first one.
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

// rest continues Quoted at i, inside the string.
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

// escapeLen is the length of an escape by its second byte; 0 is no escape.
var escapeLen = [256]uint8{'"': 2, '\\': 2, '/': 2, 'b': 2, 'f': 2, 'n': 2, 'r': 2, 't': 2, 'u': 6}

// unicodeEscape is the length of the \u escape that b begins with, a surrogate
// pair included; 0 if there is none.
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

// unicodeDigits reads the four digits of a \u escape; -1 if they are no digits.
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
