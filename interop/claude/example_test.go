package claude_test

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/store/memory"
)

// Import every session in a folder, then import the folder again.
func Example() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	for range 2 {
		table, err := interop.Import(ctx, log, []interop.Format{claude.Format{}},
			[]string{"../../testdata/transcripts/samples"})
		if err != nil {
			fmt.Println(err)
			return
		}
		total := table.Total()
		fmt.Println(len(table.Rows), "files,", total.Records, "records,", total.Events, "events written")
	}
	// Output:
	// 5 files, 58 records, 67 events written
	// 5 files, 58 records, 0 events written
}
