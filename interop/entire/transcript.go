package entire

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/records"
)

// transcript is a file.
type transcript struct {
	lines []records.Record
}

// collect yields the rejected records, then the first line. The first line represents
// the whole file.
func (t *transcript) collect(src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range records.Records(src) {
			if err == nil {
				t.lines = append(t.lines, rec.Clone())
			} else if !yield(rec, err) {
				return
			}
		}
		if len(t.lines) > 0 {
			yield(t.lines[0], nil)
		}
	}
}

// read returns the session of the file.
func (t *transcript) read(f *document.File, rec *records.Record) ([]document.Session, error) {
	first := lineOf(rec)
	translator := translator{agent: first.agent(), cli: first.Peek("cli_version")}
	for i := range t.lines {
		translator.line(&t.lines[i])
	}
	return []document.Session{{
		ID: first.sessionID(f), FallbackID: f.Session(""), Version: version, Rec: rec, At: first.at, Items: translator.items, Totals: translator.spent,
		About: event.Session{Agent: translator.agent, Extra: about(translator.cli)}, LateResults: true,
	}}, nil
}

// about returns the extra of the session; nil if it is empty.
func about(cli jsontext.Value) jsontext.Value {
	if cli == nil {
		return nil
	}
	return rawjson.NonEmpty([]rawjson.Member{{Name: "cli_version", Value: cli}})
}
