package projection_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

func covers(from, to int64) event.Stretch { return event.Stretch{From: from, To: to} }

func ref(seq int64) event.CompactionEntry { return event.CompactionEntry{Seq: seq} }

func literal(m event.Message) event.CompactionEntry {
	return event.CompactionEntry{Message: &m}
}

// exchange is four messages: a question, a call, its result, an answer.
func (s *story) exchange(id string) {
	s.Helper()
	s.add(asks("ask "+id), says(calls(id)), gives(id, "found "+id), says(event.Text("answer "+id)))
}

func TestCompactions(t *testing.T) {
	rest := []string{"5 user ask b", "6 assistant call:b", "7 tool result:b=found b", "8 assistant answer b"}
	for _, tt := range []struct {
		name string
		c    event.Compaction
		want []string
	}{
		{"a summary in the place of what it covers", event.Compaction{Covers: covers(1, 4), Summary: "a was asked"},
			append([]string{"0 user a was asked"}, rest...)},
		{"a summary of the middle", event.Compaction{Covers: covers(2, 3), Summary: "a was looked up"},
			append([]string{"1 user ask a", "0 user a was looked up", "4 assistant answer a"}, rest...)},
		{"entries, and not the summary", event.Compaction{Covers: covers(1, 8), Summary: "not shown",
			Entries: []event.CompactionEntry{literal(asks("go on")), ref(8), ref(6), ref(7)}},
			[]string{"0 user go on", "8 assistant answer b", "6 assistant call:b", "7 tool result:b=found b"}},
		{"an entry moves what is not covered", event.Compaction{Covers: covers(1, 3), Entries: []event.CompactionEntry{ref(8)}},
			[]string{"8 assistant answer b", "4 assistant answer a", "5 user ask b", "6 assistant call:b", "7 tool result:b=found b"}},
		{"cleared results, without a summary", event.Compaction{Cleared: []string{"a"}},
			append([]string{"1 user ask a", "2 assistant call:a", "3 tool result:a=[cleared] <cleared>", "4 assistant answer a"}, rest...)},
		{"cleared results, with a summary of them", event.Compaction{Cleared: []string{"a"}, Summary: "about the clearing"},
			append([]string{"1 user ask a", "2 assistant call:a", "3 tool result:a=[cleared] <cleared>", "4 assistant answer a"}, rest...)},
		{"the whole history replaced", event.Compaction{Replace: true, Entries: []event.CompactionEntry{literal(asks("anew")), ref(8)}},
			[]string{"0 user anew", "8 assistant answer b"}},
		{"the whole history replaced by nothing", event.Compaction{Replace: true}, nil},
		{"a summary alone", event.Compaction{Summary: "by the way"},
			append(append([]string{"1 user ask a", "2 assistant call:a", "3 tool result:a=found a", "4 assistant answer a"}, rest...), "0 user by the way")},
		{"files", event.Compaction{Covers: covers(1, 8), Summary: "all", ReadFiles: []string{"r1", "m2", "r2", "r3", "r2"},
			ModifiedFiles: []string{"m1", "m2", "m3", "m1"}},
			[]string{"0 user {working_set} Files in use before the conversation was compacted:\n- m2 (modified)\n- m3 (modified)\n- m1 (modified)\n- r3 (read)\n- r2 (read) <working_set>",
				"0 user all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
				s := newStory(t, log, "s")
				s.exchange("a")
				s.exchange("b")
				if len(tt.want) == 0 {
					s.add(tt.c) // an import may have it; Compact refuses it
				} else if _, err := projection.Compact(context.Background(), log, "s", tt.c); err != nil {
					t.Fatal(err)
				}
				s.sees(tt.want...)
			})
		})
	}
}

func TestCompactionsOfCompactions(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.add(prefix("rules"))                                                                       // 1
		s.exchange("a")                                                                              // 2 to 5
		s.add(event.Compaction{Covers: covers(2, 5), Summary: "first", ReadFiles: []string{"a.go"}}) // 6
		s.exchange("b")                                                                              // 7 to 10
		s.add(event.Compaction{Cleared: []string{"b"}})                                              // 11
		first := "0 user {working_set} Files in use before the conversation was compacted:\n- a.go (read) <working_set>"
		s.sees("1 user {rules} rules", first, "0 user first", "7 user ask b", "8 assistant call:b",
			"9 tool result:b=[cleared] <cleared>", "10 assistant answer b")
		s.add(event.Compaction{Covers: covers(7, 9), Summary: "second"}) // 12: leaves the first alone, which has no files any more
		s.sees("1 user {rules} rules", "0 user first", "0 user second", "10 assistant answer b")
		s.add(event.Compaction{Covers: covers(2, 12), Summary: "third", ModifiedFiles: []string{"c.go"}}) // 13
		s.sees("1 user {rules} rules", strings.ReplaceAll(first, "a.go (read)", "c.go (modified)"), "0 user third")
		s.add(event.Compaction{Covers: covers(1, 13)}) // 14
		s.sees()
	})
}

