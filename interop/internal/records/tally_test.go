package records

import (
	"fmt"
	"testing"
)

// However many sessions a file has, each is noted once, in order of appearance.
func TestTouch(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 1000} {
		var r Tally
		for range 3 {
			for i := range n {
				r.Touch(fmt.Sprint(i))
				r.Touch(fmt.Sprint(i / 2))
			}
		}
		if len(r.Sessions) != n || r.Sessions[n-1] != fmt.Sprint(n-1) {
			t.Errorf("of %d sessions %d were noted", n, len(r.Sessions))
		}
	}
}
