package gemini

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/sessions"
	"github.com/convlog/convlog/interop/internal/trail"
)

// startSeq is the seq of the first event of a session. The first message follows it.
const startSeq = 1

// session is a session of the file, with an index of its events.
type session struct {
	*sessions.Session
	// initialSeq is the seq of the newest event when the session was opened. matched is
	// true after a record of this file is found in the log.
	initialSeq int64
	matched    bool
	trail      *trail.Trail

	// header is the header of the file; nil if the log has it. held are the records
	// before the session begins.
	header *record
	held   []*record

	// lacksHeader says that the first file of the session had no readable header.
	lacksHeader bool

	titles map[string]bool // all titles that the session had

	// digests are the digests of messages by seq. usages are the token counts by message
	// id.
	digests map[int64]event.Digest
	masked  map[int64]bool // messages in which secrets were masked
	usages  map[string][]event.Usage

	// gists are the gists of messages by seq. callers are the ids of the messages with the
	// calls, by call id.
	gists   map[int64]event.Digest
	callers map[string]string
	told    told
	// tip is the newest message of the file so far. versions are the events of messages that
	// the program has written again with other words, by the name of the piece.
	tip      int64
	versions map[string]sessions.Match
	// reset is the list of context messages that the file has replaced the conversation with.
	// It counts when a message follows: a resume writes such a list, and then all messages.
	reset *setting

	// lastSeq is the seq that the next record follows. parents are the seqs that
	// messages follow, by message id.
	lastSeq int64
	parents map[string]int64
}

// openSession opens a session of the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{
		trail: trail.New(), lastSeq: startSeq, digests: map[int64]event.Digest{}, masked: map[int64]bool{}, usages: map[string][]event.Usage{},
		titles: map[string]bool{}, parents: map[string]int64{}, gists: map[int64]event.Digest{}, callers: map[string]string{}, versions: map[string]sessions.Match{},
		told: told{results: map[string]event.Digest{}},
	}
	opened, err := sessions.Open(ctx, log, id, s.restore)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	s.IsMessage = func(raw event.Type) bool { return raw == formatName+":user" || raw == formatName+":gemini" }
	return s, nil
}

// restore indexes an event of the log.
func (s *session) restore(e *event.Event) error {
	if err := s.trail.Remember(e); err != nil {
		return err
	}
	if _, ok := e.MetadataValue(mark.NoHeader); ok {
		s.lacksHeader = true
	}
	if e.Redacted() {
		return nil
	}
	if update, ok, err := event.Decode[event.Session](e); ok || err != nil {
		s.titles[update.Title] = true
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
	if e.Masked() {
		s.masked[e.Seq] = true
	}
	return nil
}

// says reports whether the message at seq has the content of a piece. The content of a masked
// message is unknown.
func (s *session) says(seq int64, p *piece) bool {
	return s.masked[seq] || s.digests[seq] == contentDigest(&p.m) || p.repeats && s.gists[seq] == gistOf(&p.m)
}

// indexMessage indexes the message at seq.
func (s *session) indexMessage(seq int64, m *event.Message) {
	id := m.Group
	if id == "" {
		id = messageID(m.Extra)
	}
	s.addUsage(id, m.Usage)
	s.digests[seq], s.gists[seq] = contentDigest(m), gistOf(m)
	for _, call := range m.ToolCalls() {
		s.callers[call.CallID] = m.Group
	}
}

// addUsage indexes the token counts of a message.
func (s *session) addUsage(id string, u event.Usage) {
	if !u.IsZero() {
		s.usages[id] = append(s.usages[id], u)
	}
}

// hasUsage reports whether the log has these token counts for a message.
func (s *session) hasUsage(id string, u event.Usage) bool {
	return slices.ContainsFunc(s.usages[id], func(v event.Usage) bool { return counters(u) == counters(v) })
}

// counters are the token counts of u.
func counters(u event.Usage) [4]int64 {
	return [4]int64{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.ReasoningTokens}
}

// messageID is the message id in an extra.
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

// contentDigest is a digest of a message without its tokens. A call counts without the
// extra that it has before its result.
func contentDigest(m *event.Message) event.Digest {
	message := *m
	message.Usage = event.Usage{}
	if extra, err := parts.Open(m.Extra); err == nil && extra.Take("tokens") != nil {
		message.Extra = extra.Rest()
	}
	if calls := m.ToolCalls(); len(calls) == 1 && len(m.Parts) == 1 {
		calls[0].Extra = nil
		message.Parts = calls
	}
	b, err := json.Marshal(message, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return ""
	}
	return event.DigestOf(b)
}

// conflict returns the reason why a new record cannot be added to the session; empty if
// it can. A file holds its session from the start, so one of its records must be in the
// log.
func (s *session) conflict() (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched:
		return ""
	case !s.From(formatName):
		return "the session was not imported from Gemini CLI"
	}
	return "the session in the log begins with other records"
}
