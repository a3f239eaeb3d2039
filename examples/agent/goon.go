package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// goOn sends the input again whose turn has not ended, if there is one.
func goOn(ctx context.Context, agent *flow.Agent[customer]) (*flow.Handle[customer], error) {
	info, err := flow.Info(ctx, agent.Log, *session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return nil, err
	}
	again := flow.Text("again")
	switch {
	case info.Turn != nil:
		again.ID = info.Turn.InputID
	case len(info.Inbox) > 0:
		again.ID = info.Inbox[0].InputID
	default:
		return nil, nil
	}
	fmt.Println("(continued)")
	return say(ctx, agent, again)
}
