package event_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/convlog/convlog/event"
)

// DigestsIn finds a digest at any place of a text, and finds it once.
func TestDigestsIn(t *testing.T) {
	first, second := event.DigestOf([]byte("1")), event.DigestOf([]byte("2"))
	const part = 64 << 10
	for _, before := range []int{0, 1, part - 200, part - 72, part - 71, part - 70, part - 1, part, 2*part - 140, 2 * part} {
		text := strings.Repeat("x", before) + string(first) + string(second) + "sha256:" + string(first[:70])
		var got []event.Digest
		for d, err := range event.DigestsIn(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		if fmt.Sprint(got) != fmt.Sprint([]event.Digest{first, second}) {
			t.Errorf("behind %d bytes: %v", before, got)
		}
	}
	failed := errors.New("failed")
	for d, err := range event.DigestsIn(iotest.ErrReader(failed)) {
		if d != "" || !errors.Is(err, failed) {
			t.Errorf("got %v, %v", d, err)
		}
	}
}
