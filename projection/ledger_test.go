package projection_test

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
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// books is a ledger under test, and the log that it accounts for.
type books struct {
	*garden
	path   string
	ledger *projection.Ledger
}

// onBooks runs a test over a new ledger and a log of each store.
func onBooks(t *testing.T, test func(t *testing.T, b *books)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			b := &books{garden: &garden{t: t, log: log}, path: filepath.Join(t.TempDir(), "spent.jsonl")}
			b.open()
			defer func() { b.allow(b.ledger.Close()) }()
			test(t, b)
		})
	}
}

func (b *books) open() {
	b.t.Helper()
	l, err := projection.OpenLedger(b.path)
	b.allow(err)
	b.ledger = l
}

// reopen opens the file again, after something was done to it.
func (b *books) reopen(change func(text string) string) {
	b.t.Helper()
	b.allow(b.ledger.Close())
	text, err := os.ReadFile(b.path)
	b.allow(err)
	b.allow(os.WriteFile(b.path, []byte(change(string(text))), 0o600))
	b.open()
}

func (b *books) flush(session string) (event.AccountingFlush, bool) {
	b.t.Helper()
	f, flushed, err := b.ledger.Flush(bg, b.log, session)
	b.allow(err)
	return f, flushed
}

// spend appends answers that cost so much each, in dollars.
func (b *books) spend(session string, dollars ...int) {
	b.t.Helper()
	for _, n := range dollars {
		e := event.New(event.Message{Role: event.Assistant, Model: "m", Usage: event.Usage{OutputTokens: int64(n)},
			Parts: []event.Part{event.Text("yes")}})
		e.Cost = event.Cost(n) * 1_000_000_000
		b.append(session, e)
	}
}

// entries are the lines of the file.
func (b *books) entries() (list []projection.LedgerEntry) {
	b.t.Helper()
	text, err := os.ReadFile(b.path)
	b.allow(err)
	for line := range strings.Lines(string(text)) {
		var e projection.LedgerEntry
		if err := json.Unmarshal([]byte(line), &e, json.RejectUnknownMembers(true)); err != nil || !strings.HasSuffix(line, "\n") {
			b.t.Fatalf("line %q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

// costs are what the lines of the file say, in dollars.
func (b *books) costs() (list []string) {
	b.t.Helper()
	for _, e := range b.entries() {
		list = append(list, fmt.Sprintf("%s %d: %d", e.SessionID, e.Seq, int64(e.Cost)/1_000_000_000))
	}
	return list
}

// flushes are the accounting_flushed events of a session.
func (b *books) flushes(session string) (list []event.AccountingFlush) {
	b.t.Helper()
	for _, e := range b.lineage(session) {
		if f, ok, err := event.Decode[event.AccountingFlush](&e); ok {
			b.allow(err)
			list = append(list, f)
		}
	}
	return list
}

func TestALedgerSaysWhatAnEventSays(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.append("s", event.New(event.Session{Agent: "ada"}))
		turn := event.New(event.TurnStart{})
		b.append("s", turn)
		b.spend("s", 2)
		f, flushed := b.flush("s")
		lineage := b.lineage("s")
		answer := lineage[2]
		want := projection.LedgerEntry{SessionID: "s", Seq: 3, EventID: answer.ID, Time: answer.Timestamp, TurnID: turn.ID, Model: "m", Agent: "ada",
			Cost: 2_000_000_000, Usage: event.Usage{OutputTokens: 2}}
		same(t, "entries", []projection.LedgerEntry{want}, b.entries())
		if !flushed || f.Ledger != "spent.jsonl" || f.Through != 3 || f.Total != 2_000_000_000 {
			t.Errorf("flushed %v: %+v", flushed, f)
		}
		var said projection.LedgerEntry
		b.allow(json.Unmarshal(f.Entries[0], &said))
		same(t, "the event's entry", want, said)
		same(t, "the event", []event.AccountingFlush{f}, b.flushes("s"))
		if info, err := os.Stat(b.path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v: %v", info.Mode(), err)
		}
	})
}

func TestASecondFlushAddsNothing(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1, 2)
		b.flush("s")
		head := b.head("s")
		for range 2 {
			if f, flushed := b.flush("s"); flushed || f.Ledger != "" {
				t.Errorf("flushed %+v", f)
			}
			b.reopen(strings.Clone)
		}
		same(t, "head", head, b.head("s"))
		same(t, "file", []string{"s 1: 1", "s 2: 2"}, b.costs())
		b.spend("s", 3)
		if f, flushed := b.flush("s"); !flushed || f.Total != 3_000_000_000 || f.Through != 4 {
			t.Errorf("flushed %v: %+v", flushed, f)
		}
		same(t, "file", []string{"s 1: 1", "s 2: 2", "s 4: 3"}, b.costs())
	})
}

