package sink_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/regular/special"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// books is a ledger under test and its log.
type books struct {
	*garden.Garden
	path   string
	ledger *sink.Ledger
}

// onBooks runs a test over a new ledger and a log of each store.
func onBooks(t *testing.T, test func(t *testing.T, b *books)) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			b := &books{Garden: &garden.Garden{T: t, Log: log}, path: filepath.Join(t.TempDir(), "spent.jsonl")}
			b.open()
			defer func() { b.Allow(b.ledger.Close()) }()
			test(t, b)
		})
	}
}

func (b *books) open() {
	b.T.Helper()
	l, err := sink.OpenLedger(garden.Bg, b.path)
	b.Allow(err)
	b.ledger = l
}

// reopen changes the file and opens it again.
func (b *books) reopen(change func(text string) string) {
	b.T.Helper()
	b.Allow(b.ledger.Close())
	text, err := os.ReadFile(b.path)
	b.Allow(err)
	b.Allow(os.WriteFile(b.path, []byte(change(string(text))), 0o600))
	b.open()
}

func (b *books) flush(session string) (event.AccountingFlush, bool) {
	b.T.Helper()
	f, flushed, err := b.ledger.Flush(garden.Bg, b.Log, session)
	b.Allow(err)
	return f, flushed
}

// spend appends answers with these costs, in dollars.
func (b *books) spend(session string, dollars ...int) {
	b.T.Helper()
	for _, n := range dollars {
		e := event.New(event.Message{Role: event.Assistant, Model: "m", Usage: event.Usage{OutputTokens: int64(n)},
			Parts: []event.Part{event.Text("yes")}})
		e.Cost = event.Cost(n) * 1_000_000_000
		b.Append(session, e)
	}
}

// entries are the lines of the file.
func (b *books) entries() (list []sink.LedgerEntry) {
	b.T.Helper()
	text, err := os.ReadFile(b.path)
	b.Allow(err)
	for line := range strings.Lines(string(text)) {
		var e sink.LedgerEntry
		if err := json.Unmarshal([]byte(line), &e, json.RejectUnknownMembers(true)); err != nil || !strings.HasSuffix(line, "\n") {
			b.T.Fatalf("line %q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

// costs formats the lines of the file, in dollars.
func (b *books) costs() (list []string) {
	b.T.Helper()
	for _, e := range b.entries() {
		list = append(list, fmt.Sprintf("%s %d: %d", e.SessionID, e.Seq, int64(e.Cost)/1_000_000_000))
	}
	return list
}

// flushes are the accounting_flushed events of a session.
func (b *books) flushes(session string) (list []event.AccountingFlush) {
	b.T.Helper()
	for _, e := range b.Lineage(session) {
		if f, ok, err := event.Decode[event.AccountingFlush](&e); ok {
			b.Allow(err)
			list = append(list, f)
		}
	}
	return list
}

func TestALedgerEntryEqualsItsEvent(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.Append("s", event.New(event.Session{Agent: "ada"}))
		turn := event.New(event.TurnStart{})
		b.Append("s", turn)
		b.spend("s", 2)
		f, flushed := b.flush("s")
		lineage := b.Lineage("s")
		answer := lineage[2]
		want := sink.LedgerEntry{SessionID: "s", Seq: 3, EventID: answer.ID, Time: answer.Timestamp, TurnID: turn.ID, Model: "m", Agent: "ada",
			Cost: 2_000_000_000, Usage: event.Usage{OutputTokens: 2}}
		garden.Same(t, "entries", []sink.LedgerEntry{want}, b.entries())
		if !flushed || f.Ledger != "spent.jsonl" || f.Through != 3 || f.Total != 2_000_000_000 {
			t.Errorf("flushed %v: %+v", flushed, f)
		}
		var said sink.LedgerEntry
		b.Allow(json.Unmarshal(f.Entries[0], &said))
		garden.Same(t, "the event's entry", want, said)
		garden.Same(t, "the event", []event.AccountingFlush{f}, b.flushes("s"))
		if info, err := os.Stat(b.path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v: %v", info.Mode(), err)
		}
	})
}

func TestASecondFlushAddsNothing(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1, 2)
		b.flush("s")
		head := b.Head("s")
		for range 2 {
			if f, flushed := b.flush("s"); flushed || f.Ledger != "" {
				t.Errorf("flushed %+v", f)
			}
			b.reopen(strings.Clone)
		}
		garden.Same(t, "head", head, b.Head("s"))
		garden.Same(t, "file", []string{"s 1: 1", "s 2: 2"}, b.costs())
		b.spend("s", 3)
		if f, flushed := b.flush("s"); !flushed || f.Total != 3_000_000_000 || f.Through != 4 {
			t.Errorf("flushed %v: %+v", flushed, f)
		}
		garden.Same(t, "file", []string{"s 1: 1", "s 2: 2", "s 4: 3"}, b.costs())
	})
}

