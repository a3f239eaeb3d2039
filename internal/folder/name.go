package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// MaxName is the length of the longest name of FileName, in bytes. 75 bytes are left
	// for what a caller adds.
	MaxName = 180
	// A longer name is cut to shortName bytes and gets a suffix: '~' and hashDigits
	// digits of the id's hash.
	shortName  = 147
	hashDigits = 32
)

// FileName returns the name, without extension, of the file of a session id. Distinct
// ids have distinct names, also on file systems that ignore case. No name contains a
// path separator or begins with a dot.
func FileName(id string) string {
	if isPlain(id) {
		return id
	}
	var b strings.Builder
	cut := 0 // longest prefix within shortName that does not split an escaped byte
	for i := range len(id) {
		if c := id[i]; isSafe(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
		if b.Len() <= shortName {
			cut = b.Len()
		}
	}
	if b.Len() <= MaxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(id))
	return b.String()[:cut] + "~" + hex.EncodeToString(sum[:])[:hashDigits]
}

// SessionID returns the session id of a file name. ok is false if FileName does not
// produce the name, and for a shortened name: then the first line of the file has the
// id.
func SessionID(name string) (id string, ok bool) {
	if isPlain(name) {
		return name, true
	}
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
	return id, id != "" && FileName(id) == name
}

// isPlain reports whether FileName returns id unchanged.
func isPlain(id string) bool {
	if len(id) > MaxName || id == "" || id[0] == '.' {
		return false
	}
	for i := range len(id) {
		if !isSafe(id[i]) {
			return false
		}
	}
	return true
}

func isSafe(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
