package main

import (
	"cmp"

	"github.com/spf13/cobra"
)

// traits are the properties of a command besides its flags. The constructor of the command
// declares them.
type traits struct {
	section string     // of the help; empty inside a group of commands
	verb    string     // names the work in the progress line; empty for a command without one
	paged   bool       // long output goes through the pager
	content bool       // prints the content of events: the command has --mask-secrets
	noJSON  bool       // rejects --json
	args    []argument // the kinds of the arguments, in order
	exits   string     // the exit codes, if they have a meaning of their own
}

// The sections of the help. Help shows them in the order of commands.
const (
	secRead   = "Read"
	secMove   = "Bring in and send out"
	secBranch = "Branch"
	secErase  = "Erase"
	secMore   = "Agents, states and the store"
	secOther  = "Other"
)

// commands are the commands of logtool, in the order of the help.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.lsCommand(), a.showCommand(), a.searchCommand(), a.tailCommand(), a.historyCommand(), a.treeCommand(), a.diffCommand(),
		a.callsCommand(), a.filesCommand(), a.statsCommand(), a.costCommand(), a.runlogCommand(), a.serveCommand(), a.mcpCommand(),
		a.appendCommand(), a.importCommand(), a.exportCommand(), a.resumeCommand(), a.restoreCommand(),
		a.forkCommand(), a.copyCommand(), a.rewindCommand(), a.recoverCommand(),
		a.redactCommand(), a.rmCommand(),
		a.agentGroup(a.runsCommand(), a.approveCommand(), a.denyCommand(), a.answerCommand(), a.resolveCommand(), a.reconcileCommand(),
			a.postCommand(), a.abortCommand(), a.takeCommand()),
		a.stateGroup(a.stateCommand(), a.snapshotCommand(), a.snapshotsCommand(), a.replayCommand(), a.tokenCommand()),
		a.storeGroup(a.verifyCommand(), a.headsCommand(), a.repairCommand(), a.gcCommand(), a.convertCommand(), a.backupCommand(), a.retireCommand(), a.holdCommand(), a.releaseCommand(), a.scanCommand()),
		a.verifyCommand(), // store verify, under a shorter name
		a.versionCommand(), a.manCommand(),
	}
}

// command declares a command.
func (a *app) command(cmd *cobra.Command, t traits) *cobra.Command {
	if a.traits == nil {
		a.traits = map[*cobra.Command]traits{}
	}
	a.traits[cmd], a.declared = t, append(a.declared, cmd)
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + "\n\nExit codes: " + cmp.Or(t.exits, "0 done, 1 failed, 2 wrong usage.")
	cmd.ValidArgsFunction = a.completeArgs(t.args)
	if t.content {
		a.maskFlag(cmd)
	}
	return cmd
}

// traitsOf returns the traits of a command. A command of cobra has the traits of its parent.
func (a *app) traitsOf(cmd *cobra.Command) traits {
	t, declared := a.traits[cmd]
	if !declared && cmd.HasParent() {
		return a.traitsOf(cmd.Parent())
	}
	return t
}

// group makes a group of commands. Alone, it prints its help.
func (a *app) group(cmd *cobra.Command, commands []*cobra.Command) *cobra.Command {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	a.command(cmd, traits{section: secMore})
	cmd.ValidArgsFunction = nil // cobra completes the commands
	return cmd
}

func (a *app) agentGroup(commands ...*cobra.Command) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "agent [COMMAND]",
		Short: "List what agents wait for; answer, continue and end their work",
		Long: `List what the agents of package flow do in the sessions and what they wait for, and
give them what they wait for, from any process.`,
		Example: "  logtool agent runs --status hibernated,waiting",
	}, commands)
}

func (a *app) stateGroup(commands ...*cobra.Command) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "state [COMMAND]",
		Short: "Print the states of a session; make, list and name snapshots",
		Long: `A state is computed from the events of a session: its history, its open calls, its
custom states. A snapshot stores a state, so that a program reads fewer events.`,
		Example: "  logtool state show order-42 --projection history",
	}, commands)
}

func (a *app) storeGroup(commands ...*cobra.Command) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "store [COMMAND]",
		Short: "Check, repair, copy and clean the store; name one with --store",
		Long: `--store names the store: a folder (one JSONL file per session), a sqlite file, a
schema of a PostgreSQL server, or streams of a NATS server. A prefix decides which:

  jsonl:DIR
  sqlite:FILE
  postgres://USER@HOST/DATABASE?schema=NAME
  nats://USER@HOST?prefix=NAME

Without a prefix, an existing file or a name that ends in .db, .sqlite or .sqlite3
is sqlite, and anything else is a folder. The default is $CONVLOG_STORE, else convlog
in $XDG_DATA_HOME (~/.local/share). Put passwords into CONVLOG_STORE, PGPASSWORD or
~/.pgpass: other users can see the arguments of a command.`,
		Example: "  logtool --store notes.db store verify\n  logtool store backup /mnt/usb/logs",
	}, commands)
}
