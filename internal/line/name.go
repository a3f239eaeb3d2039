package line

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The longest session id and the longest type, in bytes.
const (
	MaxSession = 200
	MaxType    = 128
)

// nameError says why a text is no name. It needs no allocation to be discarded.
type nameError string

func (e nameError) Error() string { return string(e) }

// CheckName says why a text cannot be a session id or a type: names are 1 to most
// bytes of UTF-8 without control characters.
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

// Clip shortens text that is quoted in an error.
func Clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
