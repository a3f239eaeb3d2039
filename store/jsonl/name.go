package jsonl

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	extension = ".jsonl"
	// What follows the name of a session in those of its other files.
	tornInfix     = ".torn-"
	tempSuffix    = ".tmp"
	rewriteSuffix = ".rewrite" + tempSuffix

	// maxName bounds a name before its extension, so that ".torn-<offset>"
	// fits into the 255 bytes of a directory entry too.
	maxName = 180
	// A longer name is cut to shortName bytes, then '~' and hashDigits digits.
	shortName  = 147
	hashDigits = 32
)

// escape gives the file name, without extension, of a session id. Distinct ids
// have distinct names on file systems that fold case, too, and no name
// is, or leads to, another directory.
func escape(id string) string {
	if plain(id) {
		return id
	}
	var b strings.Builder
	cut := 0 // the longest prefix of whole bytes within shortName
	for i := range len(id) {
		if c := id[i]; safe(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
		if b.Len() <= shortName {
			cut = b.Len()
		}
	}
	if b.Len() <= maxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(id))
	return b.String()[:cut] + "~" + hex.EncodeToString(sum[:])[:hashDigits]
}

// unescape is the inverse of escape. ok is false for a name that escape does
// not give, and for one that was cut: the first line of the file has the id.
func unescape(name string) (id string, ok bool) {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '%' {
			if i+2 >= len(name) {
				return "", false
			}
			raw, err := hex.DecodeString(name[i+1 : i+3])
			if err != nil {
				return "", false
			}
			c = raw[0]
			i += 2
		}
		b = append(b, c)
	}
	id = string(b)
	return id, id != "" && escape(id) == name
}

// plain reports whether id is its own name.
func plain(id string) bool {
	if len(id) > maxName || id == "" || id[0] == '.' {
		return false
	}
	for i := range len(id) {
		if !safe(id[i]) {
			return false
		}
	}
	return true
}

func safe(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
