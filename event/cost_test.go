package event

import (
	"errors"
	"testing"
)

func TestCosts(t *testing.T) {
	for text, want := range map[string]Cost{
		"0": 0, "1": Dollar, "0.000000001": 1, "0.0123": 12_300_000, "12.5": 12_500_000_000, "1.10": 1_100_000_000,
	} {
		got, err := parseCost(text)
		if err != nil || got != want {
			t.Errorf("parseCost(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".1", "-1", "+1", "1e3", "0.0000000001", "99999999999", "1 ", "NaN"} {
		if got, err := parseCost(text); !errors.Is(err, errCost) {
			t.Errorf("parseCost(%q) = %v, %v", text, got, err)
		}
	}
	if got, err := USD(0.1); err != nil || got+got+got != 300_000_000 || (got+got+got).String() != "0.3" {
		t.Errorf("three times 0.1 is %v (%v)", got+got+got, err)
	}
}
