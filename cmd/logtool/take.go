package main

import (
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

func (a *app) takeCommand() *cobra.Command {
	var by string
	cmd := a.command(&cobra.Command{
		Use:   "take SESSION",
		Short: "Take a session over, from a stopped agent or from another store",
		Long: `Take a session over, with the children of its turn. The take-over is recorded.

A runner that has the session cannot append any more, also if its process is only stopped;
end the process first if you can.

An open turn has one home: the store where its runner was. In a copy of that store
(store convert, store backup, export and import) the agent leaves the turn alone until
somebody takes it over there. The home does not learn of it: make sure that no agent
continues the session in the home, or its effects run twice.`,
		Example: "  logtool --store copy agent take order-42",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				head, err := flow.TakeOver(cmd.Context(), log, session, a.user(by))
				return a.recorded(session, head, "taken over", err)
			})
		},
	}, traits{args: []argument{sessionArg}})
	byFlag(cmd, &by)
	return cmd
}
