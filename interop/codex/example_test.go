package codex_test

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/store/memory"
)

func ExampleFormat() {
	log := eventlog.Open(memory.New())
	defer log.Close()
	sessions := []string{"../../testdata/transcripts/codex/parent.jsonl", "../../testdata/transcripts/codex/fork.jsonl"}
	table, err := interop.Import(context.Background(), log, []interop.Format{codex.Format{}}, sessions)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range table.Rows {
		fmt.Printf("%d records, %d of them in the log already: %d events\n", row.Records, row.Present, row.Events)
	}
	// Output:
	// 41 records, 0 of them in the log already: 46 events
	// 36 records, 27 of them in the log already: 11 events
}
