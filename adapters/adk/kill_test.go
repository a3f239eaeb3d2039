package adk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
)

// write appends events until the process is killed.
func write(log *eventlog.Log) error {
	ctx := context.Background()
	s := adk.New(log).Sessions
	got, err := s.Get(ctx, &session.GetRequest{AppName: "shop", UserID: "ann", SessionID: "s1"})
	if err != nil {
		return err
	}
	for n := got.Session.Events().Len() + 1; ; n++ {
		e := sets(fmt.Sprint(n), map[string]any{"k": n, "app:k": n, "user:k": n})
		e.ID = fmt.Sprint("event ", n)
		for range 2 { // a program that retries
			if err := s.AppendEvent(ctx, got.Session, e); err != nil {
				return err
			}
		}
		fmt.Println(n)
	}
}

// Of a process that is killed at any moment, each acknowledged event is stored once, and the states agree with the events.
func TestKill(t *testing.T) {
	begin := func(log *eventlog.Log) {
		create(t, adk.New(log).Sessions, map[string]any{"k": 0, "app:k": 0, "user:k": 0})
	}
	adaptertest.Kill(t, begin, func(t *testing.T, log *eventlog.Log, acknowledged []int) {
		got := get(t, adk.New(log).Sessions, 0)
		stored := texts(got)
		want := make([]string, len(stored))
		for i := range want {
			want[i] = fmt.Sprint(i + 1)
		}
		if len(stored) < slices.Max(acknowledged) || !slices.Equal(stored, want) {
			t.Fatalf("%d are acknowledged, stored %q", acknowledged, stored)
		}
		for _, key := range []string{"k", "app:k", "user:k"} {
			if v := value(t, got, key); v != float64(len(stored)) {
				t.Errorf("after event %d, %s is %v", len(stored), key, v)
			}
		}
	})
}
