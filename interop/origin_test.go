package interop

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

func TestKeys(t *testing.T) {
	a, b := event.DigestOf([]byte("a")), event.DigestOf([]byte("b"))
	keys := map[Key]bool{
		RecordKey("s", a, 0, 0): true, RecordKey("t", a, 0, 0): true, RecordKey("s", b, 0, 0): true,
		RecordKey("s", a, 1, 0): true, RecordKey("s", a, 0, 1): true, FixedKey("s", "x"): true,
	}
	if len(keys) != 6 {
		t.Errorf("%d different keys of 6", len(keys))
	}
	k := RecordKey("s", a, 0, 0)
	for _, at := range []time.Time{{}, time.UnixMilli(1_700_000_000_123), time.UnixMilli(-5), time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id := k.ID(at); KeyOf(id) != k {
			t.Errorf("id %v at %v has another key", id, at)
		}
	}
	if got := k.ID(time.UnixMilli(1_700_000_000_123)).Time(); got != 1_700_000_000_123 {
		t.Errorf("time of the id is %d", got)
	}
}

func TestOriginIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []Origin{
		{},
		{Source: "a \"quoted\" \\ file\n\u2028é", Line: 1, Offset: 2, Bytes: 3, Digest: event.DigestOf(nil), Part: 4},
	} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Origin
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("%s is %+v, want %+v: %v", text, got, want, err)
		}
	}
}
