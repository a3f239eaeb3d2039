package rawjson

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Cursor reads the values of one text in order, in one pass. If a method returns false,
// the text may still be valid: stop, and let a decoder read it.
type Cursor struct{ *splitter }

// Read calls visit to read text. It returns true if visit does, and if the text is one
// well-formed value with unique names: only then the results of the Cursor hold. The
// Cursor is valid until visit returns.
func Read(text jsontext.Value, visit func(c Cursor) bool) (sure bool) {
	c := Cursor{takeSplitter()}
	defer c.release()
	return c.read(text, visit)
}

// ReadCompact is Read that returns true only if the text has no white space outside
// strings.
func ReadCompact(text jsontext.Value, visit func(c Cursor) bool) (sure bool) {
	c := Cursor{takeSplitter()}
	defer c.release()
	c.allowSpace = false
	defer func() { c.allowSpace = true }()
	return c.read(text, visit)
}

func (c Cursor) read(text jsontext.Value, visit func(c Cursor) bool) (sure bool) {
	c.reset(text)
	c.space()
	return visit(c) && c.done()
}

// Kind returns the first byte of the next value, or 0 at the end.
func (c Cursor) Kind() byte { return c.peek() }

// Object reads an object without escapes in its names. It calls member with each name, and
// member reads the value.
func (c Cursor) Object(member func(name []byte) bool) (sure bool) {
	return c.object(func(name span) bool {
		b := c.text[name.from:name.to]
		return bytes.IndexByte(b, '\\') < 0 && member(b)
	})
}

// Array reads an array. It calls element, which reads the value, for each element.
func (c Cursor) Array(element func() bool) (sure bool) { return c.array(element) }

// Skip reads any value and returns its bytes in the text.
func (c Cursor) Skip() (value jsontext.Value, sure bool) {
	from := c.at
	sure = c.value()
	return c.text[from:c.at:c.at], sure
}

// Text reads a string and returns its content. The next call may overwrite it.
func (c Cursor) Text() (text []byte, sure bool) {
	content, escapes, ok := c.stringSpan()
	if !ok {
		return nil, false
	}
	text = c.text[content.from:content.to]
	if escapes {
		c.unescaped = appendUnescaped(c.unescaped[:0], text)
		text = c.unescaped
	}
	return text, true
}

// Word reads a string that often repeats. Equal results may share memory.
func (c Cursor) Word() (text string, sure bool) {
	content, sure := c.plainString()
	if !sure {
		return "", false
	}
	return c.name(c.text[content.from:content.to]), true
}

// Bool reads true or false.
func (c Cursor) Bool() (b, sure bool) {
	if c.literal("true") {
		return true, true
	}
	return false, c.literal("false")
}

// Int reads an integer.
func (c Cursor) Int() (n int64, sure bool) {
	from := c.at
	if !c.number() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(c.text[from:c.at]), 10, 64)
	return n, err == nil
}
