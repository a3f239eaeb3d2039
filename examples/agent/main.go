// Agent is a support agent that may be killed at any time; README.md has a transcript.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

var (
	dir     = flag.String("store", "support", "the folder of the log")
	session = flag.String("session", "chat", "the conversation")
	model   = flag.String("model", "script", "script, openai:NAME or anthropic:NAME")
	url     = flag.String("url", "", "the address of another API of that kind")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(advice(err))
	}
}

// run chats until the input ends.
func run(ctx context.Context) error {
	m, err := newModels(*model, *url)
	if err != nil {
		return err
	}
	l := eventlog.Open(jsonl.New(*dir))
	defer l.Close()
	return chat(ctx, support(l, m, system, *tokens), os.Stdin)
}
