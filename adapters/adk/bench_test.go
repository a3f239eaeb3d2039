package adk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// Side by side with ADK's SQL service over SQLite. Run by hand: go test -run - -bench . -benchtime 200x
var services = map[string]func(b *testing.B, dir string) session.Service{
	"sql":   func(b *testing.B, dir string) session.Service { return sqlService(b, filepath.Join(dir, "adk.db")) },
	"jsonl": func(b *testing.B, dir string) session.Service { return logService(b, jsonl.New(dir)) },
	"sqlite": func(b *testing.B, dir string) session.Service {
		return logService(b, sqlite.New(filepath.Join(dir, "log.db")))
	},
}

func logService(b *testing.B, store eventlog.Store) session.Service {
	return adk.New(adaptertest.Open(b, func() (eventlog.Store, error) { return store, nil })).Sessions
}

func eachService(b *testing.B, run func(b *testing.B, s session.Service, dir string)) {
	for _, name := range []string{"sql", "jsonl", "sqlite"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			run(b, services[name](b, dir), dir)
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	eachService(b, func(b *testing.B, s session.Service, dir string) {
		to := create(b, s, nil)
		for n := 0; b.Loop(); n++ {
			appendEvents(b, s, to, sets(fmt.Sprint("Where is my parcel number ", n, "?"), map[string]any{"last": n}))
		}
		b.ReportMetric(float64(size(b, dir))/float64(b.N), "bytes/event")
	})
}

func BenchmarkLast20Of10000(b *testing.B) {
	eachService(b, func(b *testing.B, s session.Service, _ string) {
		to := create(b, s, nil)
		for n := range 10_000 {
			appendEvents(b, s, to, sets(fmt.Sprint("Where is my parcel number ", n, "?"), map[string]any{"last": n}))
		}
		for b.Loop() {
			if get(b, s, 20).Events().Len() != 20 {
				b.Fatal("events are missing")
			}
		}
	})
}

func BenchmarkList1000(b *testing.B) {
	eachService(b, func(b *testing.B, s session.Service, _ string) {
		for n := range 1000 {
			created, err := s.Create(context.Background(), &session.CreateRequest{AppName: "shop", UserID: "ann", State: map[string]any{"n": n}})
			if err != nil {
				b.Fatal(err)
			}
			appendEvents(b, s, created.Session, says("hello"))
		}
		for b.Loop() {
			list, err := s.List(context.Background(), &session.ListRequest{AppName: "shop", UserID: "ann"})
			if err != nil || len(list.Sessions) != 1000 {
				b.Fatal(len(list.Sessions), err)
			}
		}
	})
}

// size is the size of the files in a folder.
func size(b *testing.B, dir string) (bytes int64) {
	files, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
