package event

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// The rules, the facts and the payload of an event are read from its data, also if a byte of
// the data changes after New.
func TestFactsAreReadFromTheData(t *testing.T) {
	for _, name := range Types() {
		for _, sample := range samplesOf(name) {
			p, err := vocabulary[name].decode(name, sample)
			if err != nil {
				t.Fatal(err)
			}
			made := New(p)
			made.remember()
			_, _ = DecodeKept[struct{}](&made)
			for i := range made.Data {
				before := made.Data[i]
				for _, changed := range []byte{'"', before ^ 1} {
					made.Data[i] = changed
					fresh := Event{Type: name, Data: made.Data.Clone()}
					if got, want := outcomeOf(made), outcomeOf(fresh); got != want {
						t.Fatalf("%s %s: differs from an event without New: %s", name, made.Data, cmp.Diff(want, got))
					}
				}
				made.Data[i] = before
			}
		}
	}
}

// outcomeOf describes the result of an append and of a read of e.
func outcomeOf(e Event) string {
	if err := e.Normalize(); err != nil {
		return err.Error()
	}
	f, err := e.Facts()
	var fork Fork
	if f.Fork != nil {
		fork, f.Fork = *f.Fork, nil
	}
	p, bad := e.Payload()
	again, _ := json.Marshal(p, json.Deterministic(true))
	_, kept := DecodeKept[struct{}](&e)
	return fmt.Sprintf("%s\n%+v %+v %v\n%s %v\n%v", e.Data, f, fork, err, again, bad, kept)
}
