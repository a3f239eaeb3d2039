package opencode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/opencode"
	"github.com/convlog/convlog/runlog/stats"
)

// drawnExports are exported sessions with copies of copies, and their exchanges.
type drawnExports struct {
	dir   string
	log   *eventlog.Log
	names []string
	has   map[string][]int // the exchanges of each file
}

// drawExports draws sessions. A fork has the first exchanges of another session, with other ids,
// and exchanges of its own. All exchanges have the same texts.
func drawExports(t *testing.T, r *rapid.T) *drawnExports {
	d := &drawnExports{dir: t.TempDir(), log: importtest.NewLog(r), has: map[string][]int{}}
	morn := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	days := rapid.IntRange(0, 1).Draw(r, "days between sessions")
	next := 1
	at := map[int]time.Time{} // of the exchanges
	for i := range rapid.IntRange(2, 5).Draw(r, "sessions") {
		id := fmt.Sprintf("ses_%d", i)
		began := morn.AddDate(0, 0, days*i).Add(time.Duration(i) * time.Hour)
		if i > 0 && rapid.IntRange(0, 3).Draw(r, "is a fork") > 0 {
			shared := d.has[rapid.SampledFrom(d.names).Draw(r, "original")]
			d.has[id] = slices.Clone(shared[:rapid.IntRange(1, len(shared)).Draw(r, "shared")])
		}
		for range rapid.IntRange(1, 3).Draw(r, "own") {
			d.has[id] = append(d.has[id], next)
			at[next] = began.Add(time.Duration(next) * time.Minute)
			next++
		}
		var messages []string
		for _, n := range d.has[id] {
			messages = append(messages, exchange(id, n, at[n].UnixMilli()))
		}
		text := fmt.Sprintf(`{"info":{"id":%q,"projectID":"global","directory":"/w","title":"T","version":"1.18.0","time":{"created":%d,"updated":%d}},"messages":[%s]}`,
			id, began.UnixMilli(), began.UnixMilli(), strings.Join(messages, ","))
		if err := os.WriteFile(d.path(id), []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
		d.names = append(d.names, id)
	}
	return d
}

func (d *drawnExports) path(id string) string { return filepath.Join(d.dir, id+".json") }

// exchange is a question, a call and an answer with tokens.
func exchange(session string, n int, at int64) string {
	m := strings.NewReplacer("$ID", fmt.Sprintf("%s_%d", session, n), "$SESSION", session, "$CALL", fmt.Sprintf("call_%d", n),
		"$AT", fmt.Sprint(at), "$LATER", fmt.Sprint(at+9), "$TOKENS", fmt.Sprint(1000*n))
	return m.Replace(`{"info":{"id":"msg_u$ID","sessionID":"$SESSION","role":"user","time":{"created":$AT}},"parts":[` +
		`{"id":"prt_u$ID","sessionID":"$SESSION","messageID":"msg_u$ID","type":"text","text":"Go on."}]},` +
		`{"info":{"id":"msg_a$ID","sessionID":"$SESSION","role":"assistant","parentID":"msg_u$ID","modelID":"m","providerID":"p","time":{"created":$LATER,"completed":$LATER},` +
		`"cost":0.001,"tokens":{"input":$TOKENS,"output":9,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"},"parts":[` +
		`{"id":"prt_s$ID","sessionID":"$SESSION","messageID":"msg_a$ID","type":"step-start"},` +
		`{"id":"prt_t$ID","sessionID":"$SESSION","messageID":"msg_a$ID","type":"tool","callID":"$CALL","tool":"bash",` +
		`"state":{"status":"completed","input":{"command":"ls"},"output":"ok","time":{"start":$LATER,"end":$LATER}}},` +
		`{"id":"prt_x$ID","sessionID":"$SESSION","messageID":"msg_a$ID","type":"text","text":"Done.","time":{"start":$LATER,"end":$LATER}},` +
		`{"id":"prt_f$ID","sessionID":"$SESSION","messageID":"msg_a$ID","type":"step-finish","reason":"stop","cost":0.001,"tokens":{"input":$TOKENS,"output":9,"reasoning":0,"cache":{"read":0,"write":0}}}]}`)
}

// Law: each answer counts once, whether its original is imported before the forks, after them or
// never.
func TestAnyCopiesCountOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawExports(t, r)
		order := rapid.Permutation(d.names).Draw(r, "order")
		order = order[:rapid.IntRange(1, len(order)).Draw(r, "imported")]
		has, tokens := map[int]bool{}, int64(0)
		for len(order) > 0 {
			n := rapid.IntRange(1, len(order)).Draw(r, "at once")
			var paths []string
			for _, id := range order[:n] {
				paths = append(paths, d.path(id))
				for _, n := range d.has[id] {
					if !has[n] {
						tokens += 1000 * int64(n)
					}
					has[n] = true
				}
			}
			order = order[n:]
			for i := range 2 {
				if got := importtest.Files(r, d.log, opencode.Format{}, paths...); i > 0 && got.Events > 0 {
					r.Errorf("the second import of %q adds %d events", paths, got.Events)
				}
			}
			var all stats.Stats
			for _, id := range importtest.Sessions(r, d.log) {
				s, err := stats.Load(r.Context(), d.log, id)
				if err != nil {
					r.Fatal(err)
				}
				all.Add(s)
			}
			n, got := len(has), all.Total
			want := fmt.Sprintf("%d tokens, %d answers, %d calls, %d turns, %d messages", tokens, n, n, n, 2*n)
			is := fmt.Sprintf("%d tokens, %d answers, %d calls, %d turns, %d messages", got.Usage.InputTokens, got.Responses, got.Calls, got.Turns, got.Messages)
			importtest.Same(r, "sums", want, is)
		}
		importtest.Verify(r, d.log)
	})
}
