package line

import (
	"strconv"
	"strings"
)

// dollar is one dollar in nano-dollars.
const dollar = 1_000_000_000

// ParseCost parses a decimal amount of dollars: digits, at most nine decimals, no sign
// and no exponent. The result is in nano-dollars.
func ParseCost(text string) (nano int64, ok bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if whole == "" || dotted && fraction == "" || len(fraction) > 9 || !IsDigits(whole) || !IsDigits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64)
	return n, err == nil
}

// AppendCost appends nano-dollars as a decimal amount of dollars, without trailing
// zeros. nano must not be negative.
func AppendCost(dst []byte, nano int64) []byte {
	dst = strconv.AppendInt(dst, nano/dollar, 10)
	rest := nano % dollar
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := int64(dollar / 10); rest > 0; unit /= 10 {
		dst = append(dst, byte('0'+rest/unit))
		rest %= unit
	}
	return dst
}

// IsDigits reports whether s has only decimal digits. An empty s has only digits.
func IsDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
