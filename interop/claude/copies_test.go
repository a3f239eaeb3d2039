package claude_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// transcript is the lines of a conversation. A copy has the same lines with another session
// id.
type transcript []string

var morning = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// exchange is a request and an answer. n numbers it: its answer has n thousand input tokens.
func exchange(n int) transcript {
	parent := "null"
	if n > 1 {
		parent = fmt.Sprintf(`"a%d"`, n-1)
	}
	return exchangeAfter(n, parent)
}

func exchangeAfter(n int, parent string) transcript {
	at := morning.Add(time.Duration(n) * time.Minute)
	return transcript{
		fmt.Sprintf(`{"type":"user","sessionId":"SESSION","cwd":"/srv","uuid":"u%d","parentUuid":%s,"timestamp":%q,"message":{"role":"user","content":"Question %d"}}`,
			n, parent, at.Format(time.RFC3339), n),
		fmt.Sprintf(`{"type":"assistant","sessionId":"SESSION","cwd":"/srv","uuid":"a%d","parentUuid":"u%d","timestamp":%q,"requestId":"r%d","message":{"id":"m%d",`+
			`"role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Answer %d"}],"usage":{"input_tokens":%d000,"output_tokens":%d00}}}`,
			n, n, at.Add(time.Second).Format(time.RFC3339), n, n, n, n, n),
	}
}

// exchanges are the exchanges with the numbers.
func exchanges(numbers ...int) (all transcript) {
	for _, n := range numbers {
		all = append(all, exchange(n)...)
	}
	return all
}

// home is a folder of the program.
type home struct {
	t   importtest.TB
	dir string
	log *eventlog.Log
}

func newHome(t *testing.T) *home {
	return &home{t, t.TempDir(), importtest.NewLog(t)}
}

// write writes the file of a session.
func (h *home) write(session string, lines transcript) {
	h.t.Helper()
	h.writeFile(session+".jsonl", session, lines)
}

func (h *home) writeFile(name, session string, lines transcript) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "SESSION", session)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// load imports the files of sessions, or all files.
func (h *home) load(sessions ...string) interop.Result {
	h.t.Helper()
	paths := []string{h.dir}
	for i, session := range sessions {
		paths = append(paths[:i], filepath.Join(h.dir, session+".jsonl"))
	}
	result := importtest.Files(h.t, h.log, claude.Format{}, paths...)
	importtest.Verify(h.t, h.log)
	return result
}

// spent checks the input tokens and answers of all sessions together, and that another
// import adds nothing.
func (h *home) spent(tokens, answers int64) {
	h.t.Helper()
	var all stats.Stats
	for _, id := range importtest.Sessions(h.t, h.log) {
		s, err := stats.Load(h.t.Context(), h.log, id)
		if err != nil {
			h.t.Fatal(err)
		}
		all.Add(s)
	}
	if got := all.Total; got.Usage.InputTokens != tokens || int64(got.Responses) != answers {
		h.t.Errorf("%d input tokens and %d answers, want %d and %d", got.Usage.InputTokens, got.Responses, tokens, answers)
	}
	if again := h.load(); again.Events != 0 {
		h.t.Errorf("another import adds %d events", again.Events)
	}
}

// parent checks the parent of a session; it is empty for a root.
func (h *home) parent(session, want string) {
	h.t.Helper()
	got := ""
	for a, err := range h.log.Ancestors(h.t.Context(), session) {
		if err != nil {
			h.t.Fatal(err)
		}
		got = a.Session
		break
	}
	if got != want {
		h.t.Errorf("the parent of %s is %q, want %q", session, got, want)
	}
}

// texts checks the texts of the history of a session.
func (h *home) texts(session string, want ...string) {
	h.t.Helper()
	var got []string
	for _, e := range importtest.History(h.t, h.log, session) {
		got = append(got, e.Message.Text())
	}
	importtest.Same(h.t, "history of "+session, strings.Join(want, ", "), strings.Join(got, ", "))
}

// A file that begins with the lines of another session is a fork of it.
func TestCopiedBeginningIsAFork(t *testing.T) {
	h := newHome(t)
	h.write("orig", exchanges(1))
	h.write("copy", exchanges(1, 2))
	h.load()
	h.parent("orig", "")
	h.parent("copy", "orig")
	h.texts("copy", "Question 1", "Answer 1", "Question 2", "Answer 2")
	h.spent(3000, 2)
}

