package search_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/sqlite"
)

// Search finds events by their words, newest first, with a snippet.
func ExampleEvents() {
	dir, err := os.MkdirTemp("", "convlog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l := eventlog.Open(sqlite.New(filepath.Join(dir, "s.db")))
	defer l.Close()
	for _, text := range []string{"Where is my parcel?", "Is store.go of the parcel service written in C++?"} {
		if _, err := l.Append(ctx, "order-42", eventlog.Any(), event.UserMessage(text)); err != nil {
			log.Fatal(err)
		}
	}
	for hit, err := range search.Events(ctx, l, search.Query{Text: "PARCEL", Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		first := hit.Matches[0]
		fmt.Println(hit.Session, hit.Seq, hit.Snippet[first[0]:first[1]], "in:", hit.Snippet)
	}
	for hit := range search.Events(ctx, l, search.Query{Text: `c++ "store.go of"`}) {
		fmt.Println(hit.Seq, len(hit.Matches))
	}
	// Output:
	// order-42 2 parcel in: Is store.go of the parcel service written in C++?
	// order-42 1 parcel in: Where is my parcel?
	// 2 2
}
