package flow_test

import (
	"bytes"
	"context"
	"errors"
	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/sink"
)

// The sinks of a parent get the trees and the costs of the whole tree, each cost once,
// whatever process runs it.
func TestSinksOfATree(t *testing.T) {
	for n := 0; n < 60; n += testsize.Pick(30, 10, 1) {
		h := newHousehold(t)
		folder := sink.OpTreeFolder(filepath.Join(t.TempDir(), "trees"))
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		for i, how := range []crash{crashAfter, noCrash} {
			ledger, err := sink.OpenLedger(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			h.sinks = &sink.Sinks{Folder: folder, Ledger: ledger}
			err = h.process(&crashStore{Store: h.data.Handle(), n: 3*n + 1, how: how})
			if err != nil && i > 0 {
				t.Fatal(err)
			}
			ledger.Close()
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var sum event.Cost
		seen := map[ulid.ULID]int{}
		entries := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
		for _, line := range entries {
			var e sink.LedgerEntry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			sum += e.Cost
			seen[e.EventID]++
		}
		if len(seen) != len(entries) || sum != 4*event.Dollar/100 {
			t.Fatalf("crash %d: %d entries of %v", n, len(entries), sum)
		}
		sessions := 0
		for info, err := range h.log.Sessions(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			sessions++
			tree, err := folder.Read(info.ID)
			if err != nil || tree.Reason != "final" || tree.OriginID != "s" || tree.SessionID != info.ID {
				t.Errorf("%s: %+v, %v", info.ID, tree, err)
			}
		}
		if sessions != 4 {
			t.Errorf("%d sessions", sessions)
		}
	}
}

// A sink that fails, panics or blocks changes nothing of a session.
func TestSinksThatFail(t *testing.T) {
	for name, snapshot := range map[string]func(context.Context, *runlog.OpTreeFile) error{
		"fails":   func(context.Context, *runlog.OpTreeFile) error { return errors.New("disk full") },
		"panics":  func(context.Context, *runlog.OpTreeFile) error { panic("oh") },
		"blocks":  func(ctx context.Context, _ *runlog.OpTreeFile) error { <-ctx.Done(); return ctx.Err() },
		"forever": func(ctx context.Context, _ *runlog.OpTreeFile) error { time.Sleep(time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain, h := newHousehold(t), newHousehold(t)
				if err := plain.process(&crashStore{Store: plain.data.Handle()}); err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				var warnings []*sink.Error
				flushed := map[string]int{}
				h.sinks = &sink.Sinks{Timeout: time.Second, Snapshot: snapshot,
					Account: func(_ context.Context, a sink.Accounts) error {
						mu.Lock()
						defer mu.Unlock()
						flushed[a.SessionID] += len(a.Entries)
						return nil
					},
					Warn: func(w *sink.Error) { mu.Lock(); warnings = append(warnings, w); mu.Unlock() }}
				start := time.Now()
				if err := h.process(&crashStore{Store: h.data.Handle()}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > time.Minute { // of the fake clock
					t.Errorf("took %v", took)
				}
				if got, want := h.final(), plain.final(); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				reasons := map[string]int{}
				for _, w := range warnings {
					reasons[w.Reason]++
					if w.Sink != "snapshot" || w.Session == "" {
						t.Errorf("warning %v", w)
					}
				}
				if reasons["final"] < 4 || reasons["subagent_finish"] < 3 || len(flushed) != 4 {
					t.Errorf("warnings %v, flushed %v", reasons, flushed)
				}
				time.Sleep(2 * time.Hour) // the blocked sinks end
			})
		})
	}
}
