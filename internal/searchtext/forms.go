package searchtext

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Forms are the bytes with which a text may be in a file: plain, with JSON's escapes,
// also those for ASCII only, and in base64 at each of the three offsets, each with composed and
// with decomposed characters. Forms of fewer than four bytes are left out.
func Forms(text string) (forms [][]byte) {
	add := func(form []byte) {
		if len(form) >= 4 && !slices.ContainsFunc(forms, func(f []byte) bool { return bytes.Equal(f, form) }) {
			forms = append(forms, form)
		}
	}
	for _, text := range spellings(text) {
		add([]byte(text))
		if quoted, err := jsontext.AppendQuote(nil, text); err == nil {
			add(quoted[1 : len(quoted)-1])
		}
		add(asciiOnly(text))
		for offset := range 3 {
			add(inBase64At(text, offset))
		}
	}
	return forms
}

// asciiOnly is a text with JSON's escapes for everything but printable ASCII.
func asciiOnly(text string) (b []byte) {
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case ' ' <= r && r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		case r != utf8.RuneError:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// inBase64At is the part of a text in base64 that does not depend on the bytes around
// it. The text begins at an offset from a group of three bytes.
func inBase64At(text string, offset int) []byte {
	all := append(make([]byte, offset), text...)
	encoded := base64.RawStdEncoding.AppendEncode(nil, all)
	first, last := (offset*8+5)/6, len(all)*8/6
	if first >= last {
		return nil
	}
	return encoded[first:last]
}
