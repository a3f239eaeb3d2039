package records

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

func TestOriginIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []Origin{
		{},
		{Source: "a \"quoted\" \\ file\n\u2028é", Line: 1, Offset: 2, Bytes: 3, Digest: event.DigestOf(nil), Part: 4},
		{Source: "f", Line: 1, Part: 2, Key: event.DigestOf(nil)},
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
