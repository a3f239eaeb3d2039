package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
)

// ExportTree writes sessions and all sessions below them for Import: the child runs, the
// forks and the copies, at all depths, and the parents of each fork. Its first line lists
// the sessions and their heads, in the order of the stream: each session comes after its
// parents, and once. So Import notices a stream that was cut. All else is as in Export.
//
// Other programs may append meanwhile: ExportTree writes each session up to the listed
// head. It holds the store lock, shared, until the stream is written. missing are
// the child sessions that the store does not have. If a session is below itself, the error is
// runlog.ErrRunCycle, and nothing is written.
func ExportTree(ctx context.Context, log *eventlog.Log, w io.Writer, sessions ...string) (missing []string, err error) {
	x, err := newExporter(ctx, log, w)
	if err != nil {
		return nil, err
	}
	for _, session := range sessions {
		if err := x.engine.Usable(ctx, session); err != nil {
			return nil, err
		}
	}
	var tree sessiontree.Tree
	err = log.Hold(ctx, func(ctx context.Context) (err error) {
		if tree, err = sessiontree.Load(ctx, log, sessions...); err != nil {
			return err
		}
		return x.tree(ctx, &tree)
	})
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return tree.Missing, x.w.Flush()
}

// treeMark is the beginning of a treeLine.
var treeMark = []byte(`{"tree":`)

// treeLine is the first line of a tree.
type treeLine struct {
	Tree []treeHead `json:"tree"`
}

// treeHead is a session of a tree, and its last event.
type treeHead struct {
	Session string     `json:"session"`
	Seq     int64      `json:"seq"`
	Hash    event.Hash `json:"hash"`
}

func (x *exporter) tree(ctx context.Context, tree *sessiontree.Tree) error {
	heads, err := x.heads(ctx, tree)
	if err == nil {
		err = x.checkLinks(ctx, tree, heads)
	}
	if err != nil {
		return err
	}
	list, err := json.Marshal(treeLine{heads})
	if err == nil {
		err = x.line(list)
	}
	if err != nil {
		return err
	}
	for i := range heads {
		if err := x.session(ctx, heads[i].Session, heads[i].Seq); err != nil {
			return ofSession(heads[i].Session, err)
		}
	}
	return nil
}

// heads lists the sessions of a tree and their ancestors, each after its parent. An
// ancestor outside of the tree is listed with its head.
func (x *exporter) heads(ctx context.Context, tree *sessiontree.Tree) ([]treeHead, error) {
	known := map[string]event.Head{}
	for i := range tree.Sessions {
		known[tree.Sessions[i].Session] = tree.Sessions[i].Head
	}
	heads := []treeHead{}
	place := map[string]int{}
	// add lists a session that the tree needs up to event seq.
	add := func(session string, seq int64) error {
		i, listed := place[session]
		head := known[session]
		if listed && heads[i].Seq >= seq {
			return nil
		}
		if head.IsZero() || head.Seq < seq { // the fork is newer than the head
			var err error
			if head, err = x.log.Head(ctx, session); err != nil {
				return err
			}
		}
		if !listed {
			i = len(heads)
			place[session], heads = i, append(heads, treeHead{})
		}
		heads[i] = treeHead{session, head.Seq, head.Hash}
		return nil
	}
	for i := range tree.Sessions {
		session := tree.Sessions[i].Session
		line, err := x.ancestors(ctx, session)
		for _, a := range slices.Backward(line) {
			if err == nil {
				err = add(a.Session, a.Fork.Seq)
			}
		}
		if err == nil {
			err = add(session, 0)
		}
		if err != nil {
			return nil, ofSession(session, err)
		}
	}
	return heads, nil
}

// checkLinks refuses a session that is below itself, so that Import has no reason to.
func (x *exporter) checkLinks(ctx context.Context, tree *sessiontree.Tree, heads []treeHead) error {
	below := map[string][]string{}
	for i := range tree.Sessions {
		below[tree.Sessions[i].Session] = tree.Sessions[i].Below
	}
	links := links{}
	for _, h := range heads {
		runs, inTree := below[h.Session]
		above := ""
		if !inTree { // an ancestor, whose other forks are not in the stream
			l, err := projection.Load(ctx, x.log, h.Session, projection.Children(), projection.Options{At: h.Seq})
			if err != nil {
				return err
			}
			for _, r := range l.State.Runs {
				runs = append(runs, r.SessionID)
			}
		}
		for a, err := range x.log.Ancestors(ctx, h.Session) { // the parent
			if err != nil {
				return ofSession(h.Session, err)
			}
			above = a.Session
			break
		}
		if err := links.add(h.Session, above, runs); err != nil {
			return ofSession(h.Session, err)
		}
	}
	return nil
}

// links maps a session to the sessions directly below it.
type links map[string][]string

// add adds the links of a session: to the session above it, if there is one, and to the
// sessions below it. The error is runlog.ErrRunCycle if the session is below itself.
func (l links) add(session, above string, below []string) error {
	if above != "" {
		l[above] = append(l[above], session)
	}
	l[session] = append(l[session], below...)
	seen := map[string]bool{}
	for queue := slices.Clone(l[session]); len(queue) > 0; {
		last := len(queue) - 1
		at := queue[last]
		queue = queue[:last]
		if at == session {
			return runlog.ErrRunCycle
		}
		if !seen[at] {
			seen[at] = true
			queue = append(queue, l[at]...)
		}
	}
	return nil
}

var (
	errCut      = errors.New("the stream is cut")
	errMismatch = errors.New("the stream differs from the list in its first line")
)

// TreeError reports a session that a stream of ExportTree does not have as listed, because
// the stream was cut or changed. Import stored nothing of it. Import the whole stream. If
// the session is below itself, the error matches runlog.ErrRunCycle.
type TreeError struct {
	// Session is empty if the stream is cut in its first line.
	Session string
	// Line is the number of the line, and Offset the byte at which it begins. Of a
	// stream that is cut, Offset is the length of the stream.
	Line   int
	Offset int64
	// Cut means that the stream ends before the session does.
	Cut   bool
	Cause error
}

func (e *TreeError) Error() string {
	at := fmt.Sprintf("line %d at byte %d", e.Line, e.Offset)
	if e.Session == "" {
		return fmt.Sprintf("%s: %v", at, e.Cause)
	}
	return fmt.Sprintf("%s: session %q: %v", at, e.Session, e.Cause)
}

// Unwrap is the cause.
func (e *TreeError) Unwrap() error { return e.Cause }
