package runlog

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Episode is the result of a turn: the successful tool calls and the conclusion.
type Episode struct {
	// SessionID and Seq are the first event of the turn. TurnID and Index identify
	// the turn.
	SessionID string    `json:"session_id"`
	Seq       int64     `json:"seq"`
	TurnID    ulid.ULID `json:"turn_id,omitzero"`
	Index     int       `json:"index"`
	AgentID   string    `json:"agent_id,omitzero"`
	StartTime time.Time `json:"start_time"`
	EndTime   time.Time `json:"end_time"`
	// Question is the text of the user's messages. Conclusion is the text of the last
	// answer.
	Question   string        `json:"question,omitzero"`
	Conclusion string        `json:"conclusion"`
	Calls      []EpisodeCall `json:"calls,omitzero"`
	Cost       event.Cost    `json:"cost,omitzero"`
}

// EpisodeCall is a successful tool call.
type EpisodeCall struct {
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Result is the text of the result.
	Result string `json:"result,omitzero"`
}

// Episodes returns an episode for each turn of the active path that completed or was
// answered, in the run and in the runs of its children.
func (r *Run) Episodes() (episodes []Episode) {
	for _, t := range r.Turns {
		if t.Orphaned || t.Output == nil || t.Status == event.TurnStatusFailed {
			continue
		}
		episodes = append(episodes, t.episode(r.Session))
	}
	for op := range r.ops() {
		for _, c := range op.Children {
			if c.Run != nil {
				episodes = append(episodes, c.Run.Episodes()...)
			}
		}
	}
	return episodes
}

func (t *Turn) episode(session string) Episode {
	e := Episode{SessionID: session, Seq: t.From, TurnID: t.ID, Index: t.Index, AgentID: t.Agent, StartTime: t.Started,
		EndTime: t.Ended, Conclusion: t.Output.Text(), Cost: t.Spend.Cost}
	var asked []string
	for _, m := range t.Input {
		if text := m.Text(); m.Role == event.User && text != "" {
			asked = append(asked, text)
		}
	}
	e.Question = strings.Join(asked, "\n")
	for _, op := range t.Ops {
		if op.Kind != ToolOp || op.Status != OpOK || op.Orphaned {
			continue
		}
		e.Calls = append(e.Calls, EpisodeCall{Tool: op.Name, Arguments: op.Request, Result: resultText(op.Response)})
	}
	return e
}

// resultText returns the text of a tool result. A result that is no list of parts is
// returned as is.
func resultText(response jsontext.Value) string {
	var parts []event.Part
	if err := json.Unmarshal(response, &parts); err != nil {
		return string(response)
	}
	return event.Message{Parts: parts}.Text()
}

// Text returns the text to search an episode by: the conclusion, the question and the
// names of its tools.
func (e *Episode) Text() string {
	lines := []string{e.Conclusion, e.Question}
	for _, c := range e.Calls {
		lines = append(lines, c.Tool)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
