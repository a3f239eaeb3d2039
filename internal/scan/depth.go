package scan

import "bytes"

// Deeper reports whether objects and arrays of a value are nested in more than so
// many levels. The value must be well-formed.
func Deeper(value []byte, than int) bool {
	// Each level has a beginning and an end.
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

// stringEnd is where the string that begins at i ends.
func stringEnd(value []byte, i int) int {
	for i++; i < len(value) && value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i
}
