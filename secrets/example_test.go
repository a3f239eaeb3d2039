package secrets_test

import (
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/memory"
)

// The log stores a mask in the place of a token.
func ExamplePolicy() {
	policy := secrets.Policy{Scanner: secrets.Default(), Mask: true}
	l := eventlog.Open(memory.New(), eventlog.Options{Hook: policy.Event, BodyHook: policy.Body})
	defer l.Close()
	ctx := context.Background()
	token := "gh" + "p_" + "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"
	if _, err := l.Append(ctx, "chat", eventlog.New(), event.UserMessage("Use "+token+" for the push.")); err != nil {
		log.Fatal(err)
	}
	e, err := l.Event(ctx, "chat", 1)
	if err != nil {
		log.Fatal(err)
	}
	m, _, err := event.Decode[event.Message](&e)
	fmt.Println(m.Text(), err)
	// Output:
	// Use [secret:github-token] for the push. <nil>
}
