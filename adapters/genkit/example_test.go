package genkit_test

import (
	"context"
	"fmt"
	"os"

	"github.com/firebase/genkit/go/ai"
	aix "github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/genkit"
	genkitx "github.com/firebase/genkit/go/genkit/exp"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "conversations")
	log := eventlog.Open(jsonl.New(dir))
	defer log.Close()

	type State struct{ Questions int }
	g := genkit.Init(ctx, genkit.WithExperimental())
	desk := genkitx.DefineCustomAgent(g, "desk", func(ctx context.Context, _ aix.Responder, sess *aix.SessionRunner[State]) (*aix.AgentResult, error) {
		return nil, sess.Run(ctx, func(context.Context, *aix.AgentInput) (*aix.TurnResult, error) {
			sess.UpdateCustom(func(s State) State { return State{s.Questions + 1} })
			sess.AddMessages(ai.NewModelTextMessage("Your parcel arrives today."))
			return nil, nil
		})
	}, aix.WithSessionStore[State](adapter.New[State](log)))

	for _, question := range []string{"Where is my parcel?", "And the other one?"} {
		if _, err := desk.RunText(ctx, question, aix.WithSessionID[State]("s1")); err != nil {
			fmt.Println(err)
		}
	}
	last, err := desk.GetLatestSnapshot(ctx, "s1") // logtool show genkit/s1
	fmt.Println(last.State.Custom.Questions, len(last.State.Messages), err)
	// Output: 2 4 <nil>
}
