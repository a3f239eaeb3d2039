package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
)

// hitFilter is the flags of search that select messages.
type hitFilter struct {
	role   string
	tool   string
	failed bool
}

// contextRole is the --role of texts that programs wrote in the user's name.
const contextRole = "context"

// roleNames are the values of --role.
var roleNames = []string{string(event.User), string(event.Assistant), string(event.Tool), string(event.System), contextRole}

func (h *hitFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.role, "role", "", "only messages of this role: "+strings.Join(roleNames, ", "))
	completeFlag(cmd, "role", roleNames...)
	toolFlags(cmd, &h.tool, &h.failed)
}

// toolFlags adds --tool and --failed.
func toolFlags(cmd *cobra.Command, tool *string, failed *bool) {
	cmd.Flags().StringVar(tool, "tool", "", "only calls of the tool with this name, and their results")
	cmd.Flags().BoolVar(failed, "failed", false, "only calls whose result is an error")
}

func (h *hitFilter) check() error {
	if h.role != "" && !slices.Contains(roleNames, h.role) {
		return usagef("--role is one of %s, not %q", strings.Join(roleNames, ", "), h.role)
	}
	return nil
}

func (h *hitFilter) isSet() bool { return h.role != "" || h.tool != "" || h.failed }

// has reports whether the flags select an event.
func (h *hitFilter) has(e *event.Event) bool {
	if !h.isSet() {
		return true
	}
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		return false
	}
	role := string(m.Role)
	if e.IsContext() {
		role = contextRole
	}
	if h.role != "" && h.role != role {
		return false
	}
	return h.tool == "" && !h.failed || slices.ContainsFunc(m.Parts, h.hasPart)
}

// hasPart reports whether --tool and --failed select a part of a message.
func (h *hitFilter) hasPart(p event.Part) bool {
	switch p.Type {
	case event.ToolCallPart, event.ServerToolCallPart:
		if h.failed {
			return false
		}
	case event.ToolResultPart, event.ServerToolResultPart:
		if h.failed && !p.IsError {
			return false
		}
	default:
		return false
	}
	return h.tool == "" || strings.EqualFold(p.Name, h.tool)
}

// where selects the events of a search by all flags.
func (s *searchOptions) where(ctx context.Context, a *app, log *eventlog.Log, catalog *stats.Catalog) (func(*event.Event) bool, error) {
	var among map[string]bool // sessions; nil for all
	if s.source != "" || s.cwd != "" {
		var ids []string
		if s.session != "" {
			ids = []string{s.session}
		}
		rows, err := s.filter.sessions(ctx, a, log, ids)
		if err != nil {
			return nil, err
		}
		among = map[string]bool{}
		for _, row := range rows {
			among[row.ID] = true
		}
	}
	used := modelUse{ctx: ctx, log: log, catalog: catalog, filter: &s.filter, known: map[string]bool{}}
	return func(e *event.Event) bool {
		session := e.SessionID
		if s.session != "" {
			session = s.session // its ancestors are a part of it
		}
		return s.filter.has(e.Timestamp) && (among == nil || among[session]) && s.hitFilter.has(e) && used.in(session)
	}, nil
}

// modelUse reports which sessions used a model of --model. It loads a summary once.
type modelUse struct {
	ctx     context.Context
	log     *eventlog.Log
	catalog *stats.Catalog
	filter  *filter

	mu    sync.Mutex
	known map[string]bool
}

// in reports whether a session used the model. An unreadable session did not.
func (u *modelUse) in(session string) bool {
	if u.filter.model == "" {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if used, known := u.known[session]; known {
		return used
	}
	used := u.load(session)
	u.known[session] = used
	return used
}

func (u *modelUse) load(session string) bool {
	head, err := u.log.Head(u.ctx, session)
	if err != nil {
		return false
	}
	all, err := u.catalog.Load(u.ctx, []stats.Listed{{Session: session, Head: head}})
	return err == nil && all[0].Err == nil && usesModel(&all[0], u.filter.hasModel)
}

// usesModel reports whether a session used a model.
func usesModel(s *stats.Summary, is func(name string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.ByModel)), is)
}
