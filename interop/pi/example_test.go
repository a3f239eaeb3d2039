package pi_test

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/store/memory"
)

// Import a folder of sessions with a copy of another session.
func Example() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	table, err := interop.Import(ctx, log, []interop.Format{pi.Format{}}, []string{"../../testdata/transcripts/pi/--home-ada-beehive--"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range table.Rows {
		fmt.Println(row.Records, "records,", row.Present, "of them in the log,", row.Events, "events written")
	}
	// Output:
	// 24 records, 0 of them in the log, 25 events written
	// 19 records, 15 of them in the log, 5 events written
}
