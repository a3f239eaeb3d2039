package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Outcome is what a child session leaves to its parent.
type Outcome struct {
	// ChildID is the run's id in the parent; the child's session id if empty.
	ChildID string
	// CallID is the tool call of the parent that the child answers.
	CallID string
	Agent  string
	// Summary is what the parent is told, Note a remark for people.
	Summary, Note string
	// ArtifactIDs name what the child made.
	ArtifactIDs []string
	EpisodeID   string
	Usage       event.Usage
	// Metadata is merged into that of the child_merged event.
	Metadata map[string]any
}

// Merge notes in parent what came of child: it appends a child_merged. The child
// is a fork of the parent, at any depth, or a session whose run the parent
// started; another is ErrUnrelated. The child stays as it is.
func Merge(ctx context.Context, log *eventlog.Log, parent, child string, o Outcome) (event.Head, error) {
	c, err := relation(ctx, log, parent, child)
	if err != nil {
		return event.Head{}, fmt.Errorf("merge session %q into %q: %w", child, parent, err)
	}
	c.ChildSessionID, c.ChildID = child, child
	if o.ChildID != "" {
		c.ChildID = o.ChildID
	}
	if o.CallID != "" {
		c.CallID = o.CallID
	}
	c.Agent, c.Summary, c.Note, c.ArtifactIDs, c.EpisodeID, c.Usage = o.Agent, o.Summary, o.Note, o.ArtifactIDs, o.EpisodeID, o.Usage
	c.State = event.ChildStateMerged
	head, err := appendSurely(eventlog.WithMetadata(ctx, o.Metadata), log, parent, eventlog.Any(), event.New(c))
	if err != nil {
		return event.Head{}, fmt.Errorf("merge session %q into %q: %w", child, parent, err)
	}
	return head, nil
}

// relation is what the parent's event says of how the child came to be.
func relation(ctx context.Context, log *eventlog.Log, parent, child string) (c event.Child, err error) {
	if _, err := log.Head(ctx, parent); err != nil {
		return c, err
	}
	first, err := firstOwn(ctx, log, child)
	if err == nil && first.Type.Name() == event.SessionStarted {
		first, err = log.Event(ctx, child, first.Seq) // its data may be in a blob
	}
	if err != nil {
		return c, err
	}
	if s, ok, err := event.Decode[event.Session](&first); ok && (err == nil || errors.Is(err, event.ErrRedacted)) {
		if err != nil {
			err = decodeStructure(&first, &s)
		}
		if err != nil || s.Parent.SessionID != parent {
			return c, errors.Join(err, ErrUnrelated)
		}
		c.Mode, c.ParentEventID, c.CallID = event.ChildFresh, s.Parent.EventID, s.Parent.CallID
		return c, nil
	}
	line, err := Lineage(ctx, log, child)
	if err != nil {
		return c, err
	}
	for _, a := range line {
		if a.Session == parent {
			c.Mode, c.ParentEventID = event.ChildFork, a.Fork.EventID
			return c, nil
		}
	}
	return c, ErrUnrelated
}
