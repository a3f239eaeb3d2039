package sqlite

import (
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// Triggers and tables of other programs, which may have copies of a text, are named by
// verify, and no erasure goes on beside them.
func TestForeignObjects(t *testing.T) {
	for name, c := range map[string]struct{ make, drop, want string }{
		"table":         {"CREATE TABLE notes (x); INSERT INTO notes SELECT line FROM events", "DROP TABLE notes", `table "notes"`},
		"virtual table": {"CREATE VIRTUAL TABLE words USING fts5(x)", "DROP TABLE words", `table "words"`},
		"trigger": {"CREATE TRIGGER keep AFTER UPDATE ON events BEGIN UPDATE events SET line = old.line WHERE key = old.key; END",
			"DROP TRIGGER keep", `trigger "keep" on table "events"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := open(t, path)
			log := eventlog.Open(s)
			image, err := log.PutBlob(t.Context(), strings.NewReader(canary))
			must(t, err)
			part := event.Part{Type: event.ImagePart, MediaType: "image/png", Blob: image}
			_, err = log.Append(t.Context(), "a", eventlog.New(), event.New(event.Message{Role: event.User, Parts: []event.Part{part}}))
			must(t, err)
			must(t, s.write(t.Context(), statement(c.make), true))
			var rules []string
			for d, err := range verify.Store(t.Context(), log) {
				must(t, err)
				rules = append(rules, d.Rule+" "+d.Detail)
			}
			if len(rules) == 0 || !strings.HasPrefix(rules[0], "foreign ") || !strings.Contains(strings.Join(rules, "\n"), c.want) {
				t.Errorf("verify: %q", rules)
			}
			if _, err := erase.Redact(t.Context(), log, "a", []int64{1}); !errors.Is(err, eventlog.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("redact: %v", err)
			}
			if err := erase.Remove(t.Context(), log, "a"); !errors.Is(err, eventlog.ErrUnsupported) {
				t.Errorf("remove: %v", err)
			}
			if e, err := log.Event(t.Context(), "a", 1); err != nil || e.Redacted() {
				t.Errorf("the event after the refusal: %v, %v", e.Redacted(), err)
			}
			must(t, s.write(t.Context(), statement(c.drop), true))
			if _, err := erase.Redact(t.Context(), log, "a", []int64{1}); err != nil {
				t.Errorf("redact without it: %v", err)
			}
			if n := countCanary(t, path); n > 0 {
				t.Errorf("the canary is there %d times", n)
			}
		})
	}
}
