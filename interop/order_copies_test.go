package interop_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// timed is a format of files with the word "timed" and pairs of a minute and the id of a
// record.
type timed struct{}

func (timed) Name() string                      { return "timed" }
func (timed) Detect(_ string, head []byte) bool { return strings.HasPrefix(string(head), "timed") }

func (timed) Declare(src interop.Source) (ids interop.IDs) {
	head, _ := src.Head()
	rest := strings.NewReader(strings.TrimPrefix(string(head), "timed"))
	for {
		var minute int
		var id uint64
		if _, err := fmt.Fscan(rest, &minute, &id); err != nil {
			return ids
		}
		at := time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC)
		if ids.From.IsZero() {
			ids.From = at
		}
		ids.Records, ids.To = append(ids.Records, id), at
	}
}

func (timed) Import(context.Context, *eventlog.Log, interop.Source) (r interop.Result, err error) {
	return r, nil
}

// An original is imported before its copies: its first record is older, or it has fewer
// records in common with other files, or it ends earlier. Other files keep their places.
func TestOriginalsBeforeCopies(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no common records":   {map[string]string{"a": "timed 3 1", "b": "timed 2 2", "c": "timed 1 3"}, "a b c"},
		"the oldest record":   {map[string]string{"a": "timed 2 2 9 3", "b": "timed 1 1 2 2"}, "b a"},
		"the fewest records":  {map[string]string{"a": "timed 1 1 2 2 3 3", "b": "timed 1 1 2 2 9 9", "c": "timed 1 1 9 8"}, "c a b"},
		"the end":             {map[string]string{"a": "timed 1 1 2 2", "b": "timed 1 1"}, "b a"},
		"others in between":   {map[string]string{"a": "timed 1 1 2 2", "b": "timed 1 7", "c": "timed 1 1"}, "c a b"},
		"a record twice":      {map[string]string{"a": "timed 5 1 5 1", "b": "timed 1 2"}, "a b"},
		"a chain of copies":   {map[string]string{"a": "timed 3 3 4 4", "b": "timed 2 2 3 3", "c": "timed 1 1 2 2"}, "c b a"},
		"one file, no record": {map[string]string{"a": "timed"}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := interop.Find(t.Context(), []interop.Format{timed{}}, []string{files(t, test.files)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, file := range found.Files() {
				got = append(got, filepath.Base(file.Path))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}
