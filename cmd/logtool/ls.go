package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) lsCommand() *cobra.Command {
	var long bool
	var sort string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the sessions, newest activity first",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sort != "activity" && sort != "id" {
				return usagef("--sort is activity or id, not %q", sort)
			}
			return a.reading(func(log *eventlog.Log) error { return a.ls(cmd.Context(), log, long, sort) })
		},
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "read each session: its latest title, messages, cost, size")
	cmd.Flags().StringVar(&sort, "sort", "activity", "order: activity (newest first) or id")
	return cmd
}

// listed is one session in a listing.
type listed struct {
	ID     string    `json:"id"`
	Title  string    `json:"title,omitzero"`
	Events int64     `json:"events"`
	First  time.Time `json:"first,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Bytes  int64     `json:"bytes"`
	*tally `json:",inline"`
	Error  string `json:"error,omitzero"`
	about  string // who and where, for a session without a title
}

// tally is what only reading a session tells.
type tally struct {
	Messages int64         `json:"messages"`
	Cost     eventlog.Cost `json:"cost"`
	heard    bool          // a user has said something
}

func (a *app) ls(ctx context.Context, log *eventlog.Log, long bool, sort string) error {
	var rows []listed
	broken := 0
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		row := newListed(info)
		if long && row.Error == "" {
			row.read(ctx, log)
		}
		if row.Error != "" {
			broken++
		}
		rows = append(rows, row)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if sort == "activity" {
		slices.SortStableFunc(rows, func(x, y listed) int { return cmp.Or(y.Last.Compare(x.Last), cmp.Compare(x.ID, y.ID)) })
	}
	if err := a.printListing(rows, long); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%s cannot be read; logtool verify shows all damage", count(int64(broken), "session"))
	}
	return nil
}

func newListed(info eventlog.SessionInfo) listed {
	row := listed{ID: info.ID, Bytes: info.Bytes}
	if info.Err != nil {
		row.Error = info.Err.Error()
		return row
	}
	row.Events = info.Events()
	row.First, row.Last = info.First.Timestamp, info.Last.Timestamp
	row.Title = cmp.Or(titleOf(&info.Last), titleOf(&info.First))
	row.about = aboutOf(&info.First)
	return row
}

// titleOf is the title that an event gives its session: as a title, or, for a
// session's first event, as the beginning of the first message.
func titleOf(e *eventlog.Event) string {
	if s, ok, err := e.Session(); ok && err == nil {
		return brief(s.Title, 60)
	}
	if e.Seq != 1 {
		return ""
	}
	if message, ok, err := e.Message(); ok && err == nil {
		return brief(message.Text(), 60)
	}
	return ""
}

// aboutOf says what a session's first event tells of a session without a title:
// what it is a fork of, or the agent and the folder.
func aboutOf(e *eventlog.Event) string {
	if f, ok, err := e.Fork(); ok && err == nil {
		return "(" + brief(fmt.Sprintf("fork of %s at %d %s", f.Parent, f.Seq, f.Label), 60) + ")"
	}
	s, ok, err := e.Session()
	if !ok || err != nil || s.Agent+s.CWD == "" {
		return ""
	}
	if s.CWD == "" {
		return "(" + brief(s.Agent, 60) + ")"
	}
	folder := s.CWD[strings.LastIndexAny(s.CWD, `/\`)+1:]
	return "(" + brief(s.Agent+" in "+folder, 60) + ")"
}

// read fills in what only the session's events tell.
func (row *listed) read(ctx context.Context, log *eventlog.Log) {
	row.tally = &tally{}
	for e, err := range log.Read(ctx, row.ID, eventlog.All.Own()) {
		if err != nil {
			row.Error = err.Error()
			break
		}
		row.Cost += e.Cost
		if e.Type.Name() == eventlog.MessageAdded {
			row.Messages++
			row.about = cmp.Or(row.said(&e), row.about)
		}
		if s, ok, err := e.Session(); ok && err == nil && s.Title != "" {
			row.Title = brief(s.Title, 60)
		}
	}
}

// said is the beginning of the first thing a user said.
func (row *listed) said(e *eventlog.Event) string {
	if row.heard {
		return ""
	}
	m, _, err := e.Message()
	if err != nil || m.Role != eventlog.User {
		return ""
	}
	text := brief(m.Text(), 60)
	row.heard = text != ""
	return text
}

func (a *app) printListing(rows []listed, long bool) error {
	p := a.printer()
	if a.json {
		for _, row := range rows {
			if err := p.value(row); err != nil {
				return err
			}
		}
		return p.flush()
	}
	heading, right := []string{"ID", "EVENTS", "LAST ACTIVITY", "TITLE"}, []int{1}
	if long {
		heading, right = []string{"ID", "EVENTS", "MESSAGES", "COST", "SIZE", "LAST ACTIVITY", "TITLE"}, []int{1, 2, 3, 4}
	}
	var cells [][]string
	for _, row := range rows {
		cells = append(cells, row.cells(p, long))
	}
	p.table(heading, cells, right...)
	return p.flush()
}

func (row *listed) cells(p *printer, long bool) []string {
	title := cmp.Or(row.Title, row.about, "-")
	if row.Error != "" {
		title = "unreadable: " + clean(strings.Join(strings.Fields(row.Error), " "))
	}
	cells := []string{clean(row.ID), thousands(row.Events)}
	if long {
		messages, cost := "-", "-"
		if row.tally != nil {
			messages, cost = thousands(row.Messages), "$"+row.Cost.String()
		}
		cells = append(cells, messages, cost, size(row.Bytes))
	}
	return append(cells, p.when(row.Last), title)
}
