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
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/runlog/stats"
)

// hitFilter is the flags of search that select messages.
type hitFilter struct {
	role   string
	tool   string
	failed bool
	file   string
}

// contextRole is the --role of texts that programs wrote in the user's name.
const contextRole = "context"

// roleNames are the values of --role.
var roleNames = []string{string(event.User), string(event.Assistant), string(event.Tool), string(event.System), contextRole}

func (h *hitFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.role, "role", "", "only messages of this role: "+strings.Join(roleNames, ", "))
	completeFlag(cmd, "role", roleNames...)
	toolFlags(cmd, &h.tool, &h.failed)
	fileFlag(cmd, &h.file)
}

// toolFlags adds --tool and --failed.
func toolFlags(cmd *cobra.Command, tool *string, failed *bool) {
	cmd.Flags().StringVar(tool, "tool", "", "only calls of the tool with this name, and their results")
	cmd.Flags().BoolVar(failed, "failed", false, "only calls whose result is an error")
}

func (h *hitFilter) check() error {
	switch {
	case h.role != "" && !slices.Contains(roleNames, h.role):
		return usagef("--role is one of %s, not %q", strings.Join(roleNames, ", "), h.role)
	case h.file != "" && h.failed:
		return usagef("--file selects calls, and --failed results: logtool calls --failed lists both")
	}
	return nil
}

func (h *hitFilter) isSet() bool { return h.role != "" || h.tool != "" || h.failed || h.file != "" }

// fileWord is a word that every call with the file of --file has: the last name of the path. It
// is empty for a folder: the folder of the session may be below it.
func (h *hitFilter) fileWord() string {
	name := h.file[strings.LastIndexAny(h.file, `/\`)+1:]
	if name == "" || strings.Contains(name, `"`) {
		return ""
	}
	return `"` + name + `"`
}

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
	if s.Source != "" || s.CWD != "" {
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
	known := sessionFacts{ctx: ctx, log: log, catalog: catalog, known: map[string]*stats.Summary{}}
	return func(e *event.Event) bool {
		session := e.SessionID
		if s.session != "" {
			session = s.session // its ancestors are a part of it
		}
		if !s.filter.Has(e.Timestamp) || among != nil && !among[session] || !s.hitFilter.has(e) {
			return false
		}
		return (s.Model == "" || usesModel(known.of(session), s.HasModel)) && (s.file == "" || s.hasFile(e, known.of(e.SessionID)))
	}, nil
}

// hasFile reports whether an event calls a tool with the file of --file. about is the session
// of the event.
func (h *hitFilter) hasFile(e *event.Event, about *stats.Summary) bool {
	m, ok, err := event.Decode[event.Message](e)
	return ok && err == nil && formats.FileTools(about.Source).Names(&m, about.CWD, h.file)
}

// sessionFacts has the summaries of sessions. It loads a summary once.
type sessionFacts struct {
	ctx     context.Context
	log     *eventlog.Log
	catalog *stats.Catalog

	mu    sync.Mutex
	known map[string]*stats.Summary
}

// of is the summary of a session; an empty one if the session is unreadable.
func (f *sessionFacts) of(session string) *stats.Summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[session] == nil {
		f.known[session] = f.load(session)
	}
	return f.known[session]
}

func (f *sessionFacts) load(session string) *stats.Summary {
	head, err := f.log.Head(f.ctx, session)
	if err != nil {
		return &stats.Summary{}
	}
	s, err := f.catalog.Load(f.ctx, session, head)
	if err != nil {
		return &stats.Summary{}
	}
	return &s
}

// usesModel reports whether a session used a model.
func usesModel(s *stats.Summary, is func(name string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.ByModel)), is)
}
