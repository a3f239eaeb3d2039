package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// rollout are the lines of a file.
type rollout struct {
	lines   []string
	at      time.Time
	ordinal int
	total   int
}

func (r *rollout) add(kind, payload string) {
	r.lines = append(r.lines, fmt.Sprintf(`{"timestamp":%q,"ordinal":%d,"type":%q,"payload":{%s}}`, r.at.Format(time.RFC3339), r.ordinal, kind, payload))
	r.ordinal++
}

// header begins the file of a session.
func (r *rollout) header(session, more string) {
	r.add("session_meta", fmt.Sprintf(`"id":%q,"timestamp":%q,"cwd":"/w","cli_version":"0.171.0"%s`, session, r.at.Format(time.RFC3339), more))
}

// exchange is a request, a call, its result and an answer with tokens.
func (r *rollout) exchange(n int) {
	r.add("turn_context", `"cwd":"/w","model":"gpt-5-codex"`)
	r.add("response_item", fmt.Sprintf(`"type":"message","role":"user","content":[{"type":"input_text","text":"Question %d"}]`, n))
	r.add("response_item", fmt.Sprintf(`"type":"function_call","name":"shell","arguments":"{}","call_id":"c%d"`, n))
	r.add("response_item", fmt.Sprintf(`"type":"function_call_output","call_id":"c%d","output":"ok"`, n))
	r.add("response_item", fmt.Sprintf(`"type":"message","role":"assistant","content":[{"type":"output_text","text":"Answer %d"}]`, n))
	r.total += 1000 * n
	r.add("event_msg", fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":9},"last_token_usage":{"input_tokens":%d,"output_tokens":9}}`,
		r.total, 1000*n))
}

const (
	parentSession = "01970000-0000-7000-8000-000000000001"
	forkSession   = "01970000-0000-7000-8000-000000000002"
)

// copies is a folder with a session and its fork.
type copies struct {
	t    *testing.T
	dir  string
	log  *eventlog.Log
	morn time.Time
}

// newCopies writes the files. In the file of the fork are copies of the lines of the session
// with the time of the fork, or, with a base, no copies.
func newCopies(t *testing.T, base bool) *copies {
	c := &copies{t: t, dir: t.TempDir(), log: importtest.NewLog(t), morn: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	parent := rollout{at: c.morn}
	parent.header(parentSession, "")
	for n := 1; n <= 2; n++ {
		parent.at = parent.at.Add(time.Minute)
		parent.exchange(n)
	}
	end := parent.ordinal
	fork := rollout{at: c.morn.Add(30 * time.Minute), total: parent.total}
	if base {
		fork.ordinal = end
		fork.header(forkSession, fmt.Sprintf(`,"forked_from_id":%q,"history_base":{"thread_id":%q,"end_ordinal_exclusive":%d}`, parentSession, parentSession, end))
	} else {
		fork.header(forkSession, fmt.Sprintf(`,"forked_from_id":%q`, parentSession))
		fork.header(parentSession, "")
		fork.total = 0
		for n := 1; n <= 2; n++ {
			fork.exchange(n)
		}
	}
	fork.at = fork.at.Add(time.Minute)
	fork.exchange(3)
	parent.at = fork.at.Add(time.Minute)
	parent.exchange(4) // it goes on after the fork
	for name, r := range map[string]*rollout{parentSession: &parent, forkSession: &fork} {
		c.write(name, strings.Join(r.lines, "\n")+"\n")
	}
	return c
}

func (c *copies) write(session, text string) {
	c.t.Helper()
	if err := os.WriteFile(c.path(session), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *copies) path(session string) string {
	return filepath.Join(c.dir, "rollout-2026-03-01T10-00-00-"+session+".jsonl")
}

// counted checks the sums of both sessions, and that another import adds nothing.
func (c *copies) counted() {
	c.t.Helper()
	var all stats.Stats
	for _, id := range importtest.Sessions(c.t, c.log) {
		s, err := stats.Load(c.t.Context(), c.log, id)
		if err != nil {
			c.t.Fatal(err)
		}
		all.Add(s)
	}
	got := all.Total
	want := "10000 tokens, 8 answers, 4 calls, 4 turns, 12 messages, 2 of codex"
	is := fmt.Sprintf("%d tokens, %d answers, %d calls, %d turns, %d messages, %d of codex",
		got.Usage.InputTokens, got.Responses, got.Calls, got.Turns, got.Messages, all.BySource["codex"].Sessions)
	importtest.Same(c.t, "sums", want, is)
	if again := importtest.Files(c.t, c.log, codex.Format{}, c.dir); again.Events != 0 {
		c.t.Errorf("another import adds %d events", again.Events)
	}
	importtest.Verify(c.t, c.log)
}

// A fork counts its own answers, calls and turns only, and has a title of its own, in
// whatever order the files are imported.
func TestForkCountsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		base  bool
		order []string
	}{
		"with its parent":          {order: []string{""}},
		"after its parent":         {order: []string{parentSession, forkSession}},
		"before its parent":        {order: []string{forkSession, parentSession}},
		"base, with its parent":    {base: true, order: []string{""}},
		"base, after its parent":   {base: true, order: []string{parentSession, forkSession}},
		"base, before its parent":  {base: true, order: []string{forkSession, parentSession}},
		"base, parent grows after": {base: true, order: []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopies(t, test.base)
			for _, session := range test.order {
				path := c.dir
				if session != "" {
					path = c.path(session)
				}
				importtest.Files(t, c.log, codex.Format{}, path)
			}
			c.counted()
			for session, want := range map[string]string{parentSession: "Question 1", forkSession: "Question 3"} {
				if got := sessionInfo(t, c.log, session).Title; got != want {
					t.Errorf("the title of %s is %q, want %q", session, got, want)
				}
			}
		})
	}
}