// Another implementation lost a call and its result to a snapshot between them, and
// repeated the working set at each snapshot.
func TestSnapshotsBetweenCallsAndOverCompactions(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		s := newStory(t, log, "s")
		snapshot := func() {
			t.Helper()
			live, err := projection.Resume(ctx, log, "s", projection.Of("", projection.History()))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true}); err != nil {
				t.Fatal(err)
			}
		}
		s.exchange("a")
		s.add(event.Compaction{Covers: covers(1, 4), Summary: "sum", ReadFiles: []string{"a.go"}}) // 5
		snapshot()                                                                                 // 6
		s.add(says(calls("b")))                                                                    // 7
		snapshot()                                                                                 // 8
		s.add(gives("b", "B"))                                                                     // 9
		snapshot()                                                                                 // 10
		s.sees("0 user {working_set} Files in use before the conversation was compacted:\n- a.go (read) <working_set>",
			"0 user sum", "7 assistant call:b", "9 tool result:b=B")
	})
}

// reasonOf returns the reason to refuse a compaction; empty for another error.
func reasonOf(err error) string {
	var refused *projection.CompactionError
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.Reason
}

func TestRefusedCompactions(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    event.Compaction
		want string
		seq  int64
		call string
	}{
		{"a call without its result", event.Compaction{Covers: covers(1, 2), Summary: "s"}, "split", 3, "a"},
		{"a result without its call", event.Compaction{Covers: covers(3, 4), Summary: "s"}, "split", 2, "a"},
		{"a pending call", event.Compaction{Covers: covers(1, 5), Summary: "s"}, "split", 5, "p"},
		{"everything, with a pending call", event.Compaction{Replace: true, Summary: "s"}, "split", 5, "p"},
		{"an entry that calls and gets no result", event.Compaction{Covers: covers(1, 4), Entries: []event.CompactionEntry{literal(says(calls("x")))}},
			"split", 7, "x"},
		{"an entry that answers nothing", event.Compaction{Covers: covers(1, 4), Entries: []event.CompactionEntry{literal(gives("x", "X"))}},
			"split", 7, "x"},
		{"a result moved before its call", event.Compaction{Covers: covers(1, 1), Entries: []event.CompactionEntry{ref(3)}}, "split", 2, "a"},
		{"what is no message", event.Compaction{Entries: []event.CompactionEntry{ref(6)}}, "absent", 6, ""},
		{"what is not there", event.Compaction{Entries: []event.CompactionEntry{ref(60)}}, "absent", 60, ""},
		{"past the head", event.Compaction{Covers: covers(1, 70), Summary: "s"}, "absent", 70, ""},
		{"a result that is not there", event.Compaction{Cleared: []string{"p"}}, "absent", 0, "p"},
		{"nothing", event.Compaction{Strategy: "none"}, "empty", 0, ""},
		{"nothing in the place of events", event.Compaction{Covers: covers(1, 4)}, "empty", 0, ""},
		{"nothing in the place of all", event.Compaction{Replace: true}, "empty", 0, ""},
		{"a cleared result, and nothing in the place of events", event.Compaction{Cleared: []string{"a"}, Covers: covers(1, 4)}, "empty", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
				ctx := context.Background()
				s := newStory(t, log, "s")
				s.exchange("a")
				s.add(says(calls("p")), stepped)
				_, err := projection.Compact(ctx, log, "s", tt.c)
				var refused *projection.CompactionError
				if !errors.As(err, &refused) || refused.Reason != tt.want || refused.Seq != tt.seq || refused.CallID != tt.call || refused.Session != "s" {
					t.Fatalf("refused with %v; want %s, event %d, call %q", err, tt.want, tt.seq, tt.call)
				}
				if err := projection.CheckCompaction(ctx, log, "s", tt.c); reasonOf(err) != tt.want {
					t.Fatalf("checked with %v", err)
				}
				if head, err := log.Head(ctx, "s"); err != nil || head.Seq != 6 {
					t.Fatalf("head %v, %v after a refusal", head, err)
				}
			})
		})
	}
}

