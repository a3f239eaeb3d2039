package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel/modeltest"
	"github.com/convlog/convlog/flow/openai"
	"github.com/convlog/convlog/projection"
)

// Ask a server with the Chat Completions API, and print the answer while it arrives.
func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		modeltest.Say(w, chunk(`{"content":"It is "}`)+chunk(`{"content":"lost."}`)+finish("stop"))
	}))
	defer server.Close()

	model := &openai.Client{BaseURL: server.URL, Key: "key", Model: "gpt-5"}
	question := event.Message{Role: event.User, Parts: []event.Part{event.Text("Where is order A1001?")}}
	r, err := model.Generate(context.Background(), &flow.Request{
		System:     "You are brief.",
		Messages:   []projection.Entry{{Message: question}},
		Parameters: []byte(`{"temperature":0}`),
	}, func(d eventlog.Delta) { fmt.Printf("%s: %q\n", d.Kind, d.Text) })
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Message.Text(), r.Message.StopReason)
	// Output:
	// text: "It is "
	// text: "lost."
	// It is lost. stop
}
