package lists_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/store/memory"
)

// Import a conversation, then a longer version of it.
func Example() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	for _, list := range []string{
		`{"id":"conversation-1","messages":[{"role":"user","content":"Where is my parcel?"}]}`,
		`{"id":"conversation-1","messages":[{"role":"user","content":"Where is my parcel?"},{"role":"assistant","content":"In Leipzig."}]}`,
	} {
		chat := interop.Source{Name: "chat.json", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(list)), nil
		}}
		result, err := lists.Format{}.Import(ctx, log, chat)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Records, "messages,", result.Present, "known,", result.Events, "events written")
	}
	// Output:
	// 1 messages, 0 known, 2 events written
	// 2 messages, 1 known, 1 events written
}
