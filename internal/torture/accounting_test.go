//go:build unix

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/runlog/stats"
)

// sharedSession is a session that both processes of TestKillLedger spend in and flush.
const sharedSession = "shared"

func ledgerIn(dir string) string { return filepath.Join(dir, "spent") }

func treesIn(dir string) sink.OpTreeFolder { return sink.OpTreeFolder(filepath.Join(dir, "trees")) }

// flushJob spends in two sessions and gives their op trees and costs to the sinks, until
// the process is killed.
func flushJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	l, err := sink.OpenLedger(ctx, ledgerIn(j.Dir))
	if err != nil {
		return err
	}
	sinks := &sink.Sinks{Ledger: l, Folder: treesIn(j.Dir), Timeout: time.Minute}
	random := rand.New(rand.NewPCG(j.Seed, uint64(j.Writer)+uint64(j.From)<<8))
	for n := 0; ctx.Err() == nil; n++ {
		session := sharedSession
		if random.IntN(2) == 0 {
			session = fmt.Sprintf("own-%d", j.Writer)
		}
		var events []event.Event
		for range 1 + random.IntN(20) {
			events = append(events, costly(1+random.Int64N(100), event.Cost(1+random.Int64N(1_000_000))))
		}
		if _, err := log.Append(ctx, session, eventlog.Any(), events...); err != nil {
			return err
		}
		run := sinks.Run(log, session, "")
		for _, warning := range append(run.ChildFinished(ctx), run.Finish(ctx)...) {
			return warning
		}
		report("flushed", n, 0)
	}
	return nil
}

// costly is an answer with tokens and a cost.
func costly(tokens int64, cost event.Cost) event.Event {
	e := event.New(event.Message{Role: event.Assistant, Model: "m", Parts: []event.Part{event.Text("yes")}, Usage: event.Usage{OutputTokens: tokens}})
	e.Cost = cost
	return e
}

// Two processes write the op trees and the costs of the same session and of their own
// ones, and are killed at any moment. The op tree of a session is always whole. Each cost
// has one line, and the lines of a session and its flushes add up to the cost that the session
// spent.
func TestKillLedger(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		kills, sessions := 0, []string{sharedSession, "own-0", "own-1"}
		log := s.backend.log(s.dir)
		for _, session := range sessions { // a child that is killed soon uses one of its two
			_, err := log.Append(s.ctx, session, eventlog.New(), costly(1, 1))
			s.must(err)
		}
		s.must(log.Close()) // the children are alone
		launch := func(writer int) (*child, chan struct{}) {
			flushed := make(chan struct{}, 1)
			c := s.start(job{Do: "flush", Writer: writer, From: kills}, func(string) {
				select {
				case flushed <- struct{}{}:
				default:
				}
			})
			return c, flushed
		}
		var children [2]*child
		var flushed [2]chan struct{}
		for i := range children {
			children[i], flushed[i] = launch(i)
		}
		for ; kills < *killsFlag; kills++ {
			i := s.random.IntN(len(children))
			s.flushedBy(children[i], flushed[i])
			time.Sleep(time.Duration(s.random.Int64N(int64(5 * time.Millisecond))))
			s.must(children[i].kill())
			s.checkTrees(sessions...)
			if s.random.IntN(3) == 0 {
				s.leaveTornEntry()
			}
			children[i], flushed[i] = launch(i)
		}
		for i := range children {
			s.flushedBy(children[i], flushed[i])
			s.must(children[i].kill())
		}
		lines := s.checkLedger(sessions...)
		t.Logf("%d kills, %d lines, each cost once", kills, lines)
	})
}

// flushedBy waits until a child has flushed once.
func (s *fixture) flushedBy(c *child, flushed chan struct{}) {
	s.Helper()
	select {
	case <-flushed:
	case <-c.silent:
		s.Fatal(c.finish())
	}
}

// leaveTornEntry appends the beginning of a line under the lock of the ledger, as a process
// leaves it that is killed during a write.
func (s *fixture) leaveTornEntry() {
	s.Helper()
	f, err := flock.Open(s.ctx, ledgerIn(s.dir), 0o600)
	s.must(err)
	text, err := os.ReadFile(f.Name())
	s.must(err)
	if bytes.HasSuffix(text, []byte("\n")) {
		_, err = f.WriteAt([]byte(`{"session_id":"shared","seq":3,"eve`), int64(len(text)))
	}
	s.must(errors.Join(err, f.Close()))
}

// checkTrees reads the op trees of sessions, if they have one.
func (s *fixture) checkTrees(sessions ...string) {
	s.Helper()
	for _, session := range sessions {
		f, err := treesIn(s.dir).Read(session)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.must(err)
		if f.Reason != "final" && f.Reason != "subagent_finish" {
			s.Fatalf("the op tree of %q has the reason %q", session, f.Reason)
		}
	}
}

// checkLedger flushes the sessions once more and compares the ledger with the log.
func (s *fixture) checkLedger(sessions ...string) (lines int) {
	s.Helper()
	log := s.log()
	l, err := sink.OpenLedger(s.ctx, ledgerIn(s.dir))
	s.must(err)
	for _, session := range sessions {
		_, _, err := l.Flush(s.ctx, log, session)
		s.must(err)
	}
	s.must(l.Close())
	text, err := os.ReadFile(ledgerIn(s.dir))
	s.must(err)
	costs, seen := map[string]event.Cost{}, map[ulid.ULID]bool{}
	for line := range strings.Lines(string(text)) {
		var e sink.LedgerEntry
		s.must(json.Unmarshal([]byte(line), &e, json.RejectUnknownMembers(true)))
		if seen[e.EventID] || !strings.HasSuffix(line, "\n") {
			s.Fatalf("line %d is torn, or its event has another line: %q", len(seen)+1, line)
		}
		seen[e.EventID] = true
		costs[e.SessionID] = costs[e.SessionID].Add(e.Cost)
	}
	for _, session := range sessions {
		spent, err := stats.LoadCost(s.ctx, log, session)
		s.must(err)
		var flushed event.Cost
		for e, err := range log.Read(s.ctx, session, eventlog.All()) {
			s.must(err)
			if f, ok, err := event.Decode[event.AccountingFlush](&e); ok {
				s.must(err)
				flushed = flushed.Add(f.Total)
			}
		}
		if spent.Own.Cost == 0 || costs[session] != spent.Own.Cost || flushed != spent.Own.Cost {
			s.Errorf("session %q spent %v: the ledger has %v, the flushes have %v", session, spent.Own.Cost, costs[session], flushed)
		}
	}
	return len(seen)
}