// Each event has one line, and its flush one event, after a crash at any point of a
// flush.
func TestAnInterruptedFlushIsRepeated(t *testing.T) {
	for name, crash := range map[string]func(text string) string{
		"nothing written":     func(string) string { return "" },
		"no newline":          func(text string) string { return strings.TrimSuffix(text, "\n") },
		"half a line":         func(text string) string { return text[:len(text)-40] },
		"the first line":      func(text string) string { return text[:strings.Index(text, "\n")+1] },
		"all but no event":    strings.Clone,
		"and a line begun":    func(text string) string { return text + `{"session_id":"s","se` },
		"a line of NUL bytes": func(text string) string { return text + "\x00\x00\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			onBooks(t, func(t *testing.T, b *books) {
				b.spend("s", 1, 2, 3)
				refuse := &refusing{Store: b.Log.Store()}
				log := eventlog.Open(refuse)
				if _, flushed, err := b.ledger.Flush(garden.Bg, log, "s"); flushed || !errors.Is(err, errRefused) {
					t.Fatalf("flushed %v: %v", flushed, err)
				}
				garden.Same(t, "lines before the event", []string{"s 1: 1", "s 2: 2", "s 3: 3"}, b.costs())
				b.reopen(crash)
				f, flushed := b.flush("s")
				if !flushed || f.Total != 6_000_000_000 || len(f.Entries) != 3 {
					t.Errorf("flushed %v: %+v", flushed, f)
				}
				garden.Same(t, "file", []string{"s 1: 1", "s 2: 2", "s 3: 3"}, b.costs())
				if _, flushed := b.flush("s"); flushed {
					t.Error("and once more")
				}
			})
		})
	}
}

var errRefused = errors.New("refused")

// refusing is a store that writes nothing.
type refusing struct{ eventlog.Store }

func (r *refusing) Unwrap() eventlog.Store { return r.Store }

func (r *refusing) Append(context.Context, string, event.Head, []event.Event, bool) error {
	return errRefused
}

// A session that was removed and created again has seqs that the file already has.
func TestALedgerSeparatesSessionsWithOneName(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1, 2)
		b.flush("s")
		b.Allow(erase.Remove(garden.Bg, b.Log, "s"))
		b.spend("s", 4)
		b.flush("s")
		garden.Same(t, "file", []string{"s 1: 1", "s 2: 2", "s 1: 4"}, b.costs())
	})
}

// Two ledgers account for one session independently.
func TestEachLedgerHasItsOwnFlushes(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		b.flush("s")
		other := &books{Garden: b.Garden, path: filepath.Join(t.TempDir(), "other")}
		other.open()
		defer func() { b.Allow(other.ledger.Close()) }()
		b.spend("s", 2)
		if f, _ := other.flush("s"); f.Total != 3_000_000_000 || f.Ledger != "other" {
			t.Errorf("the other ledger: %+v", f)
		}
		if f, _ := b.flush("s"); f.Total != 2_000_000_000 {
			t.Errorf("the first one: %+v", f)
		}
	})
}

