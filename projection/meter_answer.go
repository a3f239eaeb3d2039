package projection

import (
	"cmp"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// answer is the usage that was counted for an answer of a model.
type answer struct {
	ID string `json:"id"`
	// Response is the provider's id, if there is one.
	Response string      `json:"response,omitzero"`
	Model    string      `json:"model,omitzero"`
	Agent    string      `json:"agent,omitzero"`
	Turn     ulid.ULID   `json:"turn,omitzero"`
	Usage    event.Usage `json:"usage,omitzero"`
	// Seq is the seq of the first event. Priced reports whether an event of the
	// answer has a cost.
	Seq       int64 `json:"seq"`
	Priced    bool  `json:"priced,omitzero"`
	Inherited bool  `json:"inherited,omitzero"`
	// Stepped is the time of the step that began the answer, until a message follows.
	Stepped time.Time `json:"stepped,omitzero"`

	uncharged bool // no charge has counted the answer
}

// charged is the spend that the charges of the answer add up to, without costs.
func (a *answer) charged() (s Spend) {
	if a.uncharged {
		return s
	}
	s.Usage, s.Responses = a.Usage, 1
	switch {
	case a.isUnknown():
		s.Unknown = 1
	case !a.Priced:
		s.Unpriced = 1
	}
	return s
}

// isUnknown reports whether the answer has no tokens and no cost.
func (a *answer) isUnknown() bool { return a.Usage.IsZero() && !a.Priced }

// answer returns the answer with the id, or adds it. Inherited answers and own
// answers are separate.
func (r *meterEvent) answer(id, model string) *answer {
	if a := r.find(func(a *answer) bool { return a.ID == id && a.Inherited == r.inherited }); a != nil {
		return a
	}
	return r.Meter.add(answer{ID: id, Model: model, Agent: r.Agent, Turn: r.Turn, Seq: r.e.Seq, Inherited: r.inherited, uncharged: true})
}

func (r *meterEvent) message() error {
	m, err := event.DecodeKept[event.Message](r.e)
	if err != nil {
		return err
	}
	if m.Usage.IsZero() && (m.Role != event.Assistant || r.e.Cost == 0 && r.Flow && m.Model == "" && m.Group == "" && m.ResponseID == "") {
		r.cost(m.Model)
		return nil
	}
	id := fmt.Sprintf("message %d", r.e.Seq)
	switch n := len(r.Steps); {
	case m.Group != "": // redaction keeps the group
		id = "group " + m.Group
	case m.ResponseID != "":
		id = "response " + m.ResponseID
	case n > 0:
		id, m.Model = r.Steps[n-1].id(), cmp.Or(m.Model, r.Steps[n-1].Model)
	}
	if m.Usage.IsZero() {
		r.claimStep(id)
	}
	a := r.answer(id, m.Model)
	if m.ResponseID != "" {
		a.Response = m.ResponseID
	}
	r.count(a, m.Usage)
	return nil
}

// unknown returns the newest answer of the turn, if its usage is unknown and the agent is
// no other one; else nil. An answer without a model becomes an answer of the model.
func (r *meterEvent) unknown(agent, model string) *answer {
	n := len(r.Answers) - 1
	if n < 0 || !r.Answers[n].isUnknown() || r.Answers[n].Inherited != r.inherited || r.Answers[n].Turn != r.Turn ||
		agent != "" && r.Answers[n].Agent != agent {
		return nil
	}
	a := &r.Answers[n]
	if a.Model == "" && model != "" {
		r.charge(Charge{Spend: Spend{}.sub(a.charged()), Agent: a.Agent, Turn: a.Turn})
		a.Model, a.uncharged = model, true
	}
	return a
}
