package formats_test

import (
	"bytes"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

var matchTexts = flag.Int("match.texts", testsize.Pick(1, 1, 8), "how many texts TestMatchLeavesNothing erases, by format and store")

// kinds open a log of each kind in a folder.
var kinds = map[string]func(dir string) *eventlog.Log{
	"jsonl": func(dir string) *eventlog.Log {
		return eventlog.Open(jsonl.New(dir), eventlog.Options{SpillOver: 2000})
	},
	"sqlite": func(dir string) *eventlog.Log {
		return eventlog.Open(sqlite.New(filepath.Join(dir, "s.db")), eventlog.Options{SpillOver: 2000})
	},
}

// Law: after erase.Match of any text that an import has stored anywhere, no file of the
// store has any form of it, and neither has a backup. A second import and conversions in
// both directions do not bring it back. All other events are equal byte for byte.
func TestMatchLeavesNothing(t *testing.T) {
	for i, format := range formats.All() {
		for k, kind := range slices.Sorted(maps.Keys(kinds)) {
			if !testsize.Every(i+k, 2) {
				continue
			}
			t.Run(format.Name()+"/"+kind, func(t *testing.T) {
				t.Parallel()
				m := matching{T: t, format: format, open: kinds[kind], full: t.TempDir(), folder: copied(t, format)}
				m.folder.Write(t, importtest.Unchanged)
				m.with(m.full, func(log *eventlog.Log) { importtest.Files(t, log, format, m.folder.Path) })
				texts := m.texts()
				rand.New(rand.NewPCG(7, uint64(len(texts)))).Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
				tested := 0
				for _, text := range texts {
					if tested == *matchTexts {
						break
					}
					if m.erase(text) {
						tested++
					}
				}
				if tested == 0 {
					t.Errorf("no text of %d is tested", len(texts))
				}
			})
		}
	}
}

// matching tests one format on one kind of store.
type matching struct {
	*testing.T
	format interop.Format
	open   func(dir string) *eventlog.Log
	full   string // the folder of the imported log
	folder *importtest.Folder
}

func (m *matching) with(dir string, fn func(log *eventlog.Log)) {
	m.Helper()
	log := m.open(dir)
	fn(log)
	m.must(log.Close())
}

func (m *matching) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// texts are parts of the strings that the log stores in any member.
func (m *matching) texts() (texts []string) {
	m.with(m.full, func(log *eventlog.Log) {
		for e := range m.events(log) {
			for _, value := range []jsontext.Value{e.Metadata, e.Data} {
				dec := jsontext.NewDecoder(bytes.NewReader(value))
				for {
					token, err := dec.ReadToken()
					if err != nil {
						break
					}
					text := []rune(token.String())
					if _, n := dec.StackIndex(dec.StackDepth()); token.Kind() == '"' && n%2 == 0 && len(text) >= 10 {
						texts = append(texts, string(text[len(text)/3:min(len(text), len(text)/3+40)]))
					}
				}
			}
		}
	})
	slices.Sort(texts)
	return slices.Compact(texts)
}

// events yields all events of a log, with their data.
func (m *matching) events(log *eventlog.Log) func(yield func(event.Event) bool) {
	return func(yield func(event.Event) bool) {
		for info, err := range log.Sessions(m.Context()) {
			m.must(err)
			for e, err := range log.Read(m.Context(), info.ID, eventlog.All()) {
				m.must(err)
				if e.SessionID == info.ID && !yield(e) {
					return
				}
			}
		}
	}
}

// erase tests the law for one text. It returns false for a text that a redaction keeps,
// or that is in the name of a file.
func (m *matching) erase(text string) bool {
	pattern, err := search.Literal(text)
	if err != nil || bytes.Contains([]byte(m.folder.Path), []byte(text)) {
		return false
	}
	work, other := m.copyOf(m.full), m.copyOf(m.full)
	kept := false
	m.with(work, func(log *eventlog.Log) {
		before := m.lines(log)
		plan, err := erase.Match(m.Context(), log, pattern, nil, erase.RedactOptions{DryRun: true})
		m.must(err)
		if kept = len(plan.Left) > 0; kept {
			return
		}
		done, err := erase.Match(m.Context(), log, pattern, nil)
		m.must(err)
		if len(done.Erased) == 0 || len(done.Files) > 0 {
			m.Errorf("%q: erased %v, left in %v", text, done.Erased, done.Files)
		}
		m.sameOtherLines(before, m.lines(log), done.Erased)
		importtest.Files(m.T, log, m.format, m.folder.Path)
		m.with(other, func(full *eventlog.Log) {
			m.convert(log, full)
			m.convert(full, log)
			m.verified(full)
		})
		m.verified(log)
		m.with(filepath.Join(work, "backup"), func(backup *eventlog.Log) { m.convert(backup, log) })
	})
	if kept {
		return false
	}
	m.clean(work, text)
	m.clean(other, text)
	return !m.Failed()
}

func (m *matching) copyOf(dir string) string {
	m.Helper()
	to := m.TempDir()
	m.must(os.CopyFS(to, os.DirFS(dir)))
	return to
}

// lines are the stored lines by session and seq.
func (m *matching) lines(log *eventlog.Log) map[erase.EventRef]string {
	lines := map[erase.EventRef]string{}
	for e := range m.events(log) {
		lines[erase.EventRef{Session: e.SessionID, Seq: e.Seq, Type: e.Type}] = string(e.Line())
	}
	return lines
}

func (m *matching) sameOtherLines(before, after map[erase.EventRef]string, erased []erase.EventRef) {
	m.Helper()
	for ref, line := range before {
		if after[ref] != line && !slices.Contains(erased, ref) {
			m.Errorf("%v has changed and is not listed", ref)
		}
	}
}

func (m *matching) convert(dst, src *eventlog.Log) {
	m.Helper()
	for result, err := range transfer.Convert(m.Context(), dst, src, transfer.Options{ApplyRedactions: true}) {
		if err != nil {
			m.Errorf("convert %q: %v", result.Session, err)
		}
	}
}

func (m *matching) verified(log *eventlog.Log) {
	m.Helper()
	for info, err := range log.Sessions(m.Context()) {
		m.must(err)
		report, err := verify.Session(m.Context(), log, info.ID)
		m.must(err)
		for _, d := range report.Defects {
			m.Error(d)
		}
	}
}

// clean checks that no file below a folder has a form of the text.
func (m *matching) clean(dir, text string) {
	m.Helper()
	m.must(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, form := range searchtext.Forms(text) {
			if at := bytes.Index(content, form); at >= 0 {
				m.Errorf("%q is still in %s, at byte %d", text, path, at)
			}
		}
		return err
	}))
}