// Each event has one line, and its flush one event, wherever a flush before was
// interrupted: before the file's last line was whole, or after.
func TestAnInterruptedFlushIsMadeUpFor(t *testing.T) {
	for name, crash := range map[string]func(text string) string{
		"nothing written":     func(string) string { return "s 1" },
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
				refuse := &refusing{Store: b.log.Store()}
				log := eventlog.Open(refuse)
				if _, flushed, err := b.ledger.Flush(bg, log, "s"); flushed || !errors.Is(err, errRefused) {
					t.Fatalf("flushed %v: %v", flushed, err)
				}
				same(t, "what stands before the event", []string{"s 1: 1", "s 2: 2", "s 3: 3"}, b.costs())
				b.reopen(crash)
				f, flushed := b.flush("s")
				if !flushed || f.Total != 6_000_000_000 || len(f.Entries) != 3 {
					t.Errorf("flushed %v: %+v", flushed, f)
				}
				same(t, "file", []string{"s 1: 1", "s 2: 2", "s 3: 3"}, b.costs())
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

// A session that was removed and begun anew has seqs that the file has already.
func TestALedgerTellsSessionsOfOneNameApart(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1, 2)
		b.flush("s")
		b.allow(erase.Remove(bg, b.log, "s"))
		b.spend("s", 4)
		b.flush("s")
		same(t, "file", []string{"s 1: 1", "s 2: 2", "s 1: 4"}, b.costs())
	})
}

// Two ledgers account for the same session each by itself.
func TestEachLedgerHasItsOwnFlushes(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		b.flush("s")
		other := &books{garden: b.garden, path: filepath.Join(t.TempDir(), "other")}
		other.open()
		defer func() { b.allow(other.ledger.Close()) }()
		b.spend("s", 2)
		if f, _ := other.flush("s"); f.Total != 3_000_000_000 || f.Ledger != "other" {
			t.Errorf("the other ledger: %+v", f)
		}
		if f, _ := b.flush("s"); f.Total != 2_000_000_000 {
			t.Errorf("the first one: %+v", f)
		}
	})
}

// A fork and a copy account for what they spent, not for what they inherited.
func TestALedgerLeavesOutWhatIsInherited(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		b.spend("s", 1)
		b.flush("s")
		b.spend("s", 2)
		_, err := fork.At(bg, b.log, "s", fork.Head(), fork.Options{ID: "fork"})
		b.allow(err)
		_, err = fork.Copy(bg, b.log, "s", fork.CopyOptions{ID: "copy"})
		b.allow(err)
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

func TestWhatIsNoLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	id := ulid.Make().String()
	for _, text := range []string{"hello\n", "\n", "{}\n", `{"session_id":"s","seq":1}` + "\n", `{"event_id":"` + id + `"}` + "\n", "[1]\n",
		`{"session_id":"s","seq":1,"event_id":"` + id + "\"}\nbad\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := projection.OpenLedger(path); !errors.Is(err, projection.ErrBadLedger) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%q: %v", text, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%q became %q: %v", text, now, err)
		}
	}
	if _, err := projection.OpenLedger(filepath.Join(path, "below a file")); err == nil {
		t.Error("a ledger where none can be")
	}
}

func TestAFlushOfAMissingSession(t *testing.T) {
	onBooks(t, func(t *testing.T, b *books) {
		if _, flushed, err := b.ledger.Flush(bg, b.log, "none"); flushed || !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("flushed %v: %v", flushed, err)
		}
		same(t, "file", 0, len(b.entries()))
	})
}

// Whatever happens in a session, and whenever it is flushed: the entries add up
// to what it spent by itself, and the flushes to the same.
func TestLedgersAddUp(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				b := &books{path: filepath.Join(t.TempDir(), "l")}
				script := drawActs.Draw(r, "acts")
				half := rapid.IntRange(0, len(script)).Draw(r, "half")
				l := live(r, log, script[:half])
				b.garden = l.garden
				b.open()
				defer func() { b.allow(b.ledger.Close()) }()
				for _, name := range l.names {
					b.flush(name)
				}
				for _, a := range script[half:] {
					l.act(a)
				}
				sums := map[string]projection.Spend{}
				for _, name := range l.names {
					b.flush(name)
				}
				for _, e := range b.entries() {
					sums[e.SessionID] = sums[e.SessionID].Add(projection.Spend{Cost: e.Cost, Usage: e.Usage})
				}
				for _, name := range l.names {
					cost, err := projection.LoadCost(bg, log, name)
					b.allow(err)
					same(r, name, projection.Spend{Cost: cost.Own.Cost, Usage: cost.Own.Usage}, sums[name])
					var flushed event.Cost
					for _, e := range l.lineage(name) {
						f, ok, err := event.Decode[event.AccountingFlush](&e)
						if e.Redacted() {
							err = json.Unmarshal(e.Kept(), &f)
						}
						_, copied := e.MetadataValue("fork_origin")
						if ok && !copied && e.SessionID == name {
							b.allow(err)
							flushed += f.Total
						}
					}
					same(r, "flushes of "+name, cost.Own.Cost, flushed)
				}
			})
		})
	}
}
