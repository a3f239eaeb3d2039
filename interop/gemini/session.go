package gemini

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/trail"
)

// start is the seq of the first event of a session, which the first message
// follows.
const startSeq = 1

// session is a session that records are added to.
type session struct {
	*interop.Session
	// found is how many events the log held; matched, that records of this file
	// are among them.
	initialSeq int64
	matched    bool
	trail      *trail.Trail

	// header is that of the file, while the log does not have it; held are records
	// before the session begins.
	header *record
	held   []*record

	title string
	// erased: what it said of itself was redacted, and is not to come back; redacted
	// are the seqs of messages of which the same holds.
	startRedacted bool
	redacted      map[int64]bool

	// said are digests of the messages that the log has, by their seqs; used what
	// was counted for answers, by the ids of their messages.
	digests map[int64]event.Digest
	usages  map[string][]event.Usage

	// last is the seq that the next record of the file follows; before are those
	// that its messages follow, by their ids.
	lastSeq int64
	parents map[string]int64
	// seen counts equal records of the file.
	occurrences map[event.Digest]int
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{
		trail: trail.New(), lastSeq: startSeq, digests: map[int64]event.Digest{}, usages: map[string][]event.Usage{},
		redacted: map[int64]bool{}, parents: map[string]int64{}, occurrences: map[event.Digest]int{},
	}
	opened, err := interop.OpenSession(ctx, log, id, s.restore)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	return s, nil
}

// remember takes in an event that the log holds.
func (s *session) restore(e *event.Event) error {
	if err := s.trail.Remember(e); err != nil {
		return err
	}
	if e.Redacted() {
		s.redacted[e.Seq] = true
		s.startRedacted = s.startRedacted || e.Type == event.SessionStarted || e.Type == event.SessionUpdated
		return nil
	}
	if update, ok, err := event.Decode[event.Session](e); ok || err != nil {
		s.title = cmp.Or(update.Title, s.title)
		return err
	}
	if step, ok, err := event.Decode[event.StepCompletion](e); ok || err != nil {
		s.addUsage(step.ResponseID, step.Usage)
		return err
	}
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		return err
	}
	s.indexMessage(e.Seq, &m)
	return nil
}

// heard takes in that the message at seq is in the log.
func (s *session) indexMessage(seq int64, m *event.Message) {
	id := m.Group
	if id == "" {
		id = messageID(m.Extra)
	}
	s.addUsage(id, m.Usage)
	s.digests[seq] = contentDigest(m)
}

// count takes in what was counted for an answer.
func (s *session) addUsage(id string, u event.Usage) {
	if !u.IsZero() {
		s.usages[id] = append(s.usages[id], u)
	}
}

// counted reports whether that was counted for an answer.
func (s *session) hasUsage(id string, u event.Usage) bool {
	return slices.ContainsFunc(s.usages[id], func(v event.Usage) bool { return counters(u) == counters(v) })
}

// tokens are the counters of u.
func counters(u event.Usage) [4]int64 {
	return [4]int64{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.ReasoningTokens}
}

// idIn is the id of the message that an extra is of.
func messageID(extra jsontext.Value) string {
	var message struct {
		ID jsontext.Value `json:"id"`
	}
	if len(extra) == 0 || json.Unmarshal(extra, &message) != nil {
		return ""
	}
	id, _ := rawjson.Text(message.ID)
	return id
}

// content is a digest of what a message says: without what is counted, and what
// is told of a call before it has a result.
func contentDigest(m *event.Message) event.Digest {
	said := *m
	said.Usage = event.Usage{}
	if calls := m.ToolCalls(); len(calls) == 1 && len(m.Parts) == 1 {
		calls[0].Extra = nil
		said.Parts = calls
	}
	b, err := json.Marshal(said, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return ""
	}
	return event.DigestOf(b)
}

// parts says why a record that the session does not have cannot be added to it,
// if so. A file holds its session from the start.
func (s *session) conflict() (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched:
		return ""
	case !s.From(Name):
		return "the session was not imported from Gemini CLI"
	}
	return "the session begins otherwise"
}
