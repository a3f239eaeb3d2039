package event

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
)

// Cost is an amount of money in nano-dollars (USD × 10⁻⁹), so that sums are
// exact. The zero value is no cost.
type Cost int64

// Dollar is one US dollar.
const Dollar Cost = 1_000_000_000

// USD converts a floating-point amount, rounded to the nearest nano-dollar.
// Amounts that are negative, not a number, or beyond 9.2 billion are refused with
// Rule("cost").
func USD(amount float64) (Cost, error) {
	nano := math.Round(amount * float64(Dollar))
	if math.IsNaN(nano) || nano < 0 || nano >= math.MaxInt64 {
		return 0, fmt.Errorf("%w: %v", errCost, amount)
	}
	return Cost(nano), nil
}

// parseCost parses a decimal amount of dollars, for example "0.0123": digits, at
// most nine decimals, no sign and no exponent.
func parseCost(text string) (Cost, error) {
	nano, ok := line.ParseCost(text)
	if !ok {
		return 0, fmt.Errorf("%w: %q", errCost, line.Clip(text))
	}
	return Cost(nano), nil
}

// Add is the sum of both, at most the largest amount: no sum is less than one of
// its parts.
func (c Cost) Add(d Cost) Cost { return Cost(addWithin(int64(c), int64(d))) }

// addWithin is the sum of two numbers, or the nearest int64.
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

// String is the exact decimal amount, as a log stores it.
func (c Cost) String() string { return string(c.append(nil)) }

func (c Cost) append(dst []byte) []byte {
	if c < 0 {
		return strconv.AppendFloat(dst, c.USD(), 'f', -1, 64)
	}
	return line.AppendCost(dst, int64(c))
}

// MarshalJSONTo writes the amount as an exact decimal number of dollars. A
// negative amount is refused with Rule("cost").
func (c Cost) MarshalJSONTo(enc *jsontext.Encoder) error {
	if c < 0 {
		return fmt.Errorf("%w: %v is negative", errCost, c)
	}
	return enc.WriteValue(c.append(nil))
}

// UnmarshalJSONFrom reads a decimal number of dollars: digits, at most nine decimals, no sign and
// no exponent.
func (c *Cost) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	parsed, err := parseCost(string(value))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
