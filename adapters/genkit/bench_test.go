package genkit_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/ai/exp/localstore"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// Side by side with Genkit's store of files. Run by hand: go test -run - -bench . -benchtime 200x
var stores = map[string]func(b *testing.B, dir string) exp.SessionStore[state]{
	"files": func(b *testing.B, dir string) exp.SessionStore[state] {
		s, err := localstore.NewFileSessionStore[state](dir)
		if err != nil {
			b.Fatal(err)
		}
		return s
	},
	"jsonl": func(b *testing.B, dir string) exp.SessionStore[state] { return logStore(b, jsonl.New(dir)) },
	"sqlite": func(b *testing.B, dir string) exp.SessionStore[state] {
		return logStore(b, sqlite.New(filepath.Join(dir, "log.db")))
	},
}

func logStore(b *testing.B, store eventlog.Store) exp.SessionStore[state] {
	return adapter.New[state](adaptertest.Open(b, func() (eventlog.Store, error) { return store, nil }))
}

func eachBenchStore(b *testing.B, run func(b *testing.B, s exp.SessionStore[state], dir string)) {
	for _, name := range []string{"files", "jsonl", "sqlite"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			run(b, stores[name](b, dir), dir)
		})
	}
}

// grow saves a snapshot with two messages more than the one before.
func grow(b *testing.B, s exp.SessionStore[state], messages []*ai.Message, n int) []*ai.Message {
	messages = append(messages, user(fmt.Sprint("Where is my parcel number ", n, "?")), model(fmt.Sprint("Parcel ", n, " is in Leipzig.")))
	_, err := s.SaveSnapshot(b.Context(), fmt.Sprint("turn-", n), func(*snapshot) (*snapshot, error) {
		return &snapshot{SessionID: "s", State: &exp.SessionState[state]{SessionID: "s", Messages: messages, Custom: state{Counter: n}}}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return messages
}

// The conversation has 200 messages before.
func BenchmarkSaveTurn(b *testing.B) {
	eachBenchStore(b, func(b *testing.B, s exp.SessionStore[state], dir string) {
		var messages []*ai.Message
		for n := range 100 {
			messages = grow(b, s, messages, n)
		}
		before := size(b, dir)
		for n := 100; b.Loop(); n++ {
			messages = grow(b, s, messages, n)
		}
		b.ReportMetric(float64(size(b, dir)-before)/float64(b.N), "bytes/turn")
	})
}

func BenchmarkLatestOf200Messages(b *testing.B) {
	eachBenchStore(b, func(b *testing.B, s exp.SessionStore[state], _ string) {
		var messages []*ai.Message
		for n := range 100 {
			messages = grow(b, s, messages, n)
		}
		for b.Loop() {
			if got, err := s.GetLatestSnapshot(b.Context(), "s"); err != nil || len(got.State.Messages) != 200 {
				b.Fatal(got, err)
			}
		}
	})
}

// size is the size of the files in a folder.
func size(b *testing.B, dir string) (bytes int64) {
	err := filepath.WalkDir(dir, func(_ string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		info, err := f.Info()
		bytes += info.Size()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
