package logtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/search"
)

// searchAlphabet has characters that are special in JSON, in indexes or in case
// folding.
var searchAlphabet = []string{"a", "A", "b", "k", "\u212a", "s", "\u017f", " ", "\n", "\u00a0", `"`, `\`, "/", "u", "n", "0", "*", "-", ".",
	"ä", "Ä", "Σ", "ς", "σ", "日", "本", "👍", "ⱥ", "Ⱥ", "\u0001", "\ufffd"}

// searchWords are texts that queries hit more often than random characters.
var searchWords = []string{"foo", "Foo-Bar", "store.go", "C++", "日本語", "привет", "ПРИВЕТ", "u0061", `\n`, `a\"b`}

func randomText(r *rand.Rand, most int) string {
	var text strings.Builder
	for range 1 + r.IntN(most) {
		if r.IntN(4) == 0 {
			text.WriteString(searchWords[r.IntN(len(searchWords))])
		} else {
			text.WriteString(searchAlphabet[r.IntN(len(searchAlphabet))])
		}
	}
	return text.String()
}

// randomlyQuoted returns a JSON string with random escapes.
func randomlyQuoted(r *rand.Rand, text string) string {
	quoted := `"`
	escape := r.IntN(3) == 0
	for _, c := range text {
		if escape && r.IntN(4) == 0 {
			for _, unit := range utf16.Encode([]rune{c}) {
				quoted += fmt.Sprintf(`\u%04x`, unit)
			}
			continue
		}
		if c == '/' && r.IntN(2) == 0 {
			quoted += `\/`
			continue
		}
		one, err := jsontext.AppendQuote(nil, string(c))
		if err != nil {
			panic(err)
		}
		quoted += string(one[1 : len(one)-1])
	}
	return quoted + `"`
}

func randomEvent(r *rand.Rand) event.Event {
	text := func() string { return randomlyQuoted(r, randomText(r, 12)) }
	switch r.IntN(4) {
	case 0:
		return suite.NewEvent("test:raw", `{"x":[`+text()+`,`+text()+`],"id":12}`)
	case 1:
		return suite.NewEvent(event.SessionUpdated, `{"title":`+text()+`}`)
	default:
		return suite.NewEvent(event.MessageAdded, `{"role":"user","parts":[{"type":"text","text":`+text()+`},{"type":"text","text":`+text()+`}]}`)
	}
}

// testSearchRandom compares searches with a scan of every event.
func testSearchRandom(t *env) {
	r := rand.New(rand.NewPCG(7, 11))
	for round := range 6 {
		for range 25 {
			t.Append(t.Main(), fmt.Sprintf("s%d", r.IntN(4)), eventlog.Any(), randomEvent(r))
		}
		switch round % 3 {
		case 0:
			t.index(t.Main())
		case 1:
			t.Reopen()
		}
		texts := t.naiveTexts(t.Main())
		for range testsize.Pick(4, 12, 120) {
			q := search.Query{Text: randomText(r, 4), Limit: r.IntN(20), PerSession: r.IntN(4)}
			if _, err := q.Terms(); err != nil {
				continue
			}
			t.WantEqual(fmt.Sprintf("hits of %q", q.Text), t.naiveHits(texts, q), t.hits(t.Main(), q))
			q.Session = fmt.Sprintf("s%d", r.IntN(4))
			t.WantEqual(fmt.Sprintf("hits of %q in %s", q.Text, q.Session), t.naiveHits(texts, q), t.hits(t.Main(), q))
		}
	}
}

// naiveText is the folded text of an event.
type naiveText struct {
	session string
	seq     int64
	text    string
}

// naiveTexts returns the texts of all events in the order of a search.
func (t *env) naiveTexts(l *eventlog.Log) (texts []naiveText) {
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	slices.SortFunc(infos, func(a, b eventlog.SessionInfo) int {
		return searchtext.ByActivity(searchtext.Activity{Session: a.ID, Last: a.Last.Timestamp}, searchtext.Activity{Session: b.ID, Last: b.Last.Timestamp})
	})
	for _, info := range infos {
		for _, e := range t.Read(l, info.ID, eventlog.All().Backward()) {
			text, err := (&searchtext.Reader{Open: l.OpenBlob}).Read(t.Ctx, &e)
			t.Must(err)
			texts = append(texts, naiveText{info.ID, e.Seq, searchtext.Fold(string(text))})
		}
	}
	return texts
}

func (t *env) naiveHits(texts []naiveText, q search.Query) []string {
	hits, of := []string{}, map[string]int{}
	terms, err := q.Terms()
	t.Must(err)
	for _, text := range texts {
		misses := slices.ContainsFunc(terms, func(term string) bool { return !strings.Contains(text.text, term) })
		full := q.Limit > 0 && len(hits) == q.Limit || q.PerSession > 0 && of[text.session] == q.PerSession
		if misses || full || q.Session != "" && q.Session != text.session {
			continue
		}
		of[text.session]++
		hits = append(hits, fmt.Sprintf("%s:%d", text.session, text.seq))
	}
	return hits
}
