package search

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/searchtext"
)

// Pattern is what Stored looks for: a text or a regular expression.
type Pattern struct {
	given []string     // the texts of Literal
	texts []foldedText // the same, folded; one of them is enough
	re    *regexp.Regexp
}

var errEmptyPattern = fmt.Errorf("%w: every text contains the pattern", ErrInvalidQuery)

// Literal is a pattern of one or more texts; one of them is enough. It ignores case (Unicode's
// full case folding) and the normalization form, also of wide characters and ligatures (NFKC), and
// takes all white space for the same. A text without characters is ErrInvalidQuery.
func Literal(texts ...string) (p Pattern, err error) {
	for _, text := range texts {
		folded := searchtext.FoldFully(text)
		if folded == "" {
			return Pattern{}, errEmptyPattern
		}
		p.given, p.texts = append(p.given, text), append(p.texts, newFoldedText(folded))
	}
	if len(p.texts) == 0 {
		return p, errEmptyPattern
	}
	return p, nil
}

// Regexp is a pattern of a regular expression (package regexp). It ignores case, except after
// (?-i), and also looks at the text with composed characters (NFC). A malformed expression, or one that matches the empty
// text, is ErrInvalidQuery.
func Regexp(expression string) (Pattern, error) {
	if _, err := regexp.Compile(expression); err != nil {
		return Pattern{}, fmt.Errorf("%w: %w", ErrInvalidQuery, err)
	}
	re, err := regexp.Compile("(?i)" + expression)
	if err != nil {
		return Pattern{}, fmt.Errorf("%w: %w", ErrInvalidQuery, err)
	}
	if re.MatchString("") {
		return Pattern{}, errEmptyPattern
	}
	return Pattern{re: re}, nil
}

// Texts are the texts of a Literal, as they were given.
func (p *Pattern) Texts() []string { return slices.Clone(p.given) }

// matches reports whether a text has the pattern as it is. matches are the texts that
// matched a regular expression.
func (p *Pattern) matches(text string) (matches []string, ok bool) {
	if p.re != nil {
		matches, ok = p.matched(text)
		if composed := searchtext.Clean(text); !ok && !searchtext.IsASCII(text) {
			return p.matched(composed)
		}
		return matches, ok
	}
	if !p.may(text) {
		return nil, false
	}
	folded := searchtext.FoldFully(text)
	for i := range p.texts {
		if strings.Contains(folded, p.texts[i].text) {
			return nil, true
		}
	}
	return nil, false
}

// matched are the distinct texts that match the regular expression. Matches without
// characters, as of \b, do not count.
func (p *Pattern) matched(text string) (matches []string, ok bool) {
	for _, match := range p.re.FindAllString(text, -1) {
		if match != "" && !slices.Contains(matches, match) {
			matches = append(matches, match)
		}
	}
	return matches, len(matches) > 0
}

// may reports whether a text may have one of the texts. It is fast for ASCII.
func (p *Pattern) may(text string) bool {
	for i := range p.texts {
		if p.texts[i].may(text) {
			return true
		}
	}
	return false
}

// foldedText is a folded text, and its least common ASCII character in both cases; 0 if
// it has none.
type foldedText struct {
	text         string
	lower, upper byte
}

func newFoldedText(text string) foldedText {
	t := foldedText{text: text}
	for i := range len(text) {
		c := text[i]
		if c > ' ' && c < utf8.RuneSelf && (t.lower == 0 || commonness(c) < commonness(t.lower)) {
			t.lower, t.upper = c, c
		}
	}
	if 'a' <= t.lower && t.lower <= 'z' {
		t.upper = t.lower - 'a' + 'A'
	}
	return t
}

// hasRune reports whether a text has a character outside ASCII, which can fold to ASCII. Decoded
// base64 of other text rarely has one.
func hasRune(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < utf8.RuneSelf {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(text[i:]); r != utf8.RuneError {
			return true
		}
	}
	return false
}

func (t *foldedText) may(text string) bool {
	return t.lower == 0 || strings.IndexByte(text, t.lower) >= 0 || strings.IndexByte(text, t.upper) >= 0 || hasRune(text)
}

// maxUnescapes bounds how often a text is unescaped: JSON in a string in JSON.
const maxUnescapes = 4

// in reports whether a text has the pattern as it is, under JSON's escapes, or in
// base64.
func (p *Pattern) in(text string) (matches []string, ok bool) {
	return unescapes(text, func(text string) ([]string, bool) {
		if matches, ok := p.matches(text); ok {
			return matches, true
		}
		return p.inBase64(text)
	})
}

// unescapes calls find with a text, and with the text without JSON's escapes, until
// find succeeds.
func unescapes(text string, find func(text string) (matches []string, ok bool)) (matches []string, ok bool) {
	for range maxUnescapes {
		if matches, ok = find(text); ok {
			return matches, true
		}
		plain, escaped := unescape(text)
		if !escaped {
			break
		}
		text = plain
	}
	return nil, false
}

