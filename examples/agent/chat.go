package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/convlog/convlog/flow"
)

// chat shows the turn that continues, and then takes each line of the input as a message.
func chat(ctx context.Context, agent *flow.Agent[customer], in io.Reader) error {
	last, err := goOn(ctx, agent)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for fmt.Print("> "); lines.Scan(); fmt.Print("> ") {
		if last, err = say(ctx, agent, flow.Text(lines.Text())); err != nil {
			return err
		}
	}
	if last == nil {
		return nil
	}
	out, err := last.Wait(ctx)
	fmt.Printf("\n%s, %d refunds\n", out.Status, out.Custom.Refunds)
	return err
}

// say sends an input and shows its turn.
func say(ctx context.Context, agent *flow.Agent[customer], in flow.Input) (*flow.Handle[customer], error) {
	h, err := agent.Send(ctx, *session, in)
	if err != nil {
		return nil, err
	}
	return h, show(h)
}
