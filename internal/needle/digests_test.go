package needle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/convlog/convlog/internal/line"
)

// Digests finds a digest at any place of a text, and finds it once.
func TestDigests(t *testing.T) {
	first, second := digest("1"), digest("2")
	const part = 64 << 10
	for _, before := range []int{0, 1, part - 200, part - 72, part - 71, part - 70, part - 1, part, 2*part - 140, 2 * part} {
		text := strings.Repeat("x", before) + first + second + "sha256:" + first[:70]
		var got []string
		for d, err := range Digests(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		if fmt.Sprint(got) != fmt.Sprint([]string{first, second}) {
			t.Errorf("behind %d bytes: %v", before, got)
		}
	}
	failed := errors.New("failed")
	for d, err := range Digests(iotest.ErrReader(failed)) {
		if d != "" || !errors.Is(err, failed) {
			t.Errorf("got %v, %v", d, err)
		}
	}
}

func digest(text string) string { return line.Digest(sha256.Sum256([]byte(text))) }
