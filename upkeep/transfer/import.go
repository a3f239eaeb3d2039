package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/internal/adopt"
)

// Import stores the sessions of an export, and returns one Result per session. It
// verifies a session whole before it stores its events. After an error, the sessions
// before the bad session stay stored, and Import returns their Results. The error names
// the number of the bad line: a *eventlog.CorruptError for damage, event.ErrForeign, a
// *event.VersionError or event.ErrInvalidBlob.
//
// A stream of ExportTree lists its sessions. If it ends early, or does not have the
// sessions as listed, the error is a *TreeError: Import stored nothing of the session
// that the error names, and the whole sessions before it.
//
// Import leaves out a session that was removed from the log, a copy of one (fork.Copy), and the
// sessions below them in the export, unless Options.Again is true: Result.LeftOut. It always leaves out the
// session convlog:store, so that nobody can forge removals and holds.
//
// An event that is redacted in the log stays redacted. An event that is redacted in the
// export only is a *RedactionError, unless Options.ApplyRedactions is true: nobody
// can erase with a forged export. So is a copy (fork.Copy) of an event that the log has erased,
// unless Options.EvenErased is true. Then nothing of its session is stored, and the other sessions
// follow. Import uses the first Options only.
func Import(ctx context.Context, log *eventlog.Log, r io.Reader, opts ...Options) ([]Result, error) {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("%w: the reader of Import", event.ErrNilArgument)
	}
	m := importer{log: log, leftOut: map[string]bool{}}
	if len(opts) == 0 || !opts[0].EvenErased {
		m.originals = newOriginals(log)
	}
	if len(opts) == 0 || !opts[0].Again {
		var err error
		if m.removed, err = storenotes.Load(ctx, log); err != nil {
			return nil, err
		}
	}
	defer m.spool.close()
	if len(opts) > 0 && opts[0].ApplyRedactions {
		whole, err := m.readAhead(r)
		if err != nil {
			return nil, err
		}
		defer whole.Close()
		r = whole
	}
	m.in = bufio.NewReaderSize(r, 1<<20)
	err := errors.Join(append(m.refused, m.run(ctx))...)
	return m.adopted, err
}

type importer struct {
	log   *eventlog.Log
	spool spool
	// sessions are the sessions of the export that are not stored yet, if its
	// redactions are obeyed.
	sessions map[string]bool
	in       *bufio.Reader
	number   int   // of the line
	offset   int64 // of the line
	session  string
	events   []event.Event
	lines    []int // the number of each event's line
	adopted  []Result
	removed  *storenotes.Notes // nil to leave nothing out
	leftOut  map[string]bool
	refused  []error         // the *RedactionErrors of sessions, and the errors of their forks
	missing  map[string]bool // the sessions that were refused
	// originals finds copies of erased events; nil to store them.
	originals *originals
	tree      *treeList // the list of the stream's sessions; nil if it has none
	last      bool      // the line has no newline: it may be cut
}

// run imports line by line.
func (m *importer) run(ctx context.Context) error {
	for {
		text, err := m.in.ReadBytes('\n')
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return m.unread(fmt.Errorf("read line %d: %w", m.number+1, err))
		}
		if len(text) > 0 {
			m.number++
			m.last = ended
			if err := m.line(ctx, bytes.TrimRight(text, "\r\n")); err != nil {
				return err
			}
			m.offset += int64(len(text))
		}
		if ended {
			return m.end(ctx)
		}
	}
}

// end ends the import at the end of the stream.
func (m *importer) end(ctx context.Context) error {
	if m.tree.next() != nil {
		return m.cut()
	}
	return m.adopt(ctx)
}

func (m *importer) line(ctx context.Context, text []byte) error {
	switch {
	case len(text) == 0:
		return nil
	case bytes.HasPrefix(text, treeMark):
		return m.beginTree(ctx, text)
	case bytes.HasPrefix(text, blobMark):
		err := m.blob(text)
		if errors.Is(err, event.ErrInvalidBlob) && m.isCut() {
			return m.cutAfter(text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", m.number, err)
		}
		return nil
	}
	e, err := event.Parse(text, "")
	switch {
	case err != nil && m.isCut():
		return m.cutAfter(text)
	case errors.Is(err, event.ErrForeign), errors.Is(err, event.ErrVersion):
		return fmt.Errorf("line %d: %w", m.number, err)
	case err != nil:
		return &eventlog.CorruptError{Path: fmt.Sprintf("line %d", m.number), Offset: m.offset, Cause: err}
	}
	if m.tree != nil {
		return m.treeEvent(ctx, &e)
	}
	if e.SessionID != m.session {
		if err := m.adopt(ctx); err != nil {
			return err
		}
		m.session = e.SessionID
	}
	m.events, m.lines = append(m.events, e), append(m.lines, m.number)
	return nil
}

// blobMark is the beginning of a blob's line.
var blobMark = []byte(`{"blob":`)

var errBlobDamaged = errors.New("the blob's bytes do not have its digest")

func (m *importer) blob(text []byte) error {
	var b blobLine
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%w: %w", event.ErrInvalidBlob, err)
	}
	body, err := base64.StdEncoding.DecodeString(b.Base64)
	if err != nil {
		return fmt.Errorf("%w: %w", event.ErrInvalidBlob, err)
	}
	if event.DigestOf(body) != b.Blob || int64(len(body)) != b.Bytes {
		return &eventlog.CorruptError{Path: "blob " + line.Clip(string(b.Blob)), Offset: -1, Cause: errBlobDamaged}
	}
	return m.spool.add(b.Blob, body)
}

