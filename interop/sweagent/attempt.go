package sweagent

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// attemptsName is the member with the attempts of a run. The document around it
// repeats the best attempt.
const attemptsName = "attempts"

// startName is the item that attempts follow. No item has this name, so attempts
// follow the start of the session.
const startName = "the start"

// bestOf returns the index of the best attempt; -1 if there is none.
func bestOf(info jsontext.Value) int {
	fields := struct {
		Best *int `json:"best_attempt_idx"`
	}{}
	if len(info) == 0 || json.Unmarshal(info, &fields) != nil || fields.Best == nil {
		return -1
	}
	return *fields.Best
}

// withAttempts puts the items of the other attempts before the items of the best
// attempt. Each attempt is a branch from the start.
func withAttempts(attempts []records.Record, best int, bestItems []document.Item) (all []document.Item, err error) {
	if len(attempts) == 0 {
		return bestItems, nil
	}
	for i := range attempts {
		if i == best && len(bestItems) > 0 {
			continue
		}
		items, err := attempt(&attempts[i])
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	if len(bestItems) > 0 {
		bestItems[0].After, bestItems[0].Label = startName, "the best attempt"
	}
	return append(all, bestItems...), nil
}

// attempt returns the items of an attempt. Its members besides history and trajectory
// are stored raw at the end.
func attempt(rec *records.Record) ([]document.Item, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return []document.Item{document.Raw(*rec, "attempt")}, nil
	}
	t, err := translatorOf(rec, &o)
	if err != nil {
		return nil, err
	}
	t.model, t.finished = configOf(o.Peek("replay_config")).Agent.Model.Name, isFinished(o.Peek("info"))
	if err := t.translate(); err != nil {
		return nil, err
	}
	if rest := o.Rest(); rest != nil {
		t.items = append(t.items, document.Raw(document.Subrecord(rec, rest), "attempt"))
	}
	if len(t.items) > 0 {
		t.items[0].After, t.items[0].Label = startName, "another attempt"
	}
	return t.items, nil
}