// KeepTurns covers all but the last turns, and leaves contexts where they are.
func TestKeepTurns(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		keep := func(n int, summary string) error {
			t.Helper()
			c, err := s.history().KeepTurns(n, summary)
			if err == nil {
				_, err = projection.Compact(t.Context(), log, "s", c)
			}
			return err
		}
		refused := func(n int, summary string) {
			t.Helper()
			if err := keep(n, summary); reasonOf(err) != "empty" {
				t.Errorf("keep %d turns with summary %q: %v", n, summary, err)
			}
		}
		s.add(event.ContextEntry{Kind: "rules", Placement: event.AsPrefix, Parts: []event.Part{event.Text("rules")}}) // 1
		refused(0, "nothing was said")
		s.add(event.Message{Role: event.System, Parts: []event.Part{event.Text("be brief")}}) // 2
		s.exchange("a")                                                                       // 3–6
		s.exchange("b")                                                                       // 7–10
		s.exchange("c")                                                                       // 11–14
		refused(3, "all three turns are kept")
		refused(4, "there are no four turns")
		refused(1, "")
		garden.Same(t, "two turns are kept", nil, keep(2, "about a")) // 15
		rest := []string{"7 user ask b", "8 assistant call:b", "9 tool result:b=found b", "10 assistant answer b",
			"11 user ask c", "12 assistant call:c", "13 tool result:c=found c", "14 assistant answer c"}
		s.sees(append([]string{"1 user {rules} rules", "2 system be brief", "0 user about a"}, rest...)...)
		refused(2, "nothing but the summary is before them")
		garden.Same(t, "one turn is kept", nil, keep(1, "about a and b")) // 16
		s.sees(append([]string{"1 user {rules} rules", "2 system be brief", "0 user about a and b"}, rest[4:]...)...)
		s.add(asks("d"), says(calls("d")))
		if err := keep(0, "a call is pending"); reasonOf(err) != "split" {
			t.Errorf("kept a call without its result: %v", err)
		}
		s.add(gives("d", "D"))
		garden.Same(t, "no turn is kept", nil, keep(0, "about all"))
		s.sees("1 user {rules} rules", "2 system be brief", "0 user about all")
	})
}

func TestACompactionFollowsTheRulesOfItsPayload(t *testing.T) {
	log := plainLog(t)
	newStory(t, log, "s").exchange("a")
	c := event.Compaction{Covers: covers(3, 2), Summary: "s"}
	if _, err := projection.Compact(context.Background(), log, "s", c); !errors.Is(err, event.ErrInvalidPayload) {
		t.Fatalf("got %v", err)
	}
	if err := projection.CheckCompaction(context.Background(), log, "none", event.Compaction{Summary: "s"}); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

func TestAnImportedCompactionWithSplitPairsRenders(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.exchange("a")
		s.exchange("b")
		s.add(event.Compaction{Covers: covers(3, 6), Summary: "cut"})
		s.sees("1 user ask a", "2 assistant call:a", "0 tool result:a=[interrupted: the call gave no result] <interrupted>",
			"0 user cut", "8 assistant answer b")
	})
}

func TestForksAndRewindsAroundACompaction(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		s := newStory(t, log, "s")
		s.exchange("a")                                                      // 1 to 4
		s.add(event.Compaction{Covers: covers(1, 4), Summary: "a in short"}) // 5
		s.exchange("b")                                                      // 6 to 9
		whole := []string{"1 user ask a", "2 assistant call:a", "3 tool result:a=found a", "4 assistant answer a"}
		short := []string{"0 user a in short", "6 user ask b", "7 assistant call:b", "8 tool result:b=found b", "9 assistant answer b"}
		for at, want := range map[int64][]string{4: whole, 5: short[:1], 9: short} {
			child, err := fork.At(ctx, log, "s", fork.AtSeq(at), fork.Options{Force: true})
			if err != nil {
				t.Fatal(err)
			}
			f := newStory(t, log, child.ID)
			f.sees(want...)
			f.add(event.Compaction{Covers: covers(1, at), Summary: "the fork's own"})
			f.sees("0 user the fork's own")
		}
		s.sees(short...)
		copied, err := fork.Copy(ctx, log, "s")
		if err != nil {
			t.Fatal(err)
		}
		newStory(t, log, copied.ID).sees(short...)
		s.add(event.HeadMove{To: 4})
		s.sees(whole...)
		s.add(event.HeadMove{To: 9}) // recovered
		s.sees(short...)
	})
}

