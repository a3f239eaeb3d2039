package testsize

import (
	"testing"

	"pgregory.net/rapid"
)

// A test of rapid runs as many histories as the size of the tests says, also in the short form.
func TestHistories(t *testing.T) {
	got := 0
	rapid.Check(t, func(*rapid.T) { got++ })
	if want := histories(100); got != want {
		t.Errorf("%d histories, want %d", got, want)
	}
}
