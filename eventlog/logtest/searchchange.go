package logtest

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
)

func testSearchRedacted(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), userText(secret+" early"), userText("harmless "+secret[:8]), userText(secret+" late"))
	t.index(l)
	t.Append(l, "a", eventlog.Any(), userText(secret+" new"))
	for _, seq := range []int64{1, 4} {
		_, err := erase.Redact(t.Ctx, l, "a", []int64{seq}, erase.RedactOptions{Reason: "asked for"})
		t.Must(err)
		t.WantEqual("hits", map[int64]int{1: 2, 4: 1}[seq], len(t.hits(l, search.Query{Text: secret})))
	}
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("hits", []string{"a:3"}, t.hits(l, search.Query{Text: secret}))
		t.WantEqual("hits of a part", []string{"a:3", "a:2"}, t.hits(l, search.Query{Text: secret[:8]}))
		t.WantEqual("hits of the reason", []string{"a:6", "a:5"}, t.hits(l, search.Query{Text: "asked for"}))
	})
}

func testSearchRemoved(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), userText("needle a"))
	t.Append(l, "b", eventlog.New(), userText("needle b"))
	t.index(l)
	t.Append(l, "a", eventlog.Any(), userText("needle again"))
	t.Must(erase.Remove(t.Ctx, l, "a"))
	t.WantEqual("hits", []string{"b:1"}, t.hits(l, search.Query{Text: "needle"}))
	t.Append(l, "a", eventlog.New(), userText("another needle"))
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("hits of both", []string{"a:1", "b:1"}, t.hits(l, search.Query{Text: "needle"}))
		t.WantEqual("hits of the removed events", []string{}, t.hits(l, search.Query{Text: "again"}))
	})
}

func testSearchReadOnly(t *env) {
	for i := range 5 {
		t.Append(t.Main(), "a", eventlog.Any(), userText(fmt.Sprintf("needle %d", i)))
	}
	t.Close()
	before, contents := t.Files(), t.Contents()
	l := t.ReadOnly()
	t.WantEqual("hits", 5, len(t.hits(l, search.Query{Text: "needle"})))
	t.WantEqual("hits of one letter", 5, len(t.hits(l, search.Query{Text: "n"})))
	if err := search.Index(t.Ctx, l, false); !errors.Is(err, eventlog.ErrReadOnly) && !errors.Is(err, eventlog.ErrUnsupported) {
		t.Errorf("index: %v", err)
	}
	t.Close()
	t.WantEqual("files", before, t.Files())
	t.WantEqual("their contents", contents, t.Contents())
}

func testSearchHandles(t *env) {
	l, other := t.Main(), t.Second()
	for i := range 10 {
		text := fmt.Sprintf("needle-%d.", i)
		t.Append(other, fmt.Sprintf("s%d", i%3), eventlog.Any(), userText(text))
		if i%4 == 0 {
			t.index(l)
		}
		if i%5 == 0 {
			t.index(other)
		}
		t.WantEqual("hits", 1, len(t.hits(l, search.Query{Text: text})))
		t.WantEqual("hits of all", i+1, len(t.hits(l, search.Query{Text: "needle"})))
	}
}

func testSearchContended(t *env) {
	l := t.Main()
	n := testsize.Fewer(30)
	errs := suite.Concurrently(3, func(i int) error {
		for k := range n {
			word := fmt.Sprintf("needle-%d-%d.", i, k)
			if _, err := l.Append(t.Ctx, fmt.Sprintf("s%d", i), eventlog.Any(), userText(word)); err != nil {
				return err
			}
			hits, err := suite.Collect(search.Events(t.Ctx, l, search.Query{Text: word}))
			if err != nil || len(hits) != 1 {
				return fmt.Errorf("%d hits of %s: %w", len(hits), word, err)
			}
			if i == 0 && k%5 == 0 {
				if err := search.Index(t.Ctx, l, k%10 == 0); err != nil && !errors.Is(err, eventlog.ErrUnsupported) {
					return err
				}
			}
		}
		return nil
	})
	for _, err := range errs {
		t.Must(err)
	}
	t.WantEqual("hits of all", 3*n, len(t.hits(l, search.Query{Text: "needle"})))
}
