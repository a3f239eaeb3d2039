// Orders keeps a projection of its own, with snapshots: orders FILE.db.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/sqlite"
)

// speakers counts the messages of each role on the active path.
var speakers = projection.Projection[map[event.Role]int]{
	Name: "shop:speakers", Version: 1,
	New: func() map[event.Role]int { return map[event.Role]int{} },
	Apply: func(state *map[event.Role]int, e *event.Event) error {
		m, ok, err := event.Decode[event.Message](e)
		if errors.Is(err, event.ErrRedacted) {
			return nil
		}
		if !ok || err != nil {
			return err
		}
		(*state)[m.Role]++
		return nil
	},
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) error {
	l := eventlog.Open(sqlite.New(file))
	defer l.Close()
	for range 500 {
		if _, err := l.Append(ctx, "s", eventlog.Any(), event.UserMessage("How much?"), event.AssistantMessage("Ten.")); err != nil {
			return err
		}
	}
	live, err := projection.Resume(ctx, l, "s", projection.Of("", speakers))
	if err != nil {
		return err
	}
	if _, _, err := live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true}); err != nil {
		return err
	}
	view, err := projection.Load(ctx, l, "s", speakers)
	fmt.Println(view.State, "from", view.Explain.Events, "of", view.Head.Seq, "events")
	return err
}
