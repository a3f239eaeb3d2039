package genkit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/firebase/genkit/go/ai/exp"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
)

func TestMain(m *testing.M) { adaptertest.Main(m, write) }

// write counts in one snapshot, and in a new one each time, until the process is killed.
func write(log *eventlog.Log) error {
	s := adapter.New[state](log)
	for {
		next, err := count(context.Background(), s, "counter")
		if err != nil {
			return err
		}
		counted := next.State.Custom.Counter
		if _, err = s.SaveSnapshot(context.Background(), fmt.Sprint("turn ", counted), func(*snapshot) (*snapshot, error) { return next, nil }); err != nil {
			return err
		}
		fmt.Println(counted)
	}
}

// count adds one to the counter of a snapshot, and a message with the sum.
func count(ctx context.Context, s *store, id string) (*snapshot, error) {
	return s.SaveSnapshot(ctx, id, func(existing *snapshot) (*snapshot, error) {
		next := snapshot{SessionID: "s", State: &exp.SessionState[state]{}}
		if existing != nil {
			next = *existing
		}
		next.State.Custom.Counter++
		next.State.Messages = append(next.State.Messages, user(fmt.Sprint(next.State.Custom.Counter)))
		return &next, nil
	})
}

// Of a process that is killed at any moment, each acknowledged snapshot is stored, and none is half stored.
func TestKill(t *testing.T) {
	adaptertest.Kill(t, func(*eventlog.Log) {}, func(t *testing.T, log *eventlog.Log, acknowledged []int) {
		s := adapter.New[state](log)
		got := get(t, s, "counter")
		if got == nil || got.State.Custom.Counter < slices.Max(acknowledged) || len(got.State.Messages) != got.State.Custom.Counter {
			t.Fatalf("%d are acknowledged, stored %+v", acknowledged, got)
		}
		for _, n := range acknowledged {
			if turn := get(t, s, fmt.Sprint("turn ", n)); turn == nil || turn.State.Custom.Counter != n || len(turn.State.Messages) != n {
				t.Errorf("turn %d is %+v", n, turn)
			}
		}
	})
}
