package rawjson

import "bytes"

// Deeper reports whether the objects and arrays of a well-formed value are nested in
// more than the given number of levels.
func Deeper(value []byte, than int) bool {
	// Each level has an opening and a closing character.
	if len(value) <= 2*than || bytes.Count(value, []byte{'{'})+bytes.Count(value, []byte{'['}) <= than {
		return false
	}
	depth := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = stringEnd(value, i)
		case '{', '[':
			if depth++; depth > than {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Wider reports whether the object at the start of text has more than the given number of
// members. The text may end within the object.
func Wider(text []byte, than int) bool {
	const least = len(`"":0,`)
	if len(text) <= than*least || text[0] != '{' {
		return false
	}
	depth, commas := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		case ',':
			if depth == 1 {
				commas++
			}
			if commas >= than {
				return true
			}
		}
	}
	return false
}

// stringEnd returns the index of the closing quote of the string at i.
func stringEnd(value []byte, i int) int {
	for i++; i < len(value) && value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i
}
