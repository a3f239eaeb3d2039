package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/convlog/convlog/cmd/logtool/internal/mcplog"
)

func (a *app) mcpCommand() *cobra.Command {
	var address string
	cmd := a.command(&cobra.Command{
		Use:   "mcp",
		Short: "Let agents list, search and read the sessions over MCP",
		Long: `Serve the sessions to agents over MCP. The tools list, search, show, history, files
and cost are the commands with --json; they change nothing, and mask secrets. An
answer has at most the tokens that its call allows, and a cursor to go on.

The agent starts the command and uses its standard input and output. Put it into the
settings of the agent, as with: claude mcp add log -- logtool mcp

--addr serves over HTTP instead, to programs of this machine that send the printed
token as Authorization: Bearer TOKEN. CONVLOG_MCP_TOKEN sets a token of 32 characters
or more; otherwise it is new at each start.`,
		Example: "  logtool mcp --store notes.db\n  logtool mcp --addr 127.0.0.1:8787",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.place(); err != nil {
				return err
			}
			server := mcplog.New(versionNow().Version, a.mcpTools())
			switch {
			case address != "":
				return a.mcpOverHTTP(cmd.Context(), server, address)
			case a.json:
				return usagef("--json goes with --addr: the standard output is for the agent")
			}
			return server.Serve(cmd.Context(), a.in, a.out)
		},
	}, traits{section: secRead})
	cmd.Flags().StringVar(&address, "addr", "", addressUsage)
	return cmd
}

// mcpTools makes the tools from the commands.
func (a *app) mcpTools() (tools []mcplog.Tool) {
	root := (&app{getenv: a.getenv}).root()
	for _, t := range mcpTools {
		cmd, _, err := root.Find([]string{t.command})
		if err != nil {
			panic(err) // a row names no command
		}
		tools = append(tools, mcplog.Tool{Name: t.name, Description: strings.TrimSpace(cmd.Short + ". " + t.more), Params: t.params(cmd), Key: t.key, Begin: t.begin,
			Run: func(ctx context.Context, args mcplog.Args, out, notes io.Writer) error {
				return a.runTool(ctx, t.line(cmd, args), out, notes)
			}})
	}
	return tools
}

// mcpArguments describe the arguments of commands as parameters.
var mcpArguments = map[string]string{
	"text":    "words to find",
	"session": "the id of a session, or its beginning",
}

// arguments are the names of the arguments of a command, as its usage line has them.
func (t *mcpTool) arguments(cmd *cobra.Command) []string {
	return strings.Fields(strings.ToLower(strings.TrimPrefix(cmd.Use, cmd.Name())))
}

func (t *mcpTool) params(cmd *cobra.Command) (params []mcplog.Param) {
	for _, name := range t.arguments(cmd) {
		plain := strings.Trim(name, "[]")
		params = append(params, mcplog.Param{Name: plain, Kind: mcplog.Text, Description: mcpArguments[plain], Required: plain == name})
	}
	for _, name := range t.flags {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			panic(t.command + " has no flag " + name)
		}
		_, usage := pflag.UnquoteUsage(f)
		params = append(params, mcplog.Param{Name: name, Kind: mcpKind(f.Value.Type()), Description: usage})
	}
	return params
}

// mcpKind is the kind of a parameter for a flag.
func mcpKind(flag string) mcplog.Kind {
	switch flag {
	case "bool":
		return mcplog.Truth
	case "int":
		return mcplog.Number
	case "stringSlice":
		return mcplog.Texts
	}
	return mcplog.Text
}

// line is the command line of a call. Every value is one word of it, so that no value is a flag.
func (t *mcpTool) line(cmd *cobra.Command, args mcplog.Args) []string {
	line := append([]string{t.command, "--json", "--mask-secrets"}, t.fixed...)
	for _, name := range t.flags {
		for _, value := range args[name] {
			line = append(line, "--"+name+"="+value)
		}
	}
	line = append(line, "--")
	for _, name := range t.arguments(cmd) {
		line = append(line, strings.Join(args[strings.Trim(name, "[]")], ""))
	}
	for len(line) > 0 && line[len(line)-1] == "" {
		line = line[:len(line)-1]
	}
	return line
}

// runTool runs a command line on the store of a.
func (a *app) runTool(ctx context.Context, line []string, out, notes io.Writer) error {
	x := &app{in: strings.NewReader(""), out: out, err: notes, getenv: a.getenv, now: a.now}
	global := []string{"--wait=" + a.wait.String()}
	if a.store != "" {
		global = append(global, "--store="+a.store)
	}
	err := x.execute(ctx, append(global, line...))
	var nothing *foundNothingError
	if errors.As(err, &nothing) {
		nothing.shown = false // the hint names a flag that is no parameter
		x.note("%s", explain(err))
		return nil
	}
	var several *severalError
	if errors.As(err, &several) {
		return errors.New(explain(err) + ": " + strings.Join(several.titles, "; "))
	}
	if err != nil {
		return errors.New(explain(err))
	}
	return nil
}
