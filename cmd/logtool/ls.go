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
	"github.com/convlog/convlog/fork"
)

func (a *app) lsCommand() *cobra.Command {
	var long bool
	var sort string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the sessions, newest activity first",
		Long: `List the sessions of the store, from the first and the last event of each.

--long reads them: the title as it is now, messages, cost, and how many events
were rewound (orphaned). FORKS counts the sessions forked from one, FROM is where
a session comes from itself: a fork, a run or a copy of SESSION@SEQ. What a fork
shares with its parents is not counted again.`,
		Args: between(0, 0),
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
	ID     string `json:"id"`
	origin `json:",inline"`
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
	Orphaned int64         `json:"orphaned"`
	Cost     eventlog.Cost `json:"cost"`
	heard    bool          // a user has said something
	moved    bool          // the head was moved
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
	relate(rows)
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
	n := fork.NodeOf(info)
	row := listed{ID: info.ID, Bytes: info.Bytes, origin: newOrigin(n)}
	if n.Info.Err != nil {
		row.Error = n.Info.Err.Error()
		return row
	}
	row.Events = info.Events()
	row.First, row.Last = info.First.Timestamp, info.Last.Timestamp
	row.Title = cmp.Or(titleOf(&info.Last), titleOf(&info.First))
	row.about = aboutOf(n)
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
func aboutOf(n *fork.Node) string {
	if n.Kind == fork.KindFork {
		return "(" + brief("fork of "+n.Parent+" at "+at(n.Seq)+called(n.Label, ""), 60) + ")"
	}
	s, ok, err := n.Info.First.Session()
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
		if _, copied := fork.Origin(&e); !copied {
			row.Cost += e.Cost
		}
		switch e.Type.Name() {
		case eventlog.MessageAdded:
			row.Messages++
			row.about = cmp.Or(row.said(&e), row.about)
		case eventlog.HeadMoved:
			row.moved = true
		}
		if s, ok, err := e.Session(); ok && err == nil && s.Title != "" {
			row.Title = brief(s.Title, 60)
		}
	}
	if row.moved && row.Error == "" {
		if err := row.countOrphaned(ctx, log); err != nil {
			row.Error = err.Error()
		}
	}
}

// countOrphaned counts the session's own events that were rewound.
func (row *listed) countOrphaned(ctx context.Context, log *eventlog.Log) error {
	rewound := newOrphans(log, row.ID)
	for e, err := range log.Read(ctx, row.ID, eventlog.All.Own().Bare()) {
		if err != nil {
			return err
		}
		orphaned, err := rewound.has(ctx, &e)
		if err != nil {
			return err
		}
		if orphaned {
			row.Orphaned++
		}
	}
	return nil
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
		heading = []string{"ID", "EVENTS", "ORPHANED", "MESSAGES", "FORKS", "COST", "SIZE", "LAST ACTIVITY", "FROM", "TITLE"}
		right = []int{1, 2, 3, 4, 5, 6}
	}
	ids := idsOf(rows)
	var cells [][]string
	for _, row := range rows {
		cells = append(cells, row.cells(p, ids, long))
	}
	p.table(heading, cells, right...)
	return p.flush()
}

// cells are those of a row; ids are those of all rows, sorted.
func (row *listed) cells(p *printer, ids []string, long bool) []string {
	title := cmp.Or(row.Title, row.about, "-")
	if row.Error != "" {
		title = "unreadable: " + clean(strings.Join(strings.Fields(row.Error), " "))
	}
	cells := []string{clean(row.ID), thousands(row.Events)}
	if !long {
		return append(cells, p.when(row.Last), title)
	}
	messages, orphaned, cost := "-", "-", "-"
	if row.tally != nil {
		messages, orphaned = thousands(row.Messages), thousands(row.Orphaned)
	}
	if row.tally != nil && row.Cost != 0 {
		cost = "$" + row.Cost.String()
	}
	return append(cells, orphaned, messages, thousands(row.Forks), cost, size(row.Bytes), p.when(row.Last), row.from(ids), title)
}
