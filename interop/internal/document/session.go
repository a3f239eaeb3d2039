package document

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/trail"
)

// start is the seq of the first event of a session.
const start = 1

// session is a session of the log that items are added to.
type session struct {
	*interop.Session
	trail *trail.Trail
	// said is what the messages of the log say, by seq.
	said map[int64]event.Digest
	// compactions are those of the log, by seq.
	compactions map[int64]event.Compaction
	// spent is what its events tell of models.
	spent []spending
	title string
	// erased: what it says of itself was redacted, and is not to come back.
	erased   bool
	settings Settings
	// untold: what some of its events told of models was redacted.
	untold bool
}

// spending is what an event tells.
type spending struct {
	seq   int64
	usage event.Usage
	cost  event.Cost
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{
		trail: trail.New(), said: map[int64]event.Digest{}, settings: Settings{}, compactions: map[int64]event.Compaction{},
	}
	opened, err := interop.OpenSession(ctx, log, id, s.remember)
	s.Session = opened
	return s, err
}

// remember takes in an event that the log holds.
func (s *session) remember(e *event.Event) error {
	if err := s.trail.Remember(e); err != nil {
		return err
	}
	if e.Redacted() {
		s.erased = s.erased || e.Type.Name() == event.SessionStarted
		s.untold = s.untold || e.Type.Name() == event.MessageAdded || e.Type.Name() == event.StepCompleted
		return nil
	}
	if about, ok, err := event.Decode[event.Session](e); ok || err != nil {
		if err == nil {
			s.title = cmp.Or(about.Title, s.title)
			_, err = s.settled(about.Extra)
		}
		return err
	}
	return s.heard(e)
}

// heard takes in what an event says and tells.
func (s *session) heard(e *event.Event) error {
	if c, ok, err := event.Decode[event.Compaction](e); ok || err != nil {
		s.compactions[e.Seq] = c
		return err
	}
	told := spending{seq: e.Seq, cost: e.Cost}
	if step, ok, err := event.Decode[event.StepCompletion](e); err != nil {
		return err
	} else if ok {
		told.usage = step.Usage
	}
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		return err
	}
	if ok {
		told.usage = m.Usage
		if s.said[e.Seq], err = saying(e); err != nil {
			return err
		}
	}
	if told.cost != 0 || !told.usage.IsZero() {
		s.spent = append(s.spent, told)
	}
	return nil
}

// settled reports whether the session knows the settings, which it does from
// then on.
func (s *session) settled(settings jsontext.Value) (known bool, err error) {
	if s.erased {
		return true, nil
	}
	return s.settings.Know(settings)
}

// taken is what was spent on the active path.
func (s *session) taken() (sum Spent) {
	for _, told := range s.spent {
		if s.trail.Holds(told.seq) {
			sum.Usage = sum.Usage.Add(told.usage)
			sum.Cost = sum.Cost.Add(told.cost)
		}
	}
	return sum
}

// add adds an event to the path.
func (s *session) add(key interop.Key, it *Item, e event.Event) (int64, error) {
	e.Cost = it.Cost
	seq := s.Add(key, it.At, e)
	e.Seq = seq
	s.trail.Grow(seq, e.Type)
	return seq, s.heard(&e)
}

// less is what of a is not in b; ok says that there is something.
func less(a, b Spent) (rest Spent, ok bool) {
	rest = Spent{Model: a.Model, Agent: a.Agent, Cost: max(0, a.Cost-b.Cost), Usage: event.Usage{
		InputTokens:      max(0, a.Usage.InputTokens-b.Usage.InputTokens),
		OutputTokens:     max(0, a.Usage.OutputTokens-b.Usage.OutputTokens),
		CacheReadTokens:  max(0, a.Usage.CacheReadTokens-b.Usage.CacheReadTokens),
		CacheWriteTokens: max(0, a.Usage.CacheWriteTokens-b.Usage.CacheWriteTokens),
		ReasoningTokens:  max(0, a.Usage.ReasoningTokens-b.Usage.ReasoningTokens),
	}}
	return rest, rest.Cost > 0 || !rest.Usage.IsZero()
}
