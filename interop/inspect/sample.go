package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// evaluation holds the data that all samples share.
type evaluation struct {
	task struct {
		Run   string `json:"run_id"`
		Name  string `json:"task"`
		ID    string `json:"task_id"`
		Model string `json:"model"`
	}
	started string
	about   []rawjson.Member // version, status, eval and plan
}

// open takes the shared data out of a log.
func (e *evaluation) open(o *parts.Members) error {
	if !o.Has("eval") || json.Unmarshal(o.Peek("eval"), &e.task) != nil {
		return document.ErrShape
	}
	e.started = startOf(o.Peek("stats"))
	for _, name := range []string{"version", "status", "eval", "plan"} {
		if v := o.Take(name); v != nil {
			e.about = append(e.about, rawjson.Member{Name: name, Value: v})
		}
	}
	return nil
}

// read returns the samples of a log.
func read(_ *document.File, rec *records.Record) (all []document.Session, err error) {
	o, err := parts.Open(rec.Value)
	var e evaluation
	if err != nil || e.open(&o) != nil {
		return nil, document.ErrShape
	}
	var samples []records.Record
	if v := o.Take("samples"); v != nil && v.Kind() != 'n' {
		if samples, err = document.Elements(rec, v); err != nil {
			return nil, document.ErrShape
		}
	}
	for i := range samples {
		s, err := e.sample(&samples[i])
		if err != nil {
			s = document.Session{Rec: &samples[i], Rejected: err}
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return []document.Session{{Rec: rec, ID: e.name("", "")}}, nil
	}
	addResults(&all[0], rec, o.Rest())
	return all, nil
}

// addResults adds the results of the evaluation to its first sample.
func addResults(s *document.Session, rec *records.Record, rest jsontext.Value) {
	if rest == nil || len(s.Items) == 0 {
		return
	}
	results := document.Raw(document.Subrecord(rec, rest), "log")
	results.Anywhere = true
	s.Items = append(s.Items, results)
}

// startOf returns the start time of an evaluation.
func startOf(stats jsontext.Value) string {
	o, err := parts.Open(stats)
	if err != nil {
		return ""
	}
	return o.Maybe("started_at")
}

// name returns the session id of a sample without a uuid.
func (e *evaluation) name(id, epoch string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.task.Run, e.task.ID, e.task.Name, id, epoch}, "\x00")))
	return document.Name(e.task.Name+"-"+id+"-"+epoch) + "-" + hex.EncodeToString(sum[:4])
}

// sampleHeader holds the members of a sample besides messages and events.
type sampleHeader struct {
	ID      jsontext.Value            `json:"id"`
	Epoch   jsontext.Value            `json:"epoch"`
	UUID    string                    `json:"uuid"`
	Started string                    `json:"started_at"`
	Attach  map[string]string         `json:"attachments"`
	Used    map[string]jsontext.Value `json:"model_usage"`
	Output  struct {
		Usage jsontext.Value `json:"usage"`
	} `json:"output"`
}

// sample converts a sample into a session.
func (e *evaluation) sample(rec *records.Record) (s document.Session, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || !o.Has("messages") {
		return s, document.ErrShape
	}
	var h sampleHeader
	if json.Unmarshal(rec.Value, &h) != nil {
		return s, document.ErrShape
	}
	s.Rec, s.ID, s.Own = rec, e.name(plain(h.ID), plain(h.Epoch)), h.UUID
	if h.UUID != "" {
		s.ID = h.UUID
	}
	messages, err := document.Elements(rec, o.Take("messages"))
	if err != nil {
		return s, document.ErrShape
	}
	events, err := eventsOf(rec, &o)
	if err != nil {
		return s, document.ErrShape
	}
	known := factsOf(events)
	s.At = known.start(h.Started, e.started)
	c := converter{model: e.task.Model, attachments: h.Attach, answers: known.answers, names: map[string]string{}}
	for i := range messages {
		s.Items = append(s.Items, c.item(&messages[i]))
	}
	known.date(s.Items, c.ids)
	s.Totals = h.spent(e.task.Model)
	for i := range events {
		it := document.Raw(events[i], known.kinds[i])
		it.At = known.times[i]
		s.Items = append(s.Items, it)
	}
	if v := o.Take("attachments"); len(h.Attach) > 0 {
		s.Items = append(s.Items, document.Raw(document.Subrecord(rec, v), "attachments"))
	}
	about := e.about[:len(e.about):len(e.about)]
	if rest := o.Rest(); rest != nil {
		about = append(about, rawjson.Member{Name: "sample", Value: rest})
	}
	s.About = event.Session{Agent: e.task.Name, Extra: rawjson.NonEmpty(about)}
	return s, nil
}

func plain(v jsontext.Value) string {
	if text, ok := rawjson.Text(v); ok {
		return text
	}
	return string(v)
}

// eventsOf takes the events of a sample. Older logs have them in the sample's
// transcript.
func eventsOf(rec *records.Record, o *parts.Members) ([]records.Record, error) {
	if v := o.Peek("events"); v.Kind() == '[' {
		return document.Elements(rec, o.Take("events"))
	}
	transcript, err := parts.Open(o.Peek("transcript"))
	if err != nil || transcript.Peek("events").Kind() != '[' {
		return nil, nil
	}
	events, err := document.Elements(rec, transcript.Take("events"))
	o.Take("transcript")
	if rest := transcript.Rest(); rest != nil {
		o.Put("transcript", rest)
	}
	return events, err
}

// spent returns the tokens of the sample.
func (h *sampleHeader) spent(model string) (s document.Totals) {
	for name, v := range h.Used {
		s.Usage = s.Usage.Add(usageOf(v))
		if s.Model = name; len(h.Used) > 1 {
			s.Model = ""
		}
	}
	if len(h.Used) == 0 {
		s = document.Totals{Model: model, Usage: usageOf(h.Output.Usage)}
	}
	return s
}

// usageOf parses token counts. The members are named as in Anthropic's API, except
// for the cache.
func usageOf(v jsontext.Value) (u event.Usage) {
	var counts struct {
		Read      *int64 `json:"input_tokens_cache_read"`
		Written   *int64 `json:"input_tokens_cache_write"`
		Reasoning *int64 `json:"reasoning_tokens"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &counts) != nil {
		return u
	}
	u, _ = parts.Usage(v)
	for _, c := range []struct {
		to   *int64
		from *int64
	}{{&u.CacheReadTokens, counts.Read}, {&u.CacheWriteTokens, counts.Written}, {&u.ReasoningTokens, counts.Reasoning}} {
		if c.from != nil {
			*c.to = max(0, *c.from)
		}
	}
	u.Extra = nil
	return u
}
