// Countlog imports transcripts into a store and prints what the log holds, a line
// of JSON for each session, for comparison with count_claude.py, count_pi.py and
// the like.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// counts are of the active path of a session; those of tokens and nano-dollars
// are of answers, the last usage of each.
type counts struct {
	Session    string `json:"session"`
	User       int    `json:"user"`
	Assistant  int    `json:"assistant"`
	Calls      int    `json:"calls"`
	Results    int    `json:"results"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
	Cost       int64  `json:"cost"`
	Said       int    `json:"said"`     // by the user, in characters
	Answered   int    `json:"answered"` // by the model
	Context    int    `json:"context"`  // messages of programs in the user's name, of User
	Turns      int    `json:"turns"`    // with an input
	Empty      int    `json:"empty"`    // turns without an input
	Open       int    `json:"open"`     // turns that have not ended
	Called     int64  `json:"called"`   // duration of the model calls of the session itself, in milliseconds
	Worked     int64  `json:"worked"`   // duration of the turns of the session itself, in milliseconds
	Title      string `json:"title"`
	Children   string `json:"children"` // how many of the session itself are in each state
}

func main() {
	store := flag.String("store", "", "a folder (jsonl), or a file ending in .db (sqlite)")
	format := flag.String("format", "auto", "the format of the transcripts")
	which := flag.Bool("which", false, "only print the format and the path of each transcript")
	leftOut := flag.String("left-out", "", "a file for the paths of transcripts that are refused, or whose session another one has")
	flag.Parse()
	do := func(ctx context.Context) error { return run(ctx, *store, *format, *leftOut, flag.Args()) }
	if *which {
		do = func(ctx context.Context) error { return list(ctx, *format, flag.Args()) }
	}
	if err := do(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "countlog:", err)
		os.Exit(1)
	}
}

// list tells of each transcript what format it is of.
func list(ctx context.Context, name string, sources []string) error {
	these, err := formatsOf(name)
	if err != nil {
		return err
	}
	found, err := interop.Find(ctx, these, sources)
	if err != nil {
		return err
	}
	for _, f := range found.Files() {
		fmt.Println(f.Format + "\t" + f.Path)
	}
	return nil
}

// formatsOf is the format of a name, or all formats.
func formatsOf(name string) ([]interop.Format, error) {
	these := formats.All()
	if name != "auto" {
		these = slices.DeleteFunc(these, func(f interop.Format) bool { return f.Name() != name })
	}
	if len(these) == 0 {
		return nil, errors.New("no such format")
	}
	return these, nil
}

func run(ctx context.Context, path, name, leftOut string, sources []string) error {
	these, err := formatsOf(name)
	if err != nil {
		return err
	}
	log := open(path)
	defer log.Close()
	table, err := interop.Import(ctx, log, these, sources)
	if leftOut != "" && err != nil {
		err = listLeftOut(&table, leftOut)
	}
	if err != nil {
		return err
	}
	total := table.Total()
	fmt.Fprintf(os.Stderr, "%d files: %d records, %d present, %d raw, %d skipped, %d rejected; %d events written\n",
		len(table.Rows), total.Records, total.Present, total.Raw, total.Skipped, len(total.Rejected), total.Events)
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return err
		}
		c, err := count(ctx, log, info.ID)
		if err == nil {
			err = c.countRun(ctx, log)
		}
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

// listLeftOut writes the paths of the files that are refused, and of those of which nothing
// was imported because another file has their session. It returns any other error.
func listLeftOut(table *interop.Table, path string) error {
	var paths []byte
	for _, row := range table.Rows {
		switch {
		case row.Err == nil:
		case errors.Is(row.Err, interop.ErrUnread), errors.Is(row.Err, interop.ErrHistory) && row.Imported+row.Present+row.Raw == 0:
			fmt.Fprintln(os.Stderr, "left out:", row.Err)
			paths = append(append(paths, row.Path...), '\n')
		default:
			return row.Err
		}
	}
	return os.WriteFile(path, paths, 0o600)
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
	used := map[string]event.Usage{}
	for e, err := range log.Read(ctx, session, eventlog.All().OnPath()) {
		if err != nil {
			return c, err
		}
		m, ok, err := event.Decode[event.Message](&e)
		if err != nil {
			return c, err
		}
		c.Cost += int64(e.Cost)
		if step, ok, err := event.Decode[event.StepCompletion](&e); ok && err == nil {
			if _, answered := used[step.ResponseID]; answered {
				used[step.ResponseID] = step.Usage
			} else {
				c.spend(step.Usage)
			}
		}
		switch {
		case !ok:
		case m.Role == event.User:
			c.User++
			if e.IsContext() {
				c.Context++
			}
			c.Said += utf8.RuneCountInString(m.Text())
		case m.Role == event.Assistant:
			group := m.Group
			if group == "" {
				group = e.ID.String()
			}
			c.Answered += utf8.RuneCountInString(m.Text())
			if _, counted := used[group]; !counted || !m.Usage.IsZero() {
				used[group] = m.Usage
			}
		}
		c.Calls += len(m.ToolCalls())
		c.Results += len(m.ToolResults())
	}
	c.Assistant = len(used)
	for _, u := range used {
		c.spend(u)
	}
	return c, nil
}

func (c *counts) spend(u event.Usage) {
	c.Input, c.Output = c.Input+u.InputTokens, c.Output+u.OutputTokens
	c.CacheRead, c.CacheWrite = c.CacheRead+u.CacheReadTokens, c.CacheWrite+u.CacheWriteTokens
}

// countRun counts the turns, model calls and children of the session.
func (c *counts) countRun(ctx context.Context, log *eventlog.Log) error {
	run, err := runlog.Load(ctx, log, c.Session, runlog.Options{NoChildren: true})
	if err != nil {
		return err
	}
	c.Title = run.Title
	states := map[string]int{}
	c.countOps(run.Ops, states, false)
	for _, t := range run.Turns {
		if t.Orphaned {
			continue
		}
		if len(t.Input) > 0 {
			c.Turns++
		} else {
			c.Empty++
		}
		if t.Status == "" {
			c.Open++
		}
		c.countOps(t.Ops, states, t.Inherited)
		if worked := t.Ended.Sub(t.Started).Milliseconds(); t.TookMS > 0 {
			c.Worked += t.TookMS
		} else if !t.Inherited && event.Dated(t.Started).Equal(t.Started) {
			c.Worked += max(0, worked)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		c.Children += fmt.Sprintf("%s %d ", state, states[state])
	}
	c.Children = strings.TrimSpace(c.Children)
	return nil
}

func (c *counts) countOps(ops []*runlog.Op, states map[string]int, inherited bool) {
	for _, op := range ops {
		if op.Orphaned {
			continue
		}
		if op.Kind == runlog.LLMOp && !inherited && op.Ended.After(op.Started) {
			c.Called += op.Ended.Sub(op.Started).Milliseconds()
		}
		for _, child := range op.Children {
			if !inherited && !child.Inherited {
				states[string(child.State)]++
			}
		}
	}
}