// The file of a fork with a base has none of the lines that it shares: the log gives them.
func TestForkHasItsBase(t *testing.T) {
	c := newCopies(t, true)
	importtest.Files(t, c.log, codex.Format{}, c.dir)
	var got []string
	for _, m := range importtest.Messages(t, c.log, forkSession) {
		if text := m.Text(); text != "" {
			got = append(got, text)
		}
	}
	importtest.Same(t, "history of the fork", []string{"Question 1", "Answer 1", "Question 2", "Answer 2", "Question 3", "Answer 3"}, got)
}

// A fork with a base that is imported before its parent lacks the base. Each import says so, and
// how to mend it.
func TestForkWithoutItsBase(t *testing.T) {
	c := newCopies(t, true)
	for _, paths := range [][]string{{c.path(forkSession)}, {c.path(parentSession)}, {c.path(forkSession)}, {c.dir}} {
		var reasons string
		for _, r := range importtest.Files(t, c.log, codex.Format{}, paths...).Rejected {
			reasons += r.Reason
		}
		isSaid := strings.Contains(reasons, parentSession) && strings.Contains(reasons, "logtool rm "+forkSession)
		if isSaid != (paths[0] != c.path(parentSession)) {
			t.Errorf("import of %q: rejected %q", paths, reasons)
		}
	}
	if err := erase.Remove(t.Context(), c.log, forkSession); err != nil {
		t.Fatal(err)
	}
	table, err := interop.Import(t.Context(), c.log, []interop.Format{codex.Format{}}, []string{c.dir}, interop.Options{Again: true})
	if err != nil || len(table.Total().Rejected) > 0 {
		t.Fatalf("%v in %+v", err, table)
	}
	if n := len(importtest.Messages(t, c.log, forkSession)); n != 12 {
		t.Errorf("the fork has %d messages", n)
	}
	c.counted()
}

// The lines that a fork copied from a removed session stay away, and the import says so.
func TestCopiesOfARemovedParentStayAway(t *testing.T) {
	c := newCopies(t, false)
	importtest.Files(t, c.log, codex.Format{}, c.path(parentSession))
	if err := erase.Remove(t.Context(), c.log, parentSession); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.path(forkSession), c.dir} {
		got := importtest.Files(t, c.log, codex.Format{}, path)
		if len(got.LeftOut) != 1 || got.LeftOut[0] != parentSession {
			t.Errorf("left out %v", got.LeftOut)
		}
		for _, m := range importtest.Messages(t, c.log, forkSession) {
			if text := m.Text(); text != "" && !strings.HasSuffix(text, "3") {
				t.Errorf("the log has %q", text)
			}
		}
	}
	importtest.Verify(t, c.log)
	table, err := interop.Import(t.Context(), c.log, []interop.Format{codex.Format{}}, []string{c.dir}, interop.Options{Again: true})
	if err != nil {
		t.Fatalf("%v in %+v", err, table)
	}
	c.counted()
}
