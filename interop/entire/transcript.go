package entire

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
)

// transcript is a file.
type transcript struct {
	lines []interop.Record
}

// gathered yields what cannot be read, and then the first line, which stands for all.
func (t *transcript) gathered(src interop.Source) iter.Seq2[interop.Record, error] {
	return func(yield func(interop.Record, error) bool) {
		for rec, err := range interop.Records(src) {
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

// read reads all lines.
func (t *transcript) read(f *document.File, rec *interop.Record) ([]document.Session, error) {
	first := lineOf(rec)
	teller := teller{agent: first.agent(), cli: first.Peek("cli_version")}
	for i := range t.lines {
		teller.line(&t.lines[i])
	}
	return []document.Session{{
		ID: first.session(f), Version: version, Rec: rec, At: first.at, Items: teller.items, Spent: teller.spent,
		About: event.Session{Agent: teller.agent, Extra: about(teller.cli)},
	}}, nil
}

// about is what is told of the session beside its lines; nil if nothing is.
func about(cli jsontext.Value) jsontext.Value {
	if cli == nil {
		return nil
	}
	return rawjson.NonEmpty([]rawjson.Member{{Name: "cli_version", Value: cli}})
}