// The entries of a fork and of a copy leave out inherited costs.
func TestALedgerLeavesOutInheritedCosts(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		b.flush("s")
		b.spend("s", 2)
		_, err := fork.At(garden.Bg, b.Log, "s", fork.Head(), fork.Options{ID: "fork"})
		b.Allow(err)
		_, err = fork.Copy(garden.Bg, b.Log, "s", fork.CopyOptions{ID: "copy"})
		b.Allow(err)
		for _, session := range []string{"fork", "copy"} {
			if f, flushed := b.flush(session); flushed {
				t.Errorf("%s: %+v", session, f)
			}
			b.spend(session, 7)
			if f, _ := b.flush(session); f.Total != 7_000_000_000 {
				t.Errorf("%s: %+v", session, f)
			}
		}
		if f, _ := b.flush("s"); f.Total != 2_000_000_000 {
			t.Errorf("s: %+v", f)
		}
	})
}

func TestAFileThatIsNoLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	id := ulid.Make().String()
	for _, text := range []string{"hello\n", "hello", "{}", "{\"session\":", "\n", "{}\n", `{"session_id":"s","seq":1}` + "\n", `{"event_id":"` + id + `"}` + "\n", "[1]\n",
		`{"session_id":"s","seq":1,"event_id":"` + id + "\"}\nbad\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sink.OpenLedger(garden.Bg, path); !errors.Is(err, sink.ErrBadLedger) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%q: %v", text, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%q became %q: %v", text, now, err)
		}
	}
	if _, err := sink.OpenLedger(garden.Bg, filepath.Join(path, "below a file")); err == nil {
		t.Error("a ledger where none can be")
	}
}

func TestAFlushOfAMissingSession(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		if _, flushed, err := b.ledger.Flush(garden.Bg, b.Log, "none"); flushed || !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("flushed %v: %v", flushed, err)
		}
		garden.Same(t, "file", 0, len(b.entries()))
	})
}

// With random sessions and flushes, the entries add up to the session's own spend,
// and so do the flushes.
func TestLedgersAddUp(t *testing.T) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				b := &books{path: filepath.Join(t.TempDir(), "l")}
				script := garden.DrawActs.Draw(r, "acts")
				half := rapid.IntRange(0, len(script)).Draw(r, "half")
				l := garden.Live(r, log, script[:half])
				b.Garden = l.Garden
				b.open()
				defer func() { b.Allow(b.ledger.Close()) }()
				for _, name := range l.Names {
					b.flush(name)
				}
				for _, a := range script[half:] {
					l.Act(a)
				}
				sums := map[string]projection.Spend{}
				for _, name := range l.Names {
					b.flush(name)
				}
				for _, e := range b.entries() {
					sums[e.SessionID] = sums[e.SessionID].Add(projection.Spend{Cost: e.Cost, Usage: e.Usage})
				}
				for _, name := range l.Names {
					cost, err := stats.LoadCost(garden.Bg, log, name)
					b.Allow(err)
					garden.Same(r, name, projection.Spend{Cost: cost.Own.Cost, Usage: cost.Own.Usage}, sums[name])
					var flushed event.Cost
					for _, e := range l.Lineage(name) {
						f, ok, err := event.Decode[event.AccountingFlush](&e)
						if e.Redacted() {
							err = json.Unmarshal(e.Kept(), &f)
						}
						_, copied := e.MetadataValue("fork_origin")
						if ok && !copied && e.SessionID == name {
							b.Allow(err)
							flushed += f.Total
						}
					}
					garden.Same(r, "flushes of "+name, cost.Own.Cost, flushed)
				}
			})
		})
	}
}

// A ledger creates its folder, as an op tree folder does. A special file is refused, and
// never waited for.
func TestLedgerPaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "ledger.jsonl")
	ledger, err := sink.OpenLedger(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Close(); err != nil {
		t.Error(err)
	}
	if ledger, err := sink.OpenLedger(t.Context(), filepath.Join(path, "below a file")); err == nil {
		t.Errorf("a file below a file was opened: %v", ledger.Close())
	}
	for _, kind := range special.Kinds() {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		kind.Make(t, path)
		if ledger, err := sink.OpenLedger(t.Context(), path); !errors.Is(err, eventlog.ErrNotRegular) {
			t.Errorf("%s: %v, %v", kind.Name, ledger, err)
		}
	}
}