// The original comes first in one import, whatever the names of the files are: it has the
// fewest lines that other files have, and is the oldest of these.
func TestOriginalComesFirst(t *testing.T) {
	h := newHome(t)
	h.write("c", exchanges(1))
	h.write("b", exchanges(1, 2))
	h.write("a", exchanges(1, 2, 3))
	h.load()
	h.parent("c", "")
	h.parent("b", "c")
	h.parent("a", "b")
	h.spent(6000, 3)
}

// A copy that was imported earlier stays, and its original becomes the fork.
func TestCopyBeforeItsOriginal(t *testing.T) {
	h := newHome(t)
	h.write("copy", exchanges(1, 2))
	h.load()
	h.write("orig", exchanges(1))
	h.load()
	h.parent("copy", "")
	h.parent("orig", "copy")
	h.texts("orig", "Question 1", "Answer 1")
	h.spent(3000, 2)

	orig := append(exchanges(1), exchangeAfter(4, `"a1"`)...)
	h.write("orig", orig) // it goes on
	h.load()
	h.texts("orig", "Question 1", "Answer 1", "Question 4", "Answer 4")
	h.spent(7000, 3)
}

// Copies that grow, and copies that are imported while they are written, count once.
func TestCopiesThatGrow(t *testing.T) {
	h := newHome(t)
	h.write("orig", exchanges(1, 2))
	h.load()
	copy := exchanges(1, 2, 3)
	for n := 1; n <= len(copy); n++ {
		h.write("copy", copy[:n])
		h.load()
	}
	h.texts("copy", "Question 1", "Answer 1", "Question 2", "Answer 2", "Question 3", "Answer 3")
	h.spent(6000, 3)
}

// A copy that lacks lines of the beginning keeps its events. They are inherited.
func TestCopiedLinesAreInherited(t *testing.T) {
	for name, copy := range map[string]transcript{
		"the end of the original":         exchanges(2, 3),
		"a beginning of its own":          append(exchangeAfter(9, "null"), exchanges(1, 3)...),
		"a beginning and own lines first": append(exchangeAfter(9, "null"), exchanges(2, 3)...),
	} {
		t.Run(name, func(t *testing.T) {
			own := int64(3000)
			if strings.Contains(copy[0], "Question 9") {
				own += 9000
			}
			h := newHome(t)
			h.write("orig", exchanges(1, 2))
			h.write("copy", copy)
			h.load()
			h.parent("copy", "")
			answers := 3 + own/9000
			h.spent(3000+own, answers)
			late := newHome(t) // the copy comes first
			late.write("copy", copy)
			late.load()
			late.write("orig", exchanges(1, 2))
			late.load()
			late.spent(3000+own, answers)
		})
	}
}

// A side question has the lines of its session in a file of a sub-agent.
func TestSideQuestionIsAFork(t *testing.T) {
	h := newHome(t)
	h.write("orig", exchanges(1, 2))
	side := exchanges(1, 2, 3)
	for i := range side {
		side[i] = strings.Replace(side[i], `"cwd"`, `"isSidechain":true,"agentId":"aside_question-1","cwd"`, 1)
	}
	h.writeFile("orig/subagents/agent-aside_question-1.jsonl", "orig", side)
	h.load()
	h.parent("orig.agent-aside_question-1", "orig")
	h.spent(6000, 3)
}

// A fork after a compaction begins with the compaction: the model sees nothing else.
func TestForkAfterACompaction(t *testing.T) {
	h := newHome(t)
	compacted := transcript{
		`{"type":"system","subtype":"compact_boundary","sessionId":"SESSION","uuid":"c1","parentUuid":null,"logicalParentUuid":"a2","timestamp":"2026-03-01T10:02:30Z","compactMetadata":{"trigger":"manual","preTokens":9}}`,
		`{"type":"user","isCompactSummary":true,"sessionId":"SESSION","uuid":"c2","parentUuid":"c1","timestamp":"2026-03-01T10:02:31Z","message":{"role":"user","content":"Summary"}}`,
	}
	h.write("orig", append(exchanges(1, 2), compacted...))
	h.write("copy", append(compacted[:2:2], exchangeAfter(3, `"c2"`)...))
	h.load()
	h.parent("copy", "orig")
	h.texts("copy", "Summary", "Question 3", "Answer 3")
	h.spent(6000, 3)
}

