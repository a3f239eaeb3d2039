package codex

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
)

// header is a parsed session_meta.
type header struct {
	id         string
	at         time.Time
	forkedFrom string
	// base says that the file of a fork has none of the lines that it shares with its parent.
	base base
	// spawnedBy is the session that called this sub-agent.
	spawnedBy string
	cwd       string
	version   string
	labels    map[string]string
}

// base is the history_base of a fork: it shares the lines of a session before an ordinal.
type base struct {
	Session string `json:"thread_id"`
	End     int64  `json:"end_ordinal_exclusive"`
}

func headerOf(l *line) header {
	var p struct {
		ID           string         `json:"id"`
		ForkedFrom   string         `json:"forked_from_id"`
		Base         base           `json:"history_base"`
		Parent       string         `json:"parent_thread_id"`
		CWD          string         `json:"cwd"`
		Version      string         `json:"cli_version"`
		Originator   string         `json:"originator"`
		Provider     string         `json:"model_provider"`
		Nickname     string         `json:"agent_nickname"`
		Role         string         `json:"agent_role"`
		ThreadSource string         `json:"thread_source"`
		Source       jsontext.Value `json:"source"`
		Git          struct {
			Branch     string `json:"branch"`
			Commit     string `json:"commit_hash"`
			Repository string `json:"repository_url"`
		} `json:"git"`
	}
	l.decode(&p)
	origin, spawner := sourceOf(p.Source)
	h := header{id: p.ID, at: l.at, forkedFrom: cmp.Or(p.Base.Session, p.ForkedFrom), base: p.Base, spawnedBy: cmp.Or(spawner, p.Parent), cwd: p.CWD, version: p.Version}
	if h.id == "" {
		h.id = l.text("id")
	}
	h.labels = withoutEmpty(map[string]string{
		"originator": p.Originator, providerLabel: p.Provider, "agent_nickname": p.Nickname, "agent_role": p.Role,
		"source": cmp.Or(origin, p.ThreadSource), "git_branch": p.Git.Branch, "git_commit": p.Git.Commit,
		"git_repository": p.Git.Repository, "forked_from": p.ForkedFrom,
	})
	return h
}

// sourceOf parses the source: the name of a program, or the session that called a
// sub-agent.
func sourceOf(v jsontext.Value) (origin, spawner string) {
	if s, ok := rawjson.Text(v); ok {
		return s, ""
	}
	source := member(v, "subagent")
	if source == nil {
		return "", ""
	}
	spawner, _ = rawjson.Text(member(member(source, "thread_spawn"), "parent_thread_id"))
	if kind, ok := rawjson.Text(source); ok {
		return "subagent:" + kind, spawner
	}
	return "subagent", spawner
}

// withoutEmpty removes empty labels.
func withoutEmpty(labels map[string]string) map[string]string {
	for name, text := range labels {
		if text == "" {
			delete(labels, name)
		}
	}
	return labels
}

// parent is the id of the parent session; empty if there is none.
func (h *header) parent() string { return cmp.Or(h.forkedFrom, h.spawnedBy) }

// hasCopies reports whether the file begins with copies of the lines of its parent.
func (h *header) hasCopies() bool { return h.forkedFrom != "" && h.base.Session == "" }

// source describes the import in session_started.
func (h *header) source(rec *records.Record) event.SessionSource {
	return event.SessionSource{Format: formatName, Version: h.version, Path: rec.Origin(0).Source, SessionID: h.id}
}

// ownTurn reports whether a turn belongs to this session and is not a copy. If the ids
// are time-ordered, a turn of this session has an id after the session id. Otherwise the
// timestamp decides: Codex writes all copies within a second of the header.
func (h *header) ownTurn(id string, at time.Time) bool {
	if isTimeOrdered(id) && isTimeOrdered(h.id) {
		return id >= h.id
	}
	return at.Sub(h.at) > time.Second
}

// isTimeOrdered reports whether an id is a UUID of version 7.
func isTimeOrdered(id string) bool { return len(id) == 36 && id[14] == '7' }
