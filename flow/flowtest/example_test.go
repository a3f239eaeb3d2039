package flowtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
)

// A changed prompt is a divergence at the first call of the model. The model does not run.
func ExampleRun() {
	log := eventlog.Open(memory.New())
	defer log.Close()
	agent := func(system string) *flow.Agent[struct{}] {
		m := flowtest.Script{flowtest.Say("It is in Leipzig.")}
		return &flow.Agent[struct{}]{Name: "support", Log: log, Turn: flow.Chat[struct{}](m, flow.Request{System: system})}
	}
	ctx := context.Background()
	if _, err := agent("You are kind.").Run(ctx, "order-42", flow.Text("Where is my parcel?")); err != nil {
		fmt.Println(err)
	}

	_, err := flowtest.Run(ctx, agent("You are brief."), log, "order-42")
	var d *flowtest.DivergenceError
	if errors.As(err, &d) {
		fmt.Printf("turn %d, effect %s, %s: the %s differs\n%s\n", d.Index, d.Ordinal, d.Kind, d.Member, d.Diff)
	}
	// Output:
	// turn 0, effect 0, model: the request differs
	// 	  system:
	// 	-   (the recording has only a digest: record the prompts with Options.Update)
	// 	+   You are brief.
	// 	  user:
	// 	    Where is my parcel?
}
