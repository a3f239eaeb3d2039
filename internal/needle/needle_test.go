package needle

import (
	"bytes"
	"slices"
	"testing"
)

// TestIn places a needle at every position around the border of two chunks.
func TestIn(t *testing.T) {
	needle := []byte("secret")
	for at := chunk - 2*len(needle); at < chunk+2*len(needle); at++ {
		file := make([]byte, chunk+100)
		copy(file[at:], needle)
		var got []int64
		for place, err := range In(t.Context(), bytes.NewReader(file), [][]byte{[]byte("longer than the needle"), needle}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, place)
		}
		if !slices.Equal(got, []int64{int64(at)}) {
			t.Errorf("a needle at %d is found at %v", at, got)
		}
	}
}
