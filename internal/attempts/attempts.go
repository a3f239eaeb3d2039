// Package attempts compares two sessions without a common event, as two attempts at one task.
package attempts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/runlog/stats"
)

// Attempt is one of two sessions without a common event, with --json.
type Attempt struct {
	Session     string `json:"session"`
	Title       string `json:"title,omitzero"`
	stats.Tally `json:",inline"`
	Failed      int64    `json:"failed"` // calls
	Seconds     float64  `json:"seconds,omitzero"`
	Models      []string `json:"models,omitzero"`
	Reward      *float64 `json:"reward,omitzero"` // that a benchmark recorded

	Summary stats.Summary `json:"-"`
	files   files.List
}

// Comparison compares two sessions without a common event.
type Comparison struct {
	A Attempt `json:"a"`
	B Attempt `json:"b"`
	// First is the first call that differs; nil if the calls of one session are the beginning
	// of the other's, and both have the same number.
	First *DifferentCall `json:"first_different_call,omitzero"`
	Files []File         `json:"files,omitzero"` // that one of them changed
}

// DifferentCall is the first pair of calls that differ, after Same equal ones.
type DifferentCall struct {
	Same int   `json:"same"`
	A    *Call `json:"a,omitzero"` // nil: the session has no more calls
	B    *Call `json:"b,omitzero"`
}

// Call is a call on the active path of a session.
type Call struct {
	Seq       int64          `json:"seq"`
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

// File is a file that one of two sessions changed. The path is relative to the folder of
// each session.
type File struct {
	Path string      `json:"path"`
	A    *files.File `json:"a,omitzero"` // nil: the session did not change it
	B    *files.File `json:"b,omitzero"`
	// Text compares the texts at the end.
	Text string `json:"text"`
}

// The values of File.Text, besides files.TextUnknown.
const (
	TextSame      = "same"
	TextDifferent = "different"
	TextOnlyA     = "only in A"
	TextOnlyB     = "only in B"
)

// Compare compares the counts, the calls and the changed files of two sessions. The catalog gives
// their counts.
func Compare(ctx context.Context, log *eventlog.Log, catalog *stats.Catalog, a, b string) (c Comparison, err error) {
	if c.A, err = read(ctx, log, catalog, a); err == nil {
		c.B, err = read(ctx, log, catalog, b)
	}
	if err == nil {
		c.First, err = firstDifference(ctx, log, &c.A, &c.B)
	}
	if err != nil {
		return c, fmt.Errorf("compare sessions %q and %q: %w", a, b, err)
	}
	c.compareFiles()
	return c, nil
}

func read(ctx context.Context, log *eventlog.Log, catalog *stats.Catalog, session string) (x Attempt, err error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return x, err
	}
	s, err := catalog.Load(ctx, session, head)
	if err != nil {
		return x, err
	}
	x = Attempt{Session: session, Title: strings.Join(strings.Fields(cmp.Or(s.Title, s.Input)), " "), Tally: s.Total, Summary: s}
	for _, t := range s.ByTool {
		x.Failed += t.Failed
	}
	for name := range s.ByModel {
		x.Models = append(x.Models, name)
	}
	slices.Sort(x.Models)
	if !event.Dated(s.First).IsZero() {
		x.Seconds = s.Last.Sub(s.First).Seconds()
	}
	if x.Reward, err = rewardOf(ctx, log, session); err != nil {
		return x, err
	}
	for c, err := range files.Of(ctx, log, session, eventlog.All().OnPath(), formats.FileTools) {
		if err != nil {
			return x, err
		}
		x.files.Add(&c)
	}
	return x, nil
}

// rewardOf is the reward of a run of a benchmark, which its importer keeps in the first event;
// nil if there is none.
func rewardOf(ctx context.Context, log *eventlog.Log, session string) (*float64, error) {
	e, err := log.Event(ctx, session, 1)
	if err != nil {
		return nil, err
	}
	s, _, err := event.Decode[event.Session](&e)
	if errors.Is(err, event.ErrRedacted) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, ok, _ := rawjson.Lookup(s.Extra, "reward") // the extra of a stored event is valid
	if !ok || v.Kind() != '0' {
		return nil, nil
	}
	reward, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return nil, nil
	}
	return &reward, nil
}

// firstDifference finds the first call that differs. The folders of the sessions count as equal.
func firstDifference(ctx context.Context, log *eventlog.Log, a, b *Attempt) (*DifferentCall, error) {
	nextA, stopA := iter.Pull2(calls(ctx, log, a.Session))
	defer stopA()
	nextB, stopB := iter.Pull2(calls(ctx, log, b.Session))
	defer stopB()
	for same := 0; ; same++ {
		x, err, moreA := nextA()
		if err != nil {
			return nil, err
		}
		y, err, moreB := nextB()
		switch {
		case err != nil:
			return nil, err
		case !moreA && !moreB:
			return nil, nil
		case !moreA || !moreB || !equalCalls(x, y, a.Summary.CWD, b.Summary.CWD):
			return &DifferentCall{same, x, y}, nil
		}
	}
}

// calls yields the calls on the active path of a session.
func calls(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[*Call, error] {
	return func(yield func(*Call, error) bool) {
		for e, err := range log.Read(ctx, session, eventlog.All().OnPath()) {
			var m event.Message
			if err == nil {
				m, _, err = event.Decode[event.Message](e.Effective())
			}
			if errors.Is(err, event.ErrRedacted) {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, p := range m.ToolCalls() {
				if !yield(&Call{e.Seq, p.Name, p.Arguments}, nil) {
					return
				}
			}
		}
	}
}

// equalCalls reports whether two calls are equal, also with other orders of members, and in
// other folders.
func equalCalls(x, y *Call, folderX, folderY string) bool {
	return x.Tool == y.Tool && canonical(x.Arguments, folderX) == canonical(y.Arguments, folderY)
}

func canonical(v jsontext.Value, folder string) string {
	v = v.Clone()
	if v.Canonicalize() != nil {
		return string(v)
	}
	quoted, err := json.Marshal(folder)
	if folder == "" || err != nil {
		return string(v)
	}
	return strings.ReplaceAll(string(v), string(quoted[1:len(quoted)-1]), ".")
}

// compareFiles compares the files that one of the sessions changed.
func (c *Comparison) compareFiles() {
	byPath := map[string]int{}
	add := func(x *Attempt, side func(f *File) **files.File) {
		for _, row := range x.files.Files {
			if row.Changes == 0 {
				continue
			}
			path := files.Below(x.Summary.CWD, row.Path)
			i, ok := byPath[path]
			if !ok {
				i = len(c.Files)
				byPath[path] = i
				c.Files = append(c.Files, File{Path: path})
			}
			*side(&c.Files[i]) = row
		}
	}
	add(&c.A, func(f *File) **files.File { return &f.A })
	add(&c.B, func(f *File) **files.File { return &f.B })
	slices.SortFunc(c.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	for i := range c.Files {
		f := &c.Files[i]
		switch {
		case f.B == nil:
			f.Text = TextOnlyA
		case f.A == nil:
			f.Text = TextOnlyB
		case !f.A.State.Known || !f.B.State.Known:
			f.Text = files.TextUnknown
		case f.A.State == f.B.State:
			f.Text = TextSame
		default:
			f.Text = TextDifferent
		}
	}
}