// adopt stores the session of the lines so far.
func (m *importer) adopt(ctx context.Context) error {
	if len(m.events) == 0 {
		return nil
	}
	head, err := m.log.Head(ctx, m.session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("line %d: %w", m.lines[0], err)
	}
	if m.session == engine.StoreSession || head.IsZero() && m.isRemoved() {
		m.leftOut[m.session] = true
		m.adopted = append(m.adopted, Result{Session: m.session, Read: int64(len(m.events)), LeftOut: true})
		m.events, m.lines = nil, nil
		return nil
	}
	if parent, ok := m.refusedParent(ctx); ok {
		m.refuse(fmt.Errorf("line %d: session %q: a fork of session %q, which was not stored", m.lines[0], m.session, parent))
		return nil
	}
	b := newBodies(m.log, m.session, head, m.originals, m.put)
	adopted, _, err := adoptHeld(ctx, m.log, m.session, adopt.Options{Explained: true}, m.follows(), func(ctx context.Context, yield func(event.Event, error) bool) {
		for _, e := range m.events {
			if err := b.copyOf(ctx, &e); !yield(e, err) || err != nil {
				return
			}
		}
	}, m.originals)
	var order *RedactionError
	if err != nil {
		err = fmt.Errorf("line %d: %w", m.lineOf(err), ofSession(m.session, err))
	}
	if errors.As(err, &order) {
		m.refuse(err)
		return nil
	}
	if err != nil {
		return err
	}
	m.events, m.lines = nil, nil
	m.adopted = append(m.adopted, adopted)
	return nil
}

// refuse stores nothing of the session of the lines so far.
func (m *importer) refuse(err error) {
	m.refused = append(m.refused, err)
	if m.missing == nil {
		m.missing = map[string]bool{}
	}
	m.missing[m.session] = true
	m.events, m.lines = nil, nil
}

// refusedParent returns the parent of a fork of which nothing was stored.
func (m *importer) refusedParent(ctx context.Context) (parent string, ok bool) {
	f, isFork, err := event.Decode[event.Fork](&m.events[0])
	if !isFork || err != nil || !m.missing[f.Parent] {
		return "", false
	}
	_, stored := m.log.Head(ctx, f.Parent)
	return f.Parent, errors.Is(stored, eventlog.ErrNotFound)
}

// isRemoved reports whether the session of the lines so far, which the log lacks, was
// removed from the log, or is a copy of a removed one, or is below a session that is left out.
func (m *importer) isRemoved() bool {
	if m.removed == nil {
		return false
	}
	parent, err := sessiontree.ParentOf(&m.events[0]) // adopt reports a damaged fork
	_, _, copied := m.events[0].CopyOrigin()
	return m.removed.Removed(m.session) || err == nil && (m.leftOut[parent] || copied && m.removed.Removed(parent))
}

// readAhead copies an export to a file and lists its sessions.
func (m *importer) readAhead(r io.Reader) (*folder.TempFile, error) {
	file, err := folder.Temp("", "convlog-import-")
	if err != nil {
		return nil, err
	}
	m.sessions = map[string]bool{}
	in := bufio.NewReaderSize(r, 1<<20)
	for err == nil {
		var text []byte
		if text, err = in.ReadBytes('\n'); err != nil && !errors.Is(err, io.EOF) {
			break
		}
		if e, bad := event.Parse(bytes.TrimRight(text, "\r\n"), ""); bad == nil {
			m.sessions[e.SessionID] = true
		}
		if _, failed := file.Write(text); failed != nil {
			err = failed
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// follows is nil unless redactions are obeyed.
func (m *importer) follows() func(session string) bool {
	if m.sessions == nil {
		return nil
	}
	delete(m.sessions, m.session)
	return func(session string) bool { return m.sessions[session] }
}

// put stores a blob of the export. A blob that the export lacks may be in the log.
func (m *importer) put(ctx context.Context, d event.Digest) error {
	body, ok := m.spool.open(d)
	if !ok {
		return nil
	}
	_, err := engine.Of(m.log).PutBlob(ctx, body)
	return err
}

// lineOf is the number of the bad event's line if err names the event, else the number
// of the session's first line.
func (m *importer) lineOf(err error) int {
	seq := int64(0)
	var corrupt *eventlog.CorruptError
	var conflict *eventlog.ConflictError
	var order *RedactionError
	switch {
	case errors.As(err, &order):
		seq = order.Seqs[0]
	case errors.As(err, &corrupt) && corrupt.Session == m.session:
		seq = corrupt.Seq
	case errors.As(err, &conflict):
		seq = conflict.Expected.Seq
	}
	for i := range m.events {
		if m.events[i].Seq >= seq { // the event, or the next event if it is missing
			return m.lines[i]
		}
	}
	return m.lines[0]
}
