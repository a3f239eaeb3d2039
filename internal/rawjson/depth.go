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

// stringEnd returns the index of the closing quote of the string at i.
func stringEnd(value []byte, i int) int {
	for i++; i < len(value) && value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i
}
