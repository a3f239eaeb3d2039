// Chatpage serves a page that talks to an agent: chatpage DIR ADDRESS. The page shows the
// turn while it streams, also after a reload, in a second tab, and after a kill of the server.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowhttp"
	"github.com/convlog/convlog/store/jsonl"
)

//go:embed page.html
var page []byte

// Desk is the state of the agent.
type Desk struct{ Refunds int }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 {
		log.Fatal("usage: chatpage DIR ADDRESS")
	}
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, address string) error {
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	refund := flow.Tool("refund", "Pays an order back.", func(context.Context, struct {
		Order string `json:"order"`
	}) (string, error) {
		return "paid back", nil
	}, flow.Once, flow.Review("Pay it back?"))
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: flow.Chat[Desk](clerk{}, flow.Request{}, refund)}

	mux := http.NewServeMux()
	mux.Handle("/agent/", http.StripPrefix("/agent", flowhttp.New(agent, flowhttp.Options{})))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // the client has gone
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	go func() { _ = http.Serve(listener, mux) }()
	return agent.Serve(ctx) // continues the turns that a killed server left
}

// clerk is a model that needs no network: it repeats what it is told, word by word, and pays
// an order back when it is asked to.
type clerk struct{}

func (clerk) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	last := &r.Messages[len(r.Messages)-1].Message
	answer := "You said: " + last.Text()
	if last.Role == event.Tool {
		answer = "The order is " + last.Parts[0].Content[0].Text + "."
		if last.Parts[0].IsError {
			answer = "I may not do that."
		}
	}
	for _, word := range strings.SplitAfter(answer, " ") {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return flow.Response{}, ctx.Err()
		}
		emit(eventlog.Delta{Kind: event.TextPart, Text: word})
	}
	m := event.Message{Parts: []event.Part{event.Text(answer)}, StopReason: "stop"}
	if _, order, ok := strings.Cut(last.Text(), "refund "); ok && last.Role == event.User {
		id := fmt.Sprintf("call-%d", len(r.Messages))
		order, _, _ = strings.Cut(order, " ")
		arguments, err := jsontext.AppendQuote(nil, cmp.Or(order, "none"))
		if err != nil {
			return flow.Response{}, err
		}
		m.Parts = append(m.Parts, event.ToolCall(id, "refund", jsontext.Value(`{"order":`+string(arguments)+`}`)))
	}
	return flow.Response{Message: m}, nil
}
