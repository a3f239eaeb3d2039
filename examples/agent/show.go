package main

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/flow"
)

// show prints a turn while it runs. If it waits for reviews, show says what to do, and
// waits too.
func show(h *flow.Handle[customer]) error {
	for waits := true; waits; {
		waits = false
		for chunk, err := range h.Receive() {
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
