package formats_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/store/memory"
)

// gatedStore holds its first append until the other store is at its first append.
type gatedStore struct {
	eventlog.Store
	once sync.Once
	both *sync.WaitGroup
}

func (s *gatedStore) Unwrap() eventlog.Store { return s.Store }

func (s *gatedStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	s.once.Do(func() {
		s.both.Done()
		s.both.Wait()
	})
	return s.Store.Append(ctx, session, expect, events, durable)
}

// Two imports of one file at the same time store its events once. Each counts the events
// that it stored; the other records are present.
func TestParallelImports(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	var lines strings.Builder
	const records = 30
	parent := "null"
	for i := range records {
		id := fmt.Sprintf(`"%08d-0000-4000-8000-000000000000"`, i)
		fmt.Fprintf(&lines, `{"parentUuid":%s,"isSidechain":false,"sessionId":"a","type":"user","message":{"role":"user","content":"%d"},"uuid":%s,`+
			`"timestamp":"2026-01-01T00:00:00.000Z"}`+"\n", parent, i, id)
		parent = id
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	data := memory.New()
	var both, done sync.WaitGroup
	both.Add(2)
	totals := make([]interop.Result, 2)
	for i := range totals {
		log := eventlog.Open(&gatedStore{Store: data.Handle(), both: &both})
		done.Go(func() {
			table, err := interop.Import(t.Context(), log, formats.All(), []string{path})
			if err != nil {
				t.Error(err)
			}
			totals[i] = table.Total()
		})
	}
	done.Wait()
	head, err := eventlog.Open(data.Handle()).Head(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	first, second := totals[0], totals[1]
	if int64(first.Events+second.Events) != head.Seq || first.Events*second.Events != 0 {
		t.Errorf("%d and %d events stored, the session has %d", first.Events, second.Events, head.Seq)
	}
	if first.Imported+second.Imported != records || first.Present+second.Present != records {
		t.Errorf("imported %d and %d records, present %d and %d", first.Imported, second.Imported, first.Present, second.Present)
	}
}
