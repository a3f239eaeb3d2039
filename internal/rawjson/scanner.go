package rawjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// scanner scans JSON text. If a method returns true, the text is well-formed, valid
// UTF-8, has no repeated names in an object, and is compact unless allowSpace is set.
// If a method returns false, the text may still be valid, and a decoder must decide.
// The zero value is ready for one goroutine.
//
// first, splitObject and splitArray scan a whole text. The other methods scan one token or
// value; their results hold only if done also returns true.
type scanner struct {
	// allowSpace allows white space between tokens.
	allowSpace bool
	// text is the scanned text, and at is the offset of the next byte.
	text []byte
	at   int

	depth    int
	names    []name // of the open objects
	escapes  bool   // a name has escapes
	controls int    // number of control characters that are white space
	// wellFormed says that the text was scanned before: names are not compared again.
	wellFormed bool
}

// span is a part of the text.
type span struct{ from, to int }

// name is the span of a member name, in half of the memory.
type name struct{ from, to uint32 }

const (
	maxDepth = 200
	fewNames = 32 // a name of a smaller object is compared with all others at once
)

// first returns the object or array at the start of b.
func (s *scanner) first(b []byte) (value []byte, sure bool) {
	s.reset(b)
	if c := s.peek(); c != '{' && c != '[' || !s.value() {
		return nil, false
	}
	value = b[:s.at:s.at]
	return value, s.printable(value)
}

// splitObject calls each with the position of every member's name and value, in order.
// The positions are invalid if splitObject returns false.
func (s *scanner) splitObject(object []byte, each func(name, value span)) (sure bool) {
	s.reset(object)
	s.space()
	return s.object(func(name span) bool {
		from := s.at
		if !s.value() {
			return false
		}
		each(name, span{from, s.at})
		return true
	}) && s.done()
}

// splitArray is splitObject for the elements of an array.
func (s *scanner) splitArray(array []byte, each func(value span)) (sure bool) {
	s.reset(array)
	s.space()
	return s.array(func() bool {
		from := s.at
		if !s.value() {
			return false
		}
		each(span{from, s.at})
		return true
	}) && s.done()
}

// reset starts to scan a text.
func (s *scanner) reset(text []byte) {
	s.text, s.at, s.depth, s.names, s.escapes, s.controls = text, 0, 0, s.names[:0], false, 0
	s.wellFormed = false
}

// done reports whether the whole text was scanned and has valid characters.
func (s *scanner) done() bool {
	s.space()
	return s.at == len(s.text) && s.printable(s.text)
}

// printable reports whether a scanned text is UTF-8 without control characters in its
// strings.
func (s *scanner) printable(text []byte) bool {
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

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// literal skips text if it comes next.
func (s *scanner) literal(text string) bool {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

// space skips white space if allowSpace is set.
func (s *scanner) space() {
	if s.allowSpace {
		s.blank()
	}
}

func (s *scanner) blank() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ' ':
		case '\t', '\n', '\r':
			s.controls++
		default:
			return
		}
	}
}

// value scans a value.
func (s *scanner) value() bool {
	switch s.peek() {
	case '"':
		return s.skipString()
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

// object scans an object. It calls member with each name; member scans the value.
func (s *scanner) object(member func(name span) bool) bool {
	if !s.open("{") {
		return false
	}
	s.space()
	if s.literal("}") {
		return s.close()
	}
	return s.members(member) && s.literal("}") && s.close()
}

// open scans the start of an object or array. The caller must call close at its end.
func (s *scanner) open(beginning string) bool {
	if s.depth == maxDepth || !s.literal(beginning) {
		return false
	}
	s.depth++
	return true
}

// close ends an object or array. It returns true.
func (s *scanner) close() bool {
	s.depth--
	return true
}

// members scans one or more members of an object.
func (s *scanner) members(member func(name span) bool) bool {
	own := len(s.names)
	for {
		at, escapes, ok := s.stringSpan()
		s.escapes = s.escapes || escapes
		if !ok || int64(at.to) > math.MaxUint32 || !s.addName(own, name{uint32(at.from), uint32(at.to)}) {
			return false
		}
		s.space()
		if !s.literal(":") {
			return false
		}
		s.space()
		if !member(at) {
			return false
		}
		s.space()
		if s.peek() != ',' {
			distinct := s.distinct(s.names[own:])
			s.names = s.names[:own]
			return distinct
		}
		s.at++
		s.space()
	}
}

// addName records a member name. It returns false for a repeated name of a small object.
func (s *scanner) addName(own int, n name) bool {
	if s.wellFormed {
		return true
	}
	others := s.names[own:]
	s.names = append(s.names, n)
	return len(others) >= fewNames || !slices.ContainsFunc(others, func(other name) bool { return s.compareNames(other, n) == 0 })
}

// distinct reports whether the names of an object differ. It sorts the names of a large object,
// which takes no memory for each name, as a map does.
func (s *scanner) distinct(names []name) bool {
	if len(names) <= fewNames {
		return true // addName has compared them
	}
	slices.SortFunc(names, s.compareNames)
	for i := range names[1:] {
		if s.compareNames(names[i], names[i+1]) == 0 {
			return false
		}
	}
	return true
}

// compareNames orders names. Two names are equal if they are after their escapes are decoded.
func (s *scanner) compareNames(a, b name) int {
	x, y := s.text[a.from:a.to], s.text[b.from:b.to]
	if s.escapes {
		return bytes.Compare(unescapedName(x), unescapedName(y))
	}
	if n := len(x) - len(y); n != 0 {
		return n
	}
	return bytes.Compare(x, y)
}

// unescapedName decodes the escapes of a scanned name.
func unescapedName(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return appendUnescaped(nil, b)
}

// array scans an array. element scans one element.
func (s *scanner) array(element func() bool) bool {
	if !s.open("[") {
		return false
	}
	s.space()
	if s.literal("]") {
		return s.close()
	}
	for {
		if !element() {
			return false
		}
		s.space()
		if s.peek() != ',' {
			return s.literal("]") && s.close()
		}
		s.at++
		s.space()
	}
}

// plainString scans a string without escapes and returns its content.
func (s *scanner) plainString() (content span, ok bool) {
	content, escapes, ok := s.stringSpan()
	return content, ok && !escapes
}

// skipString scans a string.
func (s *scanner) skipString() bool {
	_, _, ok := s.stringSpan()
	return ok
}

// stringSpan scans a string. It returns the content between the quotes and whether the
// content has escapes. It scans short strings eight bytes at a time, and searches long
// strings for the next quote or backslash. done checks for control characters.
func (s *scanner) stringSpan() (content span, escapes, ok bool) {
	const short, each, high = 32, 0x0101010101010101, 0x8080808080808080
	text, i := s.text, s.at+1
	if s.peek() != '"' {
		return content, false, false
	}
	for last := min(i+short, len(text)-8); i <= last; i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		// For bytes below 0x80, the difference sets the high bit at a quote or a
		// backslash. The lowest of these bits marks the first one.
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
	return s.longString(i)
}

// longString continues stringSpan at i, inside the string.
func (s *scanner) longString(i int) (content span, escapes, ok bool) {
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

// escapeLen is the length of an escape by its second byte, or 0 for no escape.
var escapeLen = [256]uint8{'"': 2, '\\': 2, '/': 2, 'b': 2, 'f': 2, 'n': 2, 'r': 2, 't': 2, 'u': 6}

// unicodeEscape returns the length of the \u escape at the start of b, including a
// surrogate pair. It returns 0 if there is none.
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

// unicodeDigits returns the value of the four digits of a \u escape, or -1.
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

// number scans a number.
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

// digits scans one or more digits.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
