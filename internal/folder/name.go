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

// FileName returns the name, without extension, of the file of a session id. It is the same
// on every system, so a folder can move between systems. Distinct ids have distinct names,
// also on file systems that ignore case. No name contains a path separator, begins with a
// dot, or is the name of a device on Windows.
func FileName(id string) string {
	if isPlain(id) {
		return id
	}
	var b strings.Builder
	cut := 0 // longest prefix within shortName that does not split an escaped byte
	for i := range len(id) {
		if c := id[i]; isSafe(c) && (i > 0 || c != '.' && !isDevice(id)) {
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
	if len(id) > MaxName || id == "" || id[0] == '.' || isDevice(id) {
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

// isDevice reports whether Windows has a device of this name, with any extension: con,
// con.jsonl. Names with other letters are escaped in any case.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}
