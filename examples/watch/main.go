// Watch prints the events of a session as any process appends them: watch DIR SESSION
// N. It ends after N events; the session need not exist yet.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = run(ctx, os.Args[1], os.Args[2], n)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, session string, n int) error {
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	for e, err := range l.Watch(ctx, session, 1, eventlog.WatchOptions{Wait: true}) {
		if err != nil {
			return err
		}
		m, ok, err := event.Decode[event.Message](&e)
		if err != nil && !errors.Is(err, event.ErrRedacted) {
			return err
		}
		if ok {
			fmt.Println(e.Seq, m.Role, m.Text())
		}
		if n--; n == 0 {
			break
		}
	}
	return nil
}
