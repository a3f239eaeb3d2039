package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
)

// Export writes sessions as lines that Import reads (docs/FORMAT.md, chapter
// 10): spilled data is inlined, other blobs stand before the line that needs
// them, and the parents of forks come first. Every hash is what it was. What
// is written depends on the sessions only, not on the store they are in.
func (l *Log) Export(ctx context.Context, w io.Writer, sessions ...string) error {
	x := exporter{log: l, w: bufio.NewWriterSize(w, 64<<10), sessions: map[string]bool{}, blobs: map[Digest]bool{}}
	for _, session := range sessions {
		if err := l.readable(ctx, session); err != nil {
			return err
		}
		if err := x.lineage(ctx, session); err != nil {
			return fmt.Errorf("export: %w", ofSession(session, err))
		}
	}
	return x.w.Flush()
}

type exporter struct {
	log      *Log
	w        *bufio.Writer
	sessions map[string]bool
	blobs    map[Digest]bool
}

// lineage writes the ancestors that were not written yet, and the session.
func (x *exporter) lineage(ctx context.Context, session string) error {
	line, err := x.log.forkLine(ctx, session)
	if err != nil {
		return err
	}
	for i := range line {
		if !x.sessions[line[i].SessionID] {
			if err := x.log.checkForkPoint(ctx, line[i:]); err != nil {
				return err
			}
		}
	}
	for _, first := range slices.Backward(line) {
		if x.sessions[first.SessionID] {
			continue
		}
		x.sessions[first.SessionID] = true
		if err := x.session(ctx, first.SessionID); err != nil {
			return err
		}
	}
	return nil
}

// forkLine lists the first events of the session, its parent, its parent's
// parent, and so on.
func (l *Log) forkLine(ctx context.Context, session string) (line []Event, err error) {
	seen := map[string]bool{}
	for {
		seen[session] = true
		first, err := l.firstEvent(ctx, session)
		if err != nil {
			return nil, err
		}
		line = append(line, first)
		f, forked, err := first.Fork()
		if err != nil || !forked {
			return line, err
		}
		if session = f.Parent; seen[session] {
			return nil, &CorruptError{Session: first.SessionID, Offset: -1, Seq: first.Seq, Cause: errForkCycle}
		}
	}
}

// checkForkPoint makes sure that the first session of a line can be read: that
// those behind it have the event that was forked.
func (l *Log) checkForkPoint(ctx context.Context, line []Event) error {
	f, forked, err := line[0].Fork()
	if err != nil || !forked || f.Seq == 0 {
		return err
	}
	holder := 1
	for holder < len(line)-1 && f.Seq < line[holder].Seq {
		holder++
	}
	s := segment{session: line[holder].SessionID, to: f.Seq, hash: f.Hash}
	e, err := l.ownEvent(ctx, s.session, f.Seq)
	if errors.Is(err, ErrEventNotFound) {
		return s.missing(f.Seq)
	}
	if err != nil {
		return err
	}
	return s.check(&e, f.Seq)
}

