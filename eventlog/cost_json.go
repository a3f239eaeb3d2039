package eventlog

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// MarshalJSONTo writes the amount as an exact decimal number of dollars. A
// negative amount is refused with ErrInvalidCost.
func (c Cost) MarshalJSONTo(enc *jsontext.Encoder) error {
	if c < 0 {
		return fmt.Errorf("%w: %v is negative", ErrInvalidCost, c)
	}
	return enc.WriteValue(c.append(nil))
}

// UnmarshalJSONFrom reads a decimal number of dollars as ParseCost does.
func (c *Cost) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	parsed, err := ParseCost(string(value))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