// unescape resolves JSON's escapes anywhere in a text. ok is false if it has none.
func unescape(text string) (plain string, ok bool) {
	if !strings.Contains(text, `\`) {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if r, n := escapeAt(text[i:]); n > 0 {
			b.WriteString(r)
			i += n
			ok = true
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String(), ok
}

// escapeAt is the text of the escape that s begins with, and its length; 0 if it begins
// with none.
func escapeAt(s string) (text string, n int) {
	if s[0] != '\\' || len(s) < 2 {
		return "", 0
	}
	n = 2
	if s[1] == 'u' {
		n = 6
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && (s[2] == 'd' || s[2] == 'D') {
			n = 12
		}
	}
	if len(s) < n {
		return "", 0
	}
	plain, err := jsontext.AppendUnquote(nil, `"`+s[:n]+`"`)
	if err != nil {
		return "", 0
	}
	return string(plain), n
}

// minBase64 is the length of the shortest string that is tried as base64.
const minBase64 = 8

// inBase64 reports whether runs of base64 in a text have the pattern.
func (p *Pattern) inBase64(text string) (matches []string, ok bool) {
	for len(text) > 0 {
		start := strings.IndexFunc(text, isBase64)
		if start < 0 {
			break
		}
		end := start
		for end < len(text) && isBase64(rune(text[end])) {
			end++
		}
		if run := text[start:end]; len(run) >= minBase64 {
			if matches, ok = p.inEncoded(run); ok {
				return matches, true
			}
		}
		text = text[end:]
	}
	return nil, false
}

func isBase64(r rune) bool {
	return r < utf8.RuneSelf && (r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("+/-_\r\n=", r))
}

var toStandard = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", "=", "")

// inEncoded decodes a run of base64 of either alphabet. The run may begin with up to
// three characters that do not belong to it.
func (p *Pattern) inEncoded(run string) (matches []string, ok bool) {
	if strings.ContainsAny(run, "-_\r\n=") {
		run = toStandard.Replace(run)
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(run)))
	for i := range min(4, len(run)) {
		encoded := run[i:]
		if len(encoded)%4 == 1 {
			encoded = encoded[:len(encoded)-1]
		}
		n, err := base64.RawStdEncoding.Decode(decoded, []byte(encoded))
		if err != nil {
			continue
		}
		if matches, ok = unescapes(string(decoded[:n]), p.matches); ok {
			return matches, true
		}
	}
	return nil, false
}

// placeFinder finds the pattern in the values of an event.
type placeFinder struct {
	pattern   Pattern
	place     Place
	event     *event.Event   // with data that a redaction would erase; nil for others
	structure jsontext.Value // what the redaction would keep; nil if it is not known yet
	found     []Place
}

func (f *placeFinder) add(member string, kept bool, matches []string) {
	p := f.place
	p.Member, p.Kept, p.Matches = member, kept, matches
	f.found = append(f.found, p)
}

// value finds the pattern in a JSON value. Text that is no JSON is one string.
func (f *placeFinder) value(path string, value jsontext.Value, kept bool) {
	if len(value) == 0 {
		return
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if f.walk(dec, path, kept) {
		return
	}
	if matches, ok := f.pattern.in(string(value)); ok {
		f.add(path, kept, matches)
	}
}

// walk reads one value. It returns false for malformed JSON.
func (f *placeFinder) walk(dec *jsontext.Decoder, path string, kept bool) bool {
	token, err := dec.ReadToken()
	if err != nil {
		return false
	}
	switch token.Kind() {
	case '{':
		return f.object(dec, path, kept)
	case '[':
		for i := 0; dec.PeekKind() != ']'; i++ {
			if !f.walk(dec, fmt.Sprintf("%s[%d]", path, i), kept) {
				return false
			}
		}
		_, err := dec.ReadToken()
		return err == nil
	case '"', '0':
		text := token.String()
		if matches, ok := f.pattern.in(text); ok {
			f.add(path, kept || f.keeps(path, dec.StackPointer(), text), matches)
		}
	}
	return true
}

func (f *placeFinder) object(dec *jsontext.Decoder, path string, kept bool) bool {
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return false
		}
		name := token.String()
		if matches, ok := f.pattern.in(name); ok {
			f.add(path+"."+name+" (name)", kept || f.keeps(path, dec.StackPointer(), name), matches)
		}
		if !f.walk(dec, path+"."+name, kept) {
			return false
		}
	}
	_, err := dec.ReadToken()
	return err == nil
}

// keeps reports whether a redaction keeps a string, a number or a name in the event's
// structure. The pointer is its place in the data or in the metadata.
func (f *placeFinder) keeps(path string, pointer jsontext.Pointer, text string) bool {
	if f.event == nil || strings.HasPrefix(path, "data") && !f.event.Type.Structural(pointer) {
		return false
	}
	if f.structure == nil {
		var err error
		if f.structure, err = f.event.Structure(); err != nil {
			f.structure = jsontext.Value(`{}`) // of broken data, nothing is kept
		}
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	return err == nil && bytes.Contains(f.structure, quoted[1:len(quoted)-1])
}
