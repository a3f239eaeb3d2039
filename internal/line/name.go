package line

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The largest lengths of a session id and of a type, in bytes.
const (
	MaxSession = 200
	MaxType    = 128
)

// nameError is the reason why a name is invalid. Creating one rarely allocates.
type nameError string

func (e nameError) Error() string { return string(e) }

// CheckName returns an error if name is not a valid session id or type. A name has 1
// to most bytes of UTF-8 and no control characters.
func CheckName(name string, most int) error {
	switch {
	case name == "":
		return nameError("empty")
	case len(name) > most:
		return nameError(fmt.Sprintf("longer than %d bytes", most))
	}
	ascii := true
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return nameError("control character")
		}
		ascii = ascii && name[i] < 0x80
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(name) {
		return nameError("not UTF-8")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return 0x80 <= r && r <= 0x9f }) {
		return nameError("control character")
	}
	return nil
}

// Clip shortens a text for an error message to 80 bytes and an ellipsis.
func Clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