func TestSizeOfAHistory(t *testing.T) {
	s := newStory(t, plainLog(t), "s")
	exceeds := func(want bool, limit projection.HistorySize) {
		t.Helper()
		if size, err := s.history().Size(); err != nil || size.Exceeds(limit) != want {
			t.Fatalf("%+v exceeds %+v: %v, %v", size, limit, !want, err)
		}
	}
	answer := says(event.Text("yes"))
	answer.Usage = event.Usage{InputTokens: 50, CacheReadTokens: 30, CacheWriteTokens: 15, OutputTokens: 6}
	s.add(asks("hello"), answer, asks("and then?"))
	exceeds(true, projection.HistorySize{Tokens: 100})
	exceeds(false, projection.HistorySize{Tokens: 101})
	s.add(event.StepCompletion{Step: 1, Usage: event.Usage{InputTokens: 150, OutputTokens: 50}})
	exceeds(true, projection.HistorySize{Tokens: 199})
	exceeds(false, projection.HistorySize{Tokens: 200})
	exceeds(true, projection.HistorySize{Messages: 2})
	exceeds(false, projection.HistorySize{Messages: 3})
	exceeds(true, projection.HistorySize{Tokens: 200, Messages: 2})
	size, err := s.history().Size()
	if err != nil {
		t.Fatal(err)
	}
	exceeds(true, projection.HistorySize{Bytes: size.Bytes - 1})
	exceeds(false, projection.HistorySize{Bytes: size.Bytes})
	s.add(event.Compaction{Covers: covers(1, 1), Summary: "hi"}) // the answer stays, its tokens do not count again
	exceeds(false, projection.HistorySize{Tokens: 1})
	exceeds(false, projection.HistorySize{})
}

// The digest of a Live equals the digest of a load.
func TestALiveAndALoadHaveOneDigest(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		s := newStory(t, log, "s")
		s.add(asks("one"))
		set := projection.Of("", projection.History())
		live, err := projection.Resume(ctx, log, "s", set)
		if err != nil {
			t.Fatal(err)
		}
		digests := []event.Digest{}
		for _, p := range []event.Payload{asks("one"), stepped, says(calls("a")), prefix("p"), event.ToolCompletion{CallID: "a", Name: "tool"},
			gives("a", "A"), event.Compaction{Covers: covers(1, 1), Summary: "s"}, asks("two"), event.Compaction{Cleared: []string{"a"}}} {
			s.add(p)
			if err := live.Follow(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := live.Digest()
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := projection.LoadSet(ctx, log, "s", set)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fresh.Digest()
			if err != nil || got != want {
				t.Fatalf("after %T: %s, fresh %s, %v", p, got, want, err)
			}
			_, isStep := p.(event.StepStart)
			if slices.Contains(digests, got) != isStep {
				t.Fatalf("after %T: the digest is one of before: %v", p, !isStep)
			}
			digests = append(digests, got)
		}
	})
}

// Histories with the same content have the same digest, with any ids, seqs and times.
func TestDigestsAreOfContent(t *testing.T) {
	log := plainLog(t)
	a, b := newStory(t, log, "a"), newStory(t, log, "b")
	b.add(event.Session{Title: "elsewhere"})
	for _, s := range []*story{a, b} {
		s.exchange("x")
		s.add(event.Compaction{Covers: covers(s.seq-3, s.seq-2), Entries: []event.CompactionEntry{literal(asks("l")), ref(s.seq - 3), ref(s.seq - 2)}})
	}
	digests := map[string]bool{}
	for _, s := range []*story{a, b} {
		d, err := projection.History().Digest(s.history())
		if err != nil {
			t.Fatal(err)
		}
		digests[string(d)] = true
	}
	if len(digests) != 1 {
		t.Fatalf("digests %v", digests)
	}
	if diff := cmp.Diff(messageJSON(t, a.render()), messageJSON(t, b.render())); diff != "" {
		t.Fatal(diff)
	}
}
