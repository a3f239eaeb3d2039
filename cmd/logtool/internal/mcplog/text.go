package mcplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// clipAfter is how many characters of a text an answer has, unless the client asks for all.
const clipAfter = 2_000

// form are the options of the JSON of answers: < and > are escaped, since some agents
// read tags in the results of tools.
func form() []jsontext.Options {
	return []jsontext.Options{jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}
}

// rewrite returns a row in the form of an answer, with long texts cut unless full.
func rewrite(row []byte, full bool) ([]byte, error) {
	var out bytes.Buffer
	in, enc := jsontext.NewDecoder(bytes.NewReader(row), form()...), jsontext.NewEncoder(&out, form()...)
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return visible(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
		}
		if err == nil {
			if token.Kind() == '"' && !full {
				token = jsontext.String(clip(token.String()))
			}
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
	}
}

// clip cuts a long text, and says how long it was.
func clip(text string) string {
	if len(text) <= clipAfter {
		return text
	}
	n, end := 0, 0
	for at := range text {
		if n == clipAfter {
			end = at
		}
		n++
	}
	if n <= clipAfter {
		return text
	}
	return text[:end] + fmt.Sprintf("… [%d of %d characters; %s=true has all]", clipAfter, n, fullParam)
}

// visible escapes the characters of a JSON text that a person does not see and a model may
// read: control and format characters, selectors of variants, and private characters.
func visible(text []byte) []byte {
	if bytes.IndexFunc(text, hidden) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		out = appendVisible(out, r)
	}
	return out
}

func hidden(r rune) bool {
	return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector)
}

func appendVisible(out []byte, r rune) []byte {
	if !hidden(r) {
		return utf8.AppendRune(out, r)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return out
}

// quote is text as a JSON string in the form of an answer.
func quote(text string) []byte {
	out, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd"))
	if err == nil {
		out, err = jsontext.AppendFormat(nil, out, form()...)
	}
	if err != nil {
		panic(err) // the text is valid UTF-8, and its quotation valid JSON
	}
	return visible(out)
}
