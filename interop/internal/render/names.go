package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Name makes a name or id that a provider takes: 1 to limit letters, digits,
// "_" and "-". What is one already stays. Others keep what they can, and end in
// digits of their hash, so that different names stay different.
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

// IsName reports whether Name leaves s as it is.
func IsName(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return !nameRune(r) })
}

func nameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// CallIDs gives each call of a request an id of its own.
type CallIDs struct {
	// Limit is how long an id may be.
	Limit int
	used  map[string]bool
}

// Taken reports whether a call has the id already.
func (c *CallIDs) Taken(id string) bool { return c.used[id] }

// Take makes the id one that a call has.
func (c *CallIDs) Take(id string) {
	if c.used == nil {
		c.used = map[string]bool{}
	}
	c.used[id] = true
}

// Next is the id for the next call, whose id in the log is id.
func (c *CallIDs) Next(id string) string {
	free := Name(id, c.Limit)
	for n := 2; c.used[free]; n++ {
		free = Name(fmt.Sprintf("%s_%d", id, n), c.Limit)
	}
	c.Take(free)
	return free
}

// Arguments makes an object of the arguments of a call, as providers want them.
// What is none becomes the only member of one.
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

// Blank reports whether a text says nothing: providers refuse such text.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }
