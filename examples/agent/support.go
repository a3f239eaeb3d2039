package main

import (
	"flag"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

const system = "You are the support of a shop. Orders have numbers like A1. Refund broken goods."

var tokens = flag.Int64("compact", 100_000, "the `tokens` of a history that is compacted")

// models are the models of the two agents.
type models struct{ support, carrier flow.Model }

// support is the agent of the shop. The history is compacted when it has more than some
// tokens.
func support(l *eventlog.Log, m models, system string, tokens int64) *flow.Agent[customer] {
	all := append(tools(), flow.AgentTool("carrier", "Asks the carrier about a parcel.", carrier(m.carrier), flow.ChildOptions{}))
	return &flow.Agent[customer]{Name: "support", Log: l, Turn: flow.Chat[customer](m.support, flow.Request{System: system}, all...),
		Options: flow.Options{Compact: projection.HistorySize{Tokens: tokens}, KeepTurns: 1}}
}
