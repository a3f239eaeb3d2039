package oasst_test

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/oasst"
	"github.com/convlog/convlog/store/memory"
)

// Each reply is a branch, and the path ends with the best reply.
func Example() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	table, err := interop.Import(ctx, log, []interop.Format{oasst.Format{}}, []string{trees})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Total().Records, "messages in", len(table.Total().Sessions), "trees")
	for e, err := range log.Read(ctx, tree, eventlog.All().OnPath()) {
		m, ok, failed := event.Decode[event.Message](&e)
		if err != nil || failed != nil {
			fmt.Println(err, failed)
			return
		}
		if ok {
			fmt.Printf("%s: %s\n", m.Role, m.Text())
		}
	}
	// Output:
	// 7 messages in 2 trees
	// user: When is high water?
	// assistant: At noon.
	// user: And where?
	// assistant: At Pwllheli.
}
