package sessions

import (
	"testing"
	"time"
)

func TestPlaces(t *testing.T) {
	all := []place{
		ownPlace("s", "a", 0, 0), ownPlace("t", "a", 0, 0), ownPlace("s", "b", 0, 0), ownPlace("s", "a", 1, 0), ownPlace("s", "a", 0, 1),
		ownPlace("s", "a\x000", 0, 0), seqPlace("s", 1, 0), seqPlace("t", 1, 0), seqPlace("s", 2, 0), seqPlace("s", 1, 1), seqPlace("s", 11, 0),
	}
	seen := map[place]bool{}
	for _, p := range all {
		seen[p] = true
	}
	if len(seen) != len(all) {
		t.Errorf("%d different places of %d", len(seen), len(all))
	}
	k := all[0]
	for _, at := range []time.Time{{}, time.UnixMilli(1_700_000_000_123), time.UnixMilli(-5), time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id := k.id(at); placeOf(id) != k {
			t.Errorf("id %v at %v has another place", id, at)
		}
	}
	if got := k.id(time.UnixMilli(1_700_000_000_123)).Time(); got != 1_700_000_000_123 {
		t.Errorf("time of the id is %d", got)
	}
}

// The ids of the format, as docs/FORMAT.md describes them.
func TestIDsOfTheFormat(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	if id := ownPlace("s", "u1", 0, 0).id(at).String(); id != "01HF7YAT3V99DN8QVW9EW40Z28" {
		t.Errorf("the id of an own id is %s", id)
	}
	if id := seqPlace("s", 7, 0).id(at).String(); id != "01HF7YAT3VD52FN29S7GZ9SZ3J" {
		t.Errorf("the id of a seq is %s", id)
	}
}

// A UUID of version 3 or 5 is a digest of content.
func TestDrawnIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"": false, "msg_1": true, "0f8fad5b-d9cb-469f-a165-70867728950e": true, "886313e1-3b8a-5372-9b90-0c9aee199e5d": false,
		"5df41881-3aed-3515-88a7-2f4a814cf09e": false, "event 886313e1-3b8a-5372-9b90-0c9aee199e5d": false, "886313e1": true,
	} {
		if got := Drawn(id); got != want {
			t.Errorf("%q is drawn: %v", id, got)
		}
	}
}
