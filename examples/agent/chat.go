package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// chat shows the turn that continues, if there is one, and then takes each line of the
// input as a message.
func chat(ctx context.Context, agent *flow.Agent[customer], in io.Reader) error {
	if err := goOn(ctx, agent); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for fmt.Print("> "); lines.Scan(); fmt.Print("> ") {
		h, err := agent.Send(ctx, *session, flow.Text(lines.Text()))
		if err != nil {
			return err
		}
		if err := show(h); err != nil {
			return err
		}
	}
	h, err := agent.Resume(ctx, flow.Ref{Session: *session})
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := h.Wait(ctx)
	fmt.Printf("\n%s, %d refunds\n", out.Status, out.Custom.Refunds)
	return err
}

// goOn continues the open turn of the session. If it waits for a review, goOn waits too.
func goOn(ctx context.Context, agent *flow.Agent[customer]) error {
	info, err := flow.Info(ctx, agent.Log, *session)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && info.Turn == nil {
		return nil
	}
	if err != nil {
		return err
	}
	h, err := agent.Send(ctx, *session, flow.Input{ID: info.Turn.InputID, Messages: flow.Text("again").Messages})
	if err != nil {
		return err
	}
	fmt.Println("(continued)")
	return show(h)
}
