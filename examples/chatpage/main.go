// Chatpage serves a page that talks to an agent: chatpage DIR ADDRESS. The page shows the
// turn while it streams, also after a reload, in a second tab, and after a kill of the server.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowhttp"
	"github.com/convlog/convlog/store/jsonl"
)

//go:embed page.html
var page embed.FS

// Desk is the state of the agent.
type Desk struct{ Refunds int }

// Order is the argument of the tool.
type Order struct {
	Order string `json:"order"`
}

func refund(context.Context, Order) (string, error) { return "paid back", nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, address string) error {
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	refund := flow.Tool("refund", "Pays an order back.", refund, flow.Once, flow.Review("Pay it back?"))
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: flow.Chat[Desk](clerk{}, flow.Request{}, refund)}

	mux := http.NewServeMux()
	mux.Handle("/agent/", http.StripPrefix("/agent", flowhttp.New(agent, flowhttp.Options{})))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, page, "page.html") })
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	go http.Serve(listener, mux)
	return agent.Serve(ctx) // continues the turns that a killed server left
}
