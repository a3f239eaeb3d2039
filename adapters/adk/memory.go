package adk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/search"
)

// memories is the memory.Service: a search over the sessions of a user that were added.
type memories struct{ sessions *sessions }

var _ memory.Service = (*memories)(nil)

// memoryState is the name of the custom state of a session that was added to the memory.
const memoryState = "adk:memory"

// memoryMark is the state of that name: the events through this seq are in the memory.
type memoryMark struct {
	Through int64 `json:"through"`
}

// mostMemories bounds the entries of a search.
const mostMemories = 100

// AddSessionToMemory marks the events of a stored session. It copies nothing.
func (m *memories) AddSessionToMemory(ctx context.Context, s session.Session) error {
	logID, err := m.sessions.find(ctx, identity{s.AppName(), s.UserID(), s.ID()})
	if err == nil {
		var head event.Head
		if head, err = m.sessions.log.Head(ctx, logID); err == nil {
			_, _, err = projection.SetState(ctx, m.sessions.log, logID, memoryState, 0, memoryMark{head.Seq})
		}
	}
	if err != nil {
		return fmt.Errorf("add session %q to the memory: %w", s.ID(), err)
	}
	return nil
}

// SearchMemory returns the messages of the user's sessions that have a word of the query, at most 100: first the messages with
// the most different words of the query, then the newest.
func (m *memories) SearchMemory(ctx context.Context, req *memory.SearchRequest) (*memory.SearchResponse, error) {
	found, err := m.search(ctx, identity{App: req.AppName, User: req.UserID}, wordsOf(req.Query))
	if err != nil {
		return nil, fmt.Errorf("search the memory of user %q: %w", req.UserID, err)
	}
	return &memory.SearchResponse{Memories: found}, nil
}

func (m *memories) search(ctx context.Context, of identity, words map[string]bool) (found []memory.Entry, err error) {
	matches := map[string]*match{}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if err := m.add(ctx, matches, of, word); err != nil {
			return nil, err
		}
	}
	marks := map[string]int64{}
	list := slices.SortedFunc(maps.Values(matches), func(a, b *match) int {
		return cmp.Or(b.words-a.words, b.hit.Timestamp.Compare(a.hit.Timestamp), strings.Compare(a.hit.Session, b.hit.Session), cmp.Compare(b.hit.Seq, a.hit.Seq))
	})
	for _, match := range list {
		through, ok := marks[match.hit.Session]
		if !ok {
			if through, err = m.through(ctx, match.hit.Session); err != nil {
				return nil, err
			}
			marks[match.hit.Session] = through
		}
		if match.hit.Seq <= through && len(found) < mostMemories {
			e := match.entry
			found = append(found, memory.Entry{ID: e.ID, Content: e.Content, Author: e.Author, Timestamp: e.Timestamp, CustomMetadata: e.CustomMetadata})
		}
	}
	return found, nil
}

// match is a message that has words of the query.
type match struct {
	hit   search.Hit
	entry *session.Event
	words int
}

// add adds the messages with a word.
func (m *memories) add(ctx context.Context, matches map[string]*match, of identity, word string) error {
	prefix := of.listed()
	q := search.Query{Text: word, Types: []event.Type{event.MessageAdded}, Active: true, Where: func(e *event.Event) bool {
		return strings.HasPrefix(e.SessionID, prefix)
	}}
	for hit, err := range search.Events(ctx, m.sessions.log, q) {
		if err != nil {
			return err
		}
		e, ok, err := m.sessions.bodies().decode(ctx, &hit.Event)
		if err != nil {
			return err
		}
		if !ok || !hasWord(e.Content, word) {
			continue
		}
		nameAuthors(of.App, []*session.Event{e})
		key := fmt.Sprint(hit.Seq, hit.Session)
		if matches[key] == nil {
			matches[key] = &match{hit: hit, entry: e}
		}
		matches[key].words++
	}
	return nil
}

// through is the seq up to which a session is in the memory; 0 if it was not added, or is removed.
func (m *memories) through(ctx context.Context, logID string) (int64, error) {
	var mark *memoryMark
	_, err := loadState(ctx, m.sessions.log, logID, memoryState, &mark)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return 0, err
	}
	if mark == nil {
		return 0, nil
	}
	return mark.Through, nil
}

func hasWord(c *genai.Content, word string) bool {
	if c == nil {
		return false
	}
	return slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return wordsOf(p.Text)[word] })
}

// wordsOf are the words of a text in lower case: runs of letters, digits and marks.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
		words[strings.ToLower(word)] = true
	}
	return words
}
