package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Name makes a valid name or id of s: 1 to limit letters, digits, "_" and "-". A
// valid s stays as it is. Any other s ends in digits of its hash, so different names
// stay different.
func Name(s string, limit int) string {
	if IsName(s, limit) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	tail := "_" + hex.EncodeToString(sum[:6])
	kept := strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, s)
	return kept[:min(len(kept), limit-len(tail))] + tail
}

// IsName reports whether s is a valid name.
func IsName(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return !nameRune(r) })
}

func nameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// CallIDs gives each call of a request a unique id.
type CallIDs struct {
	// Limit is the maximum length of an id.
	Limit int
	used  map[string]bool
}

// Taken reports whether a call has the id.
func (c *CallIDs) Taken(id string) bool { return c.used[id] }

// Take gives the id to a call.
func (c *CallIDs) Take(id string) {
	if c.used == nil {
		c.used = map[string]bool{}
	}
	c.used[id] = true
}

// Next takes an id for the next call, whose id in the log is id.
func (c *CallIDs) Next(id string) string {
	free := Name(id, c.Limit)
	for n := 2; c.used[free]; n++ {
		free = Name(fmt.Sprintf("%s_%d", id, n), c.Limit)
	}
	c.Take(free)
	return free
}

// Arguments makes an object of the arguments of a call: providers accept no other
// value. A value that is no object becomes the member "input".
func Arguments(v jsontext.Value) jsontext.Value {
	switch v.Kind() {
	case '{':
		return v
	case jsontext.KindInvalid, 'n':
		return jsontext.Value(`{}`)
	default:
		return append(append(jsontext.Value(`{"input":`), v...), '}')
	}
}

// Blank reports whether a text is empty or white space: providers reject it.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }
