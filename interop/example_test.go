package interop_test

import (
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/store/memory"
)

// A folder with transcripts of several programs. A second import adds nothing.
func ExampleImport() {
	ctx := context.Background()
	l := eventlog.Open(memory.New())
	defer l.Close()
	for range 2 {
		table, err := interop.Import(ctx, l, formats.All(), []string{"../testdata/transcripts/samples"})
		if err != nil {
			log.Fatal(err)
		}
		total := table.Total()
		fmt.Println(len(table.Rows), "files:", total.Events, "events,", total.Present, "records in the log already")
	}
	// Output:
	// 5 files: 67 events, 0 records in the log already
	// 5 files: 0 events, 58 records in the log already
}
