package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/flow"
)

// chat shows the turn that continues, if there is one, and then takes each line of the
// input as a message.
func chat(ctx context.Context, c *flow.Conn[customer], in io.Reader) error {
	if _, ok := c.Resumed(); ok {
		fmt.Println("(continued)")
		if err := show(c); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(in)
	for fmt.Print("> "); lines.Scan(); fmt.Print("> ") {
		if err := c.SendText(lines.Text()); err != nil {
			return err
		}
		if err := show(c); err != nil {
			return err
		}
	}
	c.Close()
	out, err := c.Output(ctx)
	fmt.Printf("\n%s, %d refunds\n", out.Status, out.Custom.Refunds)
	return err
}

// show prints a turn while it runs. If it waits for reviews, show says what to do, and
// waits too.
func show(c *flow.Conn[customer]) error {
	for waits := true; waits; {
		waits = false
		for chunk, err := range c.Receive() {
			var pause *flow.Hibernated
			var failed *flow.TurnError
			switch {
			case errors.As(err, &pause):
				waits = true
				fmt.Print(question(pause))
			case errors.As(err, &failed):
				fmt.Println(failed)
			case err != nil:
				return err
			default:
				fmt.Print(text(chunk))
			}
		}
	}
	return nil
}