// What was erased in the original does not come back with a copy.
func TestErasedLinesStayErasedInCopies(t *testing.T) {
	for name, copy := range map[string]transcript{"fork": exchanges(1, 2), "inherited": append(exchangeAfter(9, "null"), exchanges(1, 2)...)} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.write("orig", exchanges(1))
			h.load()
			importtest.Redact(t, h.log, func(e *event.Event) bool { return strings.Contains(string(e.Data), "Answer 1") })
			h.write("copy", copy)
			if got := h.load("copy"); got.Withheld != 1 {
				t.Errorf("withheld %d records, want 1", got.Withheld)
			}
			for _, id := range importtest.Sessions(t, h.log) {
				for _, e := range importtest.Events(t, h.log, id) {
					if strings.Contains(string(e.Data), "Answer 1") {
						t.Errorf("%s has the erased text again: %s", id, e.Data)
					}
				}
			}
		})
	}
}

// The lines that a copy shares with a removed session stay away, and the import says so.
func TestLinesOfARemovedSessionStayAway(t *testing.T) {
	h := newHome(t)
	h.write("orig", exchanges(1))
	h.load()
	if err := erase.Remove(t.Context(), h.log, "orig"); err != nil {
		t.Fatal(err)
	}
	h.write("copy", exchanges(1, 2))
	got := h.load()
	if len(got.LeftOut) != 1 || got.LeftOut[0] != "orig" || got.Skipped != 4 {
		t.Errorf("left out %v, skipped %d records, want orig and 4", got.LeftOut, got.Skipped)
	}
	h.texts("copy", "Question 2", "Answer 2")
	h.spent(2000, 1)

	if _, err := interop.Import(t.Context(), h.log, []interop.Format{claude.Format{}}, []string{h.dir}, interop.Options{Again: true}); err != nil {
		t.Fatal(err)
	}
	h.texts("orig", "Question 1", "Answer 1")
	h.spent(3000, 2)
}

// Events that a program of this log made count one by one, also if a server repeats the id
// of a response.
func TestRepeatedResponseIDsOfOtherProgramsCount(t *testing.T) {
	log := importtest.NewLog(t)
	for _, session := range []string{"a", "b"} {
		e := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Yes.")}, ResponseID: "r1", Usage: event.Usage{InputTokens: 10}})
		if _, err := log.Append(t.Context(), session, eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
	}
	var all stats.Stats
	for _, id := range []string{"a", "b"} {
		s, err := stats.Load(t.Context(), log, id)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(s)
	}
	if got := all.Total; got.Usage.InputTokens != 20 || got.Responses != 2 {
		t.Errorf("%d input tokens in %d answers, want 20 in 2", got.Usage.InputTokens, got.Responses)
	}
}

// A damaged session of the log does not stop the import of another one.
func TestDamagedOwner(t *testing.T) {
	h := newHome(t)
	h.write("orig", exchanges(1, 2))
	h.load()
	h.write("copy", exchanges(1, 2, 3))
	log := eventlog.Open(damaged{h.log.Store()})
	table, err := interop.Import(t.Context(), log, []interop.Format{claude.Format{}}, []string{filepath.Join(h.dir, "copy.jsonl")})
	if err != nil {
		t.Fatalf("%+v, %v", table, err)
	}
	h.texts("copy", "Question 1", "Answer 1", "Question 2", "Answer 2", "Question 3", "Answer 3")
	h.parent("copy", "")
}

// damaged is a store in which the session orig is damaged after two events.
type damaged struct{ eventlog.Store }

func (d damaged) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	all := d.Store.Read(ctx, session, r)
	if session != "orig" {
		return all
	}
	return func(yield func(event.Event, error) bool) {
		n := 0
		for e, err := range all {
			if n++; n == 3 {
				yield(event.Event{}, &eventlog.CorruptError{Session: session, Seq: 3})
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