func (x *exporter) session(ctx context.Context, session string) error {
	for e, err := range x.log.store.Read(ctx, session, Span{}) {
		if err != nil {
			return err
		}
		for _, d := range e.Blobs() {
			if err := x.blob(ctx, d, &e); err != nil {
				return err
			}
		}
		if err := x.log.inline(ctx, &e); err != nil {
			return err
		}
		if err := x.line(e.Line()); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) line(line []byte) error {
	if _, err := x.w.Write(line); err != nil {
		return err
	}
	return x.w.WriteByte('\n')
}

// blobLine is a blob in an export.
type blobLine struct {
	Blob   Digest `json:"blob"`
	Bytes  int64  `json:"bytes"`
	Base64 string `json:"base64"`
}

// blob writes a blob once, unless it is the event's own spilled data.
func (x *exporter) blob(ctx context.Context, d Digest, e *Event) error {
	if spilled, _, _ := e.Spilled(); spilled == d || x.blobs[d] {
		return nil
	}
	x.blobs[d] = true
	body, err := x.log.readBlob(ctx, d)
	if err != nil {
		return err
	}
	line, err := json.Marshal(blobLine{d, int64(len(body)), base64.StdEncoding.EncodeToString(body)})
	if err != nil {
		return fmt.Errorf("encode blob %s: %w", d, err)
	}
	return x.line(line)
}

// inline turns a spilled event's line into one that holds its data.
func (l *Log) inline(ctx context.Context, e *Event) error {
	d, _, spilled := e.Spilled()
	if !spilled {
		return nil
	}
	if err := l.fetch(ctx, e); err != nil {
		return err
	}
	r := e.own()
	r.digest, r.bytes, r.verbatim = "", 0, nil
	blobs := make([]Digest, 0, len(r.blobs))
	for _, other := range r.blobs {
		if other != d {
			blobs = append(blobs, other)
		}
	}
	r.blobs = blobs
	return e.rebuild()
}

// Import adopts the sessions of an export. Each is verified whole before any of
// it is stored; sessions before a bad one stay. A bad line's error names its
// number: a *CorruptError for one that is damaged, ErrForeign, a *VersionError
// or ErrInvalidBlob.
func (l *Log) Import(ctx context.Context, r io.Reader) ([]Adopted, error) {
	m := importer{log: l, in: bufio.NewReaderSize(r, 1<<20)}
	for {
		line, err := m.in.ReadBytes('\n')
		if len(line) > 0 && !(err != nil && !errors.Is(err, io.EOF)) {
			m.number++
			if err := m.line(ctx, bytes.TrimRight(line, "\r\n")); err != nil {
				return m.adopted, err
			}
			m.offset += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return m.adopted, m.adopt(ctx)
		}
		if err != nil {
			return m.adopted, fmt.Errorf("read line %d: %w", m.number+1, err)
		}
	}
}

type importer struct {
	log     *Log
	in      *bufio.Reader
	number  int
	offset  int64 // of the line
	session string
	events  []Event
	lines   []int // the number of each event's line
	adopted []Adopted
}

func (m *importer) line(ctx context.Context, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if bytes.HasPrefix(line, []byte(`{"blob":`)) {
		if err := m.blob(ctx, line); err != nil {
			return fmt.Errorf("line %d: %w", m.number, err)
		}
		return nil
	}
	e, err := ParseLine(line, "")
	switch {
	case errors.Is(err, ErrForeign), errors.Is(err, ErrVersion):
		return fmt.Errorf("line %d: %w", m.number, err)
	case err != nil:
		return &CorruptError{Path: fmt.Sprintf("line %d", m.number), Offset: m.offset, Cause: err}
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

func (m *importer) blob(ctx context.Context, line []byte) error {
	var b blobLine
	if err := json.Unmarshal(line, &b); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidBlob, err)
	}
	body, err := base64.StdEncoding.DecodeString(b.Base64)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidBlob, err)
	}
	if DigestOf(body) != b.Blob || int64(len(body)) != b.Bytes {
		return &CorruptError{Path: "blob " + clip(string(b.Blob)), Offset: -1, Cause: errBlobDamaged}
	}
	_, err = m.log.PutBlob(ctx, bytes.NewReader(body))
	return err
}

// adopt stores the session gathered so far.
func (m *importer) adopt(ctx context.Context) error {
	if len(m.events) == 0 {
		return nil
	}
	adopted, err := m.log.adopt(ctx, m.session, func(yield func(Event, error) bool) {
		for _, e := range m.events {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("line %d: %w", m.lineOf(err), ofSession(m.session, err))
	}
	m.events, m.lines = nil, nil
	m.adopted = append(m.adopted, adopted)
	return nil
}

// lineOf is the line of the event that could not be adopted, if err says which
// that is, else of the session's first.
func (m *importer) lineOf(err error) int {
	seq := int64(0)
	var corrupt *CorruptError
	var conflict *ConflictError
	switch {
	case errors.As(err, &corrupt) && corrupt.Session == m.session:
		seq = corrupt.Seq
	case errors.As(err, &conflict):
		seq = conflict.Expected.Seq
	}
	for i := range m.events {
		if m.events[i].Seq >= seq { // which stands where it was due, if it is missing
			return m.lines[i]
		}
	}
	return m.lines[0]
}
