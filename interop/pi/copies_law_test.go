package pi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/runlog/stats"
)

// drawnHome are files of pi with copies of copies, and their exchanges.
type drawnHome struct {
	*rapid.T
	dir   string
	log   *eventlog.Log
	names []string
	has   map[string][]int // the exchanges of each file
}

// drawHome draws files. A copy has the first exchanges of another file, perhaps without one of
// them, and exchanges of its own. In older files the records have no ids.
func drawHome(t *testing.T, r *rapid.T, old bool) *drawnHome {
	h := &drawnHome{T: r, dir: t.TempDir(), log: importtest.NewLog(r), has: map[string][]int{}}
	next := 1
	for i := range rapid.IntRange(2, 5).Draw(r, "sessions") {
		id, more := fmt.Sprintf("s%d", i), ""
		var all []int
		if i > 0 && rapid.IntRange(0, 3).Draw(r, "is a copy") > 0 {
			from := rapid.SampledFrom(h.names).Draw(r, "original")
			shared := h.has[from]
			all = slices.Clone(shared[:rapid.IntRange(1, len(shared)).Draw(r, "shared")])
			if cut := rapid.IntRange(0, 3*len(all)).Draw(r, "cut"); cut < len(all) && len(all) > 1 {
				all = slices.Delete(all, cut, cut+1)
			}
			more = fmt.Sprintf(`,"parentSession":"/w/2026-03-01T10-00-00-000Z_%s.jsonl"`, from)
		}
		start := next
		for range rapid.IntRange(1, 3).Draw(r, "own") {
			all = append(all, next)
			next++
		}
		h.names, h.has[id] = append(h.names, id), all
		text, parent := piHeader(id, start-1, more), "null"
		for _, n := range all {
			exchange := piExchange(n, parent)
			if old {
				exchange = strings.NewReplacer(fmt.Sprintf(`"id":"u%d","parentId":%s,`, n, parent), "", fmt.Sprintf(`"id":"a%d","parentId":"u%d",`, n, n), "").Replace(exchange)
			}
			text, parent = text+exchange, fmt.Sprintf(`"a%d"`, n)
		}
		if err := os.WriteFile(h.path(id), []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	return h
}

func (h *drawnHome) path(id string) string {
	return filepath.Join(h.dir, "2026-03-01T10-00-00-000Z_"+id+".jsonl")
}

// load imports some files in some order, in one import or in many. Then the sums must be the
// ones of all their exchanges.
func (h *drawnHome) load(redact func()) {
	h.Helper()
	order := rapid.Permutation(h.names).Draw(h.T, "order")
	order = order[:rapid.IntRange(1, len(order)).Draw(h.T, "imported")]
	counts, tokens := map[int]bool{}, int64(0)
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(h.T, "at once")
		var paths []string
		for _, id := range order[:n] {
			paths = append(paths, h.path(id))
			for _, n := range h.has[id] {
				if !counts[n] {
					tokens += 1000 * int64(n)
				}
				counts[n] = true
			}
		}
		for i := range 2 {
			if got := importtest.Files(h, h.log, pi.Format{}, paths...); i > 0 && got.Events > 0 {
				h.Errorf("the second import of %q adds %d events", paths, got.Events)
			}
		}
		if order = order[n:]; redact != nil {
			redact()
			continue
		}
		var all stats.Stats
		for _, id := range importtest.Sessions(h, h.log) {
			s, err := stats.Load(h.Context(), h.log, id)
			if err != nil {
				h.Fatal(err)
			}
			all.Add(s)
		}
		if got := all.Total; got.Usage.InputTokens != tokens || got.Responses != len(counts) || got.Turns != int64(len(counts)) {
			h.Errorf("%d tokens, %d answers, %d turns; want %d, %d", got.Usage.InputTokens, got.Responses, got.Turns, tokens, len(counts))
		}
	}
	importtest.Verify(h, h.log)
}

// Law: each answer counts once, whether its original is imported before the copies, after them or
// never.
func TestAnyCopiesCountOnce(t *testing.T) {
	for name, old := range map[string]bool{"with ids": false, "without ids": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { drawHome(t, r, old).load(nil) })
		})
	}
}

// Law: what was erased does not come back with any copy.
func TestNothingErasedComesBackWithAnyCopies(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := drawHome(t, r, false)
		text, erased := fmt.Sprintf("Question %d\"", rapid.IntRange(1, 4).Draw(r, "erased")), false
		has := func(e *event.Event) bool { return strings.Contains(string(e.Data), text) }
		h.load(func() {
			if erased && slices.ContainsFunc(importtest.Contents(h, h.log), func(c importtest.Content) bool { return strings.Contains(c.Data, text) }) {
				h.Errorf("%s is in the log again", text)
			}
			erased = importtest.Redact(h, h.log, has) > 0 || erased
		})
	})
}
