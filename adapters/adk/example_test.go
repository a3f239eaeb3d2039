package adk_test

import (
	"context"
	"fmt"
	"iter"
	"os"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "conversations")
	log := eventlog.Open(jsonl.New(dir))
	defer log.Close()
	services := adk.New(log)

	desk, _ := agent.New(agent.Config{Name: "desk", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			e := session.NewEvent(ctx, ctx.InvocationID())
			e.Content = genai.NewContentFromText("Your parcel arrives today.", genai.RoleModel)
			yield(e, nil)
		}
	}})
	r, _ := runner.New(runner.Config{AppName: "shop", Agent: desk, SessionService: services.Sessions, AutoCreateSession: true})
	question := genai.NewContentFromText("Where is my parcel?", genai.RoleUser)
	for e, err := range r.Run(ctx, "ann", "s1", question, agent.RunConfig{}) {
		fmt.Println(e.Author, e.Content.Parts[0].Text, err)
	}
	head, err := log.Head(ctx, "adk/shop/ann/s1") // logtool show adk/shop/ann/s1
	fmt.Println(head.Seq, err)
	// Output:
	// desk Your parcel arrives today. <nil>
	// 4 <nil>
}
