package secrets

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonWalk reads the strings of a JSON value, and makes a copy with masks.
type jsonWalk struct {
	*Scanner
	value jsontext.Value
	dec   *jsontext.Decoder
	// leave reports whether the string at a pointer stays as it is.
	leave func(pointer jsontext.Pointer) bool
	each  func(inJSON)

	out    []byte // the copy up to copied
	copied int64
	used   map[jsontext.Pointer]bool // names with a mask
}

// inJSON is a string with secrets in a JSON value.
type inJSON struct {
	pointer string // with masks in the place of secrets
	rules   []string
	left    bool // the string stays
}

// maskJSON returns value with masks, and calls each for each string with secrets. The
// result is a valid value if value is one. Without secrets it is value itself.
func (s *Scanner) maskJSON(value jsontext.Value, leave func(jsontext.Pointer) bool, each func(inJSON)) (jsontext.Value, error) {
	if !s.mayHold(value) {
		return value, nil
	}
	w := jsonWalk{Scanner: s, value: value, leave: leave, each: each}
	w.dec = jsontext.NewDecoder(bytes.NewBuffer(value))
	for {
		err := w.next()
		switch {
		case err == io.EOF && w.out == nil:
			return value, nil
		case err == io.EOF:
			return append(w.out, value[w.copied:]...), nil
		case err != nil:
			return nil, fmt.Errorf("look for secrets: %w", err)
		}
	}
}

// mayHold reports whether a string of a JSON value may have a keyword. A keyword is in
// the bytes as it is, unless one of its characters is escaped.
func (s *Scanner) mayHold(value jsontext.Value) bool {
	return s.keywords.in(value) || bytes.IndexByte(value, '%') >= 0 || bytes.Contains(value, []byte(`\u`)) || bytes.Contains(value, []byte(`\/`))
}

// next reads the next token.
func (w *jsonWalk) next() error {
	if w.dec.PeekKind() != '"' {
		_, err := w.dec.ReadToken()
		return err
	}
	name := w.atName()
	quoted, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return err
	}
	found := w.Find(text)
	if more := w.named(text, name); more != nil {
		found = more
	}
	if len(found) > 0 || name && bytes.HasPrefix(text, []byte("[secret:")) {
		return w.found(int64(len(quoted)), text, found, name)
	}
	return nil
}

// atName reports whether the next string is the name of a member.
func (w *jsonWalk) atName() bool {
	kind, length := w.dec.StackIndex(w.dec.StackDepth())
	return kind == '{' && length%2 == 0
}

// longestNamed bounds a value that is examined with its name.
const longestNamed = 512

// named looks for secrets in a value by the name of its member, as in
// {"password":"…"}. It reads both like an assignment, and returns the secrets of text.
func (w *jsonWalk) named(text []byte, isName bool) (found []Finding) {
	kind, _ := w.dec.StackIndex(w.dec.StackDepth())
	if kind != '{' || isName || len(text) > longestNamed {
		return nil
	}
	name := w.dec.StackPointer().LastToken()
	if len(name) > before || !w.keywords.in([]byte(name)) {
		return nil
	}
	assignment := append([]byte(name+`="`), text...)
	for _, f := range w.Find(assignment) {
		if at := len(name) + 2; f.End > at {
			found = append(found, Finding{f.Rule, max(0, f.Start-at), f.End - at})
		}
	}
	return found
}

// found reports the secrets of the string before the decoder, and masks them.
func (w *jsonWalk) found(length int64, text []byte, found []Finding, name bool) (err error) {
	pointer := w.dec.StackPointer()
	left := w.leave(pointer)
	if len(found) > 0 {
		w.each(inJSON{w.maskPointer(pointer), names(found), left})
	}
	if left {
		return nil
	}
	masked := w.replace(text, found)
	if name {
		masked = w.unique(pointer.Parent(), masked)
	}
	end := w.dec.InputOffset()
	w.out = append(w.out, w.value[w.copied:end-length]...)
	w.out, err = jsontext.AppendQuote(w.out, masked)
	w.copied = end
	return err
}

// unique makes a name with a mask different from the others of its object, because an
// object has each name once: a second one ends in #2.
func (w *jsonWalk) unique(object jsontext.Pointer, name []byte) []byte {
	if w.used == nil {
		w.used = map[jsontext.Pointer]bool{}
	}
	fresh := string(name)
	for n := 2; w.used[object.AppendToken(fresh)]; n++ {
		fresh = string(name) + "#" + strconv.Itoa(n)
	}
	w.used[object.AppendToken(fresh)] = true
	return []byte(fresh)
}

// maskPointer is a pointer with masks in its names.
func (s *Scanner) maskPointer(pointer jsontext.Pointer) string {
	var out strings.Builder
	for token := range pointer.Tokens() {
		masked, _ := s.Mask([]byte(token))
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(masked)))
	}
	return out.String()
}
