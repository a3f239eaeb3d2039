// Ownevent appends an event type of its own, and reads an older version of it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// OrderPlaced is version 2 of the payload: version 1 had whole euros.
type OrderPlaced struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// EventType has a colon, as every type of a program's own.
func (OrderPlaced) EventType() event.Type { return "shop:order_placed/2" }

var upcast = event.Upcaster{From: "shop:order_placed", To: "shop:order_placed/2",
	Cast: func(data jsontext.Value) (jsontext.Value, error) {
		var old struct {
			Order string `json:"order"`
			Euros int    `json:"euros"`
		}
		if err := json.Unmarshal(data, &old); err != nil {
			return nil, err
		}
		return json.Marshal(OrderPlaced{Order: old.Order, Cents: 100 * old.Euros})
	}}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	l := eventlog.Open(memory.New(), eventlog.Options{Upcasters: []event.Upcaster{upcast}})
	defer l.Close()
	old := event.Event{Type: "shop:order_placed", Data: jsontext.Value(`{"order":"A0","euros":1}`)}
	if _, err := l.Append(ctx, "s", eventlog.New(), old, event.New(OrderPlaced{Order: "A1", Cents: 250})); err != nil {
		return err
	}
	for e, err := range l.Read(ctx, "s", eventlog.All()) {
		if err != nil {
			return err
		}
		order, ok, err := event.Decode[OrderPlaced](&e)
		fmt.Println(ok, order.Order, order.Cents, err)
	}
	return nil
}
