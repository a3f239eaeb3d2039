package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
)

// drawnForks are files of sessions, of forks of them and of forks of forks.
type drawnForks struct {
	*rapid.T
	dir   string
	log   *eventlog.Log
	names []string
	has   map[string][]int // the exchanges of each file
}

// drawForks draws a session, and forks and sub-agents that begin with copies of the first
// exchanges of another file. The records of commands are not copied.
func drawForks(t *testing.T, r *rapid.T) *drawnForks {
	f := &drawnForks{T: r, dir: t.TempDir(), log: importtest.NewLog(r), has: map[string][]int{}}
	above := map[string][]string{} // the parent of each file, and its ancestors
	next := 1
	for i := range rapid.IntRange(2, 4).Draw(r, "sessions") {
		id := fmt.Sprintf("01970000-0000-7000-8000-00000000000%d", i+1)
		file := rollout{at: time.Date(2026, 3, 1, 10+i, 0, 0, 0, time.UTC)}
		if i > 0 {
			parent := rapid.SampledFrom(f.names).Draw(r, "parent")
			above[id] = append([]string{parent}, above[parent]...)
			more := fmt.Sprintf(`,"forked_from_id":%q`, parent)
			if rapid.Bool().Draw(r, "is a sub-agent") {
				more += fmt.Sprintf(`,"source":{"subagent":{"thread_spawn":{"parent_thread_id":%q}}}`, parent)
			}
			file.header(id, more)
			for _, a := range above[id] {
				file.header(a, "")
			}
			f.has[id] = slices.Clone(f.has[parent][:rapid.IntRange(1, len(f.has[parent])).Draw(r, "shared")])
			for _, n := range f.has[id] {
				file.exchange(n)
			}
		} else {
			file.header(id, "")
		}
		file.at = file.at.Add(time.Minute)
		for range rapid.IntRange(1, 3).Draw(r, "own") {
			f.has[id] = append(f.has[id], next)
			file.add("event_msg", fmt.Sprintf(`"type":"exec_command_end","call_id":"c%d","exit_code":0`, next))
			file.exchange(next)
			next++
		}
		if err := os.WriteFile(f.path(id), []byte(strings.Join(file.lines, "\n")+"\n"), 0o600); err != nil {
			r.Fatal(err)
		}
		f.names = append(f.names, id)
	}
	return f
}

func (f *drawnForks) path(id string) string {
	return filepath.Join(f.dir, "rollout-2026-03-01T10-00-00-"+id+".jsonl")
}

// load imports some files in some order, in one import or in many, and calls then with the
// exchanges that the log must have.
func (f *drawnForks) load(then func(has map[int]bool)) {
	f.Helper()
	order := rapid.Permutation(f.names).Draw(f.T, "order")
	order = order[:rapid.IntRange(1, len(order)).Draw(f.T, "imported")]
	has := map[int]bool{}
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(f.T, "at once")
		var paths []string
		for _, id := range order[:n] {
			paths = append(paths, f.path(id))
			for _, n := range f.has[id] {
				has[n] = true
			}
		}
		order = order[n:]
		for i := range 2 {
			if got := importtest.Files(f, f.log, codex.Format{}, paths...); i > 0 && got.Events > 0 {
				f.Errorf("the second import of %q adds %d events", paths, got.Events)
			}
		}
		then(has)
	}
	importtest.Verify(f, f.log)
}

// counted are the sums of all sessions.
func (f *drawnForks) counted() *stats.Stats {
	f.Helper()
	var all stats.Stats
	for _, id := range importtest.Sessions(f, f.log) {
		s, err := stats.Load(f.Context(), f.log, id)
		if err != nil {
			f.Fatal(err)
		}
		all.Add(s)
	}
	return &all
}

// tokensOf are the tokens of exchanges.
func tokensOf(has map[int]bool) (sum int64) {
	for n := range has {
		sum += 1000 * int64(n)
	}
	return sum
}

// Law: each answer, call and turn of a session and its forks counts once, whether the session is
// imported before the forks, after them or never.
func TestAnyForksCountOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForks(t, r)
		f.load(func(has map[int]bool) {
			n, got := len(has), f.counted().Total
			want := fmt.Sprintf("%d tokens, %d answers, %d calls, %d turns, %d messages", tokensOf(has), 2*n, n, n, 3*n)
			is := fmt.Sprintf("%d tokens, %d answers, %d calls, %d turns, %d messages", got.Usage.InputTokens, got.Responses, got.Calls, got.Turns, got.Messages)
			importtest.Same(r, "sums", want, is)
		})
	})
}

// Law: what was erased does not come back with a fork, or with its parent. The tokens count once.
func TestNothingErasedComesBackWithAnyForks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForks(t, r)
		text, erased := fmt.Sprintf("Question %d\"", rapid.IntRange(1, 4).Draw(r, "erased")), false
		has := func(e *event.Event) bool { return strings.Contains(string(e.Data), text) }
		f.load(func(exchanges map[int]bool) {
			if erased && slices.ContainsFunc(importtest.Contents(r, f.log), func(c importtest.Content) bool { return strings.Contains(c.Data, text) }) {
				r.Errorf("%s is in the log again", text)
			}
			if got, want := f.counted().Total.Usage.InputTokens, tokensOf(exchanges); got != want {
				r.Errorf("%d tokens, want %d", got, want)
			}
			erased = importtest.Redact(r, f.log, has) > 0 || erased
		})
	})
}
