package transfer

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// Export writes sessions as lines for Import (docs/FORMAT.md, chapter 11): it inlines
// spilled data, writes every other blob before the first line that needs it, and writes
// the parents of a fork before the fork. Hashes stay. The output depends on the sessions
// only, not on their store. After an error, w has a part of the output.
func Export(ctx context.Context, log *eventlog.Log, w io.Writer, sessions ...string) error {
	x, err := newExporter(ctx, log, w)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if err := x.engine.Usable(ctx, session); err != nil {
			return err
		}
		if err := x.withAncestors(ctx, session); err != nil {
			return fmt.Errorf("export: %w", ofSession(session, err))
		}
	}
	return x.w.Flush()
}

func newExporter(ctx context.Context, log *eventlog.Log, w io.Writer) (*exporter, error) {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("%w: the writer of an export", event.ErrNilArgument)
	}
	return &exporter{log: log, engine: engine.Of(log), w: bufio.NewWriterSize(w, 64<<10), checked: map[string]bool{},
		written: map[string]bool{}, blobs: map[event.Digest]bool{}}, nil
}

type exporter struct {
	log     *eventlog.Log
	engine  engine.Engine
	w       *bufio.Writer
	checked map[string]bool // sessions whose ancestors are checked
	written map[string]bool
	blobs   map[event.Digest]bool
}

// withAncestors writes the ancestors that were not written yet, and the session.
func (x *exporter) withAncestors(ctx context.Context, session string) error {
	line, err := x.ancestors(ctx, session)
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(line) {
		if err := x.session(ctx, a.Session, 0); err != nil {
			return err
		}
	}
	return x.session(ctx, session, 0)
}

// ancestors lists the ancestors of a session, its parent first. It checks each fork
// point once.
func (x *exporter) ancestors(ctx context.Context, session string) ([]eventlog.Ancestor, error) {
	line, err := lineage(ctx, x.log, session)
	if err != nil {
		return nil, err
	}
	for _, a := range line {
		if x.checked[a.Child] {
			break // and so are the ancestors above
		}
		x.checked[a.Child] = true
		if err := x.log.CheckAncestor(ctx, eventlog.Ancestor{Session: a.Session, Through: a.Fork.Point(), Child: a.Child, Fork: a.Fork}); err != nil {
			return nil, err
		}
	}
	return line, nil
}

// session writes a session up to event to, once; 0 is the head.
func (x *exporter) session(ctx context.Context, session string, to int64) error {
	if x.written[session] {
		return nil
	}
	x.written[session] = true
	for e, err := range x.log.Store().Read(ctx, session, eventlog.Span{To: to}) {
		if err != nil {
			return err
		}
		for _, d := range e.Blobs() {
			if err := x.blob(ctx, d, &e); err != nil {
				return err
			}
		}
		text, err := x.inlined(ctx, &e)
		if err == nil {
			err = x.line(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) line(text []byte) error {
	if _, err := x.w.Write(text); err != nil {
		return err
	}
	return x.w.WriteByte('\n')
}

// blobLine is a blob in an export.
type blobLine struct {
	Blob   event.Digest `json:"blob"`
	Bytes  int64        `json:"bytes"`
	Base64 string       `json:"base64"`
}

// blob writes a blob once, unless it is the event's own spilled data.
func (x *exporter) blob(ctx context.Context, d event.Digest, e *event.Event) error {
	if spilled, _, _ := e.Spilled(); spilled == d || x.blobs[d] {
		return nil
	}
	x.blobs[d] = true
	r, err := x.log.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return x.blobLine(d, body)
}

func (x *exporter) blobLine(d event.Digest, body []byte) error {
	text, err := json.Marshal(blobLine{d, int64(len(body)), base64.StdEncoding.EncodeToString(body)})
	if err != nil {
		return fmt.Errorf("encode blob %s: %w", d, err)
	}
	return x.line(text)
}

// inlined is the line of an event, with spilled data inlined.
func (x *exporter) inlined(ctx context.Context, e *event.Event) ([]byte, error) {
	d, _, spilled := e.Spilled()
	if !spilled {
		return e.Line(), nil
	}
	if err := x.engine.Fetch(ctx, e); err != nil || e.Redacted() {
		return e.Line(), err
	}
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: e.SessionID}); err != nil {
		return nil, err
	}
	l.Data, l.Digest, l.Bytes = e.Data, "", 0
	l.Blobs = slices.DeleteFunc(l.Blobs, func(other string) bool { return other == string(d) })
	return l.Relocate(), nil
}
