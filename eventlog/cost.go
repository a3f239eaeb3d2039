package eventlog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Cost is an amount of money in nano-dollars (USD × 10⁻⁹), so that sums are
// exact. The zero value is no cost.
type Cost int64

// Dollar is one US dollar.
const Dollar Cost = 1_000_000_000

// USD converts a floating-point amount, rounding to the nearest nano-dollar.
// Amounts that are negative, not a number, or beyond 9.2 billion are refused
// with ErrInvalidCost.
func USD(amount float64) (Cost, error) {
	nano := math.Round(amount * float64(Dollar))
	if math.IsNaN(nano) || nano < 0 || nano >= math.MaxInt64 {
		return 0, fmt.Errorf("%w: %v", ErrInvalidCost, amount)
	}
	return Cost(nano), nil
}

// ParseCost reads a decimal amount of dollars such as "0.0123": digits, at
// most nine decimals, no sign and no exponent.
func ParseCost(text string) (Cost, error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if whole == "" || dotted && fraction == "" || len(fraction) > 9 || !digits(whole) || !digits(fraction) {
		return 0, fmt.Errorf("%w: %q", ErrInvalidCost, text)
	}
	n, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", ErrInvalidCost, text)
	}
	return Cost(n), nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Add is the sum of both. What is beyond the largest amount is that amount, so
// that no sum is less than what it is of.
func (c Cost) Add(d Cost) Cost { return Cost(addWithin(int64(c), int64(d))) }

// addWithin is the sum of two numbers, or the one nearest to it that an int64 can
// hold.
func addWithin(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// USD is the amount as a floating-point number of dollars, for display.
func (c Cost) USD() float64 { return float64(c) / float64(Dollar) }

// String is the exact decimal amount, as it stands in a log.
func (c Cost) String() string { return string(c.append(nil)) }

func (c Cost) append(dst []byte) []byte {
	if c < 0 {
		return strconv.AppendFloat(dst, c.USD(), 'f', -1, 64)
	}
	dst = strconv.AppendInt(dst, int64(c/Dollar), 10)
	rest := int64(c % Dollar)
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := int64(Dollar) / 10; rest > 0; unit /= 10 {
		dst = append(dst, byte('0'+rest/unit))
		rest %= unit
	}
	return dst
}
