// Countlog imports Claude Code transcripts into a store and prints what the log
// holds, a line of JSON for each session, for comparison with count_claude.py.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

type counts struct {
	Session   string `json:"session"`
	User      int    `json:"user"`
	Assistant int    `json:"assistant"`
	Calls     int    `json:"calls"`
	Results   int    `json:"results"`
}

func main() {
	store := flag.String("store", "", "a folder (jsonl), or a file ending in .db (sqlite)")
	flag.Parse()
	if err := run(context.Background(), *store, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "countlog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, sources []string) error {
	log := open(path)
	defer log.Close()
	table, err := interop.Import(ctx, log, []interop.Format{claude.Format{}}, sources, interop.Options{})
	if err != nil {
		return err
	}
	total := table.Total()
	fmt.Fprintf(os.Stderr, "%d files: %d records, %d present, %d raw, %d held, %d refused; %d events written\n",
		len(table.Rows), total.Records, total.Present, total.Raw, total.Held, len(total.Refused), total.Events)
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return err
		}
		c, err := count(ctx, log, info.ID)
		if err != nil {
			return err
		}
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func open(path string) *eventlog.Log {
	if len(path) > 3 && path[len(path)-3:] == ".db" {
		return eventlog.Open(sqlite.New(path))
	}
	return eventlog.Open(jsonl.New(path))
}

// count counts what is on the active path.
func count(ctx context.Context, log *eventlog.Log, session string) (counts, error) {
	c := counts{Session: session}
	groups := map[string]bool{}
	for e, err := range log.ActivePath(ctx, session) {
		if err != nil {
			return c, err
		}
		m, ok, err := e.Message()
		if err != nil {
			return c, err
		}
		switch {
		case !ok:
		case m.Role == eventlog.User:
			c.User++
		case m.Role == eventlog.Assistant && (m.Group == "" || !groups[m.Group]):
			groups[m.Group] = true
			c.Assistant++
		}
		c.Calls += len(m.ToolCalls())
		c.Results += len(m.ToolResults())
	}
	return c, nil
}
