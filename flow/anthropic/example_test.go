package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/anthropic"
	"github.com/convlog/convlog/projection"
)

// Ask a server with the Messages API. An error says whether another attempt makes sense.
func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(529)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	}))
	defer server.Close()

	model := &anthropic.Client{BaseURL: server.URL, Key: "key", Model: "claude-sonnet-4-5"}
	question := event.Message{Role: event.User, Parts: []event.Part{event.Text("Where is order A1001?")}}
	_, err := model.Generate(context.Background(), &flow.Request{
		Messages:   []projection.Entry{{Message: question}},
		Parameters: []byte(`{"thinking":{"type":"enabled","budget_tokens":2048}}`),
	}, func(eventlog.Delta) {})

	var failed *flow.ModelError
	if errors.As(err, &failed) && !failed.Permanent() {
		fmt.Println("again after", failed.RetryAfter())
	}
	fmt.Println(err)
	// Output:
	// again after 7s
	// anthropic: HTTP 529: overloaded_error: Overloaded
}
