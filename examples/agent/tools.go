package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/convlog/convlog/flow"
)

// customer is the custom state of a conversation.
type customer struct {
	Refunds int `json:"refunds"`
}

type order struct {
	ID string `json:"id" jsonschema:"the number of the order"`
}

type payment struct {
	order
	Cents int `json:"cents" jsonschema:"the amount"`
}

// track is the tool of the carrier.
var track = flow.Tool("track", "Tells where the parcel is.", func(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("parcel of %s: in Leipzig", o.ID), nil
})

func tools() []flow.ToolSpec {
	pay := flow.Tool("refund", "Pays money back.", refund, flow.Once, flow.Review("Pay it back?"))
	return []flow.ToolSpec{
		flow.Tool("find_order", "Finds what was ordered.", func(_ context.Context, o order) (string, error) {
			return fmt.Sprintf("order %s: a mug, 1250 cents, delivered", o.ID), nil
		}),
		pay,
	}
}

// refund writes a line for the bank, with the key of the effect. Nobody pays twice by
// accident: the effect never runs again after a kill.
func refund(ctx context.Context, p payment) (string, error) {
	run, _ := flow.FromContext(ctx)
	f, err := os.OpenFile(*dir+"-refunds.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(f, run.Key, p.ID, p.Cents)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	err = flow.Update(ctx, func(c *customer) error { c.Refunds++; return nil })
	return fmt.Sprintf("paid %d cents for %s", p.Cents, p.ID), err
}
