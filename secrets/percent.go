package secrets

import "bytes"

// unescapePercent replaces escapes such as %5F by their ASCII characters. The byte i of the plain
// text begins at places[i] of the escaped one; places has one more element, for the end. It returns
// nil if text has no such escape.
func unescapePercent(text []byte) (plain []byte, places []int) {
	for i := 0; i < len(text); i++ {
		c, ok := escapedByPercent(text[i:])
		if ok && plain == nil {
			plain, places = append(make([]byte, 0, len(text)), text[:i]...), make([]int, i, len(text)+1)
			for n := range places {
				places[n] = n
			}
		}
		switch {
		case ok:
			plain, places = append(plain, c), append(places, i)
			i += len("5F")
		case plain != nil:
			plain, places = append(plain, text[i]), append(places, i)
		default: // to the next percent sign
			n := bytes.IndexByte(text[i+1:], '%')
			if n < 0 {
				return nil, nil
			}
			i += n
		}
	}
	if plain != nil {
		places = append(places, len(text))
	}
	return plain, places
}

// escapedByPercent returns the character of the escape at the start of text, if it is of
// printable ASCII or white space.
func escapedByPercent(text []byte) (c byte, ok bool) {
	if len(text) < len("%5F") || text[0] != '%' {
		return 0, false
	}
	high, ok := hexDigit(text[1])
	low, ok2 := hexDigit(text[2])
	c = high<<4 | low
	return c, ok && ok2 && (' ' <= c && c <= '~' || c == '\n' || c == '\r' || c == '\t')
}

func hexDigit(c byte) (n byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
