package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/upkeep/internal/keptsum"
)

// ExportMasked writes a tree of sessions as ExportTree does, with the content that shown has: a
// log over a view with masks (secrets.View) of the same store. The sessions in the stream have new
// ids, salts and hashes. ids maps the ids of the stored sessions to the new ones. The metadata of
// a session's first event names the stored head (masked_from).
//
// No salt and no digest of content is in the stream as it is stored, because a guess of a masked
// text could be tested against it. So a snapshot is in the stream as a lost event.
func ExportMasked(ctx context.Context, log, shown *eventlog.Log, w io.Writer, sessions ...string) (ids map[string]string, missing []string, err error) {
	if w == nil || shown == nil {
		return nil, nil, fmt.Errorf("%w: the writer or the view of an export", event.ErrNilArgument)
	}
	file, err := folder.Temp("", "convlog-export-") // the first line of the stream has the last hashes
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	x, err := newExporter(ctx, log, file)
	if err != nil {
		return nil, nil, err
	}
	for _, session := range sessions {
		if err := engine.Of(log).Usable(ctx, session); err != nil {
			return nil, nil, err
		}
	}
	m := masking{exporter: x, shown: shown, ids: map[string]string{}, chains: map[string]*chain{}, bodies: map[event.Digest]event.BlobRef{}}
	err = log.Hold(ctx, func(ctx context.Context) error {
		tree, err := sessiontree.Load(ctx, log, sessions...)
		if err != nil {
			return err
		}
		missing = tree.Missing
		return m.tree(ctx, &tree, w, file)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("export: %w", err)
	}
	return m.ids, missing, nil
}

// masking writes sessions under new ids.
type masking struct {
	*exporter
	shown  *eventlog.Log
	ids    map[string]string // new ids, by stored ids
	chains map[string]*chain // by stored ids
	bodies map[event.Digest]event.BlobRef
}

// maskedFrom is the head of the stored session.
type maskedFrom struct {
	Session string     `json:"session_id"`
	Seq     int64      `json:"seq"`
	Hash    event.Hash `json:"hash"`
}

// chain is a session as it was written.
type chain struct {
	parent string // the stored id
	first  int64
	hashes []event.Hash
	kept   map[int64]jsontext.Value // of redacted events, by seq
}

// tree writes the sessions of a tree to the file, and then the stream to w.
func (m *masking) tree(ctx context.Context, tree *sessiontree.Tree, w io.Writer, file *folder.TempFile) error {
	heads, err := m.heads(ctx, tree)
	if err == nil {
		err = m.checkLinks(ctx, tree, heads)
	}
	if err != nil {
		return err
	}
	for _, h := range heads {
		m.ids[h.Session] = strings.ToLower(event.NewID().String())
	}
	for i := range heads {
		if err := m.session(ctx, heads[i]); err != nil {
			return ofSession(heads[i].Session, err)
		}
		hash, err := m.hashOf(heads[i].Session, heads[i].Seq)
		if err != nil {
			return ofSession(heads[i].Session, err)
		}
		heads[i].Session, heads[i].Hash = m.ids[heads[i].Session], hash
	}
	if err := m.w.Flush(); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	list, err := json.Marshal(treeLine{heads})
	if err == nil {
		_, err = out.Write(append(list, '\n'))
	}
	if err == nil {
		_, err = io.Copy(out, file)
	}
	return errors.Join(err, out.Flush())
}

// session writes a session up to its head.
func (m *masking) session(ctx context.Context, head treeHead) error {
	span := eventlog.Span{To: head.Seq}
	next, stop := iter.Pull2(m.shown.Store().Read(ctx, head.Session, span))
	defer stop()
	c := &chain{kept: map[int64]jsontext.Value{}}
	m.chains[head.Session] = c
	for e, err := range m.log.Store().Read(ctx, head.Session, span) {
		if err != nil {
			return err
		}
		masked, err, ok := next()
		if err == nil && (!ok || masked.Seq != e.Seq) {
			err = fmt.Errorf("event %d is not in the view", e.Seq)
		}
		if err != nil {
			return err
		}
		if len(c.hashes) == 0 {
			if err := m.begin(c, &e, &masked, head); err != nil {
				return err
			}
		}
		if err := m.event(ctx, c, &e, &masked); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// begin begins the chain of a session at its first event, which gets the name of the stored head.
func (m *masking) begin(c *chain, e, masked *event.Event, head treeHead) error {
	c.first = e.Seq
	f, ok, err := event.Decode[event.Fork](e)
	if err != nil {
		return err
	}
	if ok {
		c.parent = f.Parent
	}
	if e.Redacted() {
		return nil
	}
	return masked.SetMetadata("masked_from", maskedFrom(head))
}

// hashOf is the new hash of an event of a session's lineage; zero for seq 0.
func (m *masking) hashOf(session string, seq int64) (event.Hash, error) {
	if seq == 0 {
		return event.Hash{}, nil
	}
	for c := m.chains[session]; c != nil; c = m.chains[c.parent] {
		if at := seq - c.first; 0 <= at && at < int64(len(c.hashes)) {
			return c.hashes[at], nil
		}
	}
	return event.Hash{}, fmt.Errorf("event %d is not in the stream", seq)
}

// event writes an event with the content of masked.
func (m *masking) event(ctx context.Context, c *chain, e, masked *event.Event) error {
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: e.SessionID}); err != nil {
		return err
	}
	prev, err := m.before(c, e)
	if err != nil {
		return err
	}
	l.Session = m.ids[e.SessionID]
	if l.Redacted {
		if l.Kept, err = m.content(e.Type, l.Kept, l.Kept, prev); err != nil {
			return err
		}
		c.kept[e.Seq] = l.Kept
	} else if err := m.replace(ctx, &l, c, e, masked, prev); err != nil {
		return err
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // it does not fail
	text := l.Append(nil, line.Hash(prev), salt)
	written, err := event.Parse(text, l.Session)
	if err != nil {
		return err
	}
	if !l.Redacted {
		if _, err := written.Check(); err != nil {
			return fmt.Errorf("with masks: %w", err)
		}
	}
	c.hashes = append(c.hashes, written.Hash())
	return m.line(text)
}

// before is the new hash of the event before e.
func (m *masking) before(c *chain, e *event.Event) (event.Hash, error) {
	if n := len(c.hashes); n > 0 {
		return c.hashes[n-1], nil
	}
	return m.hashOf(c.parent, e.Seq-1)
}

// replace gives l the content of masked.
func (m *masking) replace(ctx context.Context, l *line.Line, c *chain, e, masked *event.Event, prev event.Hash) (err error) {
	data, raw := masked.Data, jsontext.Value(l.Data)
	if data == nil {
		return fmt.Errorf("data %s: %w", l.Digest, eventlog.ErrBlobNotFound)
	}
	l.Digest, l.Bytes, l.Blobs = "", 0, nil
	switch e.Type.Name() {
	case event.ProjectionSnapshotted: // its state has no masks
		fresh := *masked
		kept, err := fresh.Structure()
		if err != nil {
			return err
		}
		var loss event.Loss
		if err := loss.SetErased(e.Type, without(kept, "hash", "metadata")); err != nil {
			return err
		}
		lost := event.New(loss)
		l.Type, data, raw = string(lost.Type), lost.Data, nil
	case event.Redacted:
		if data, err = c.redaction(data); err != nil {
			return err
		}
	}
	if l.Data, err = m.content(e.Type, data, raw, prev); err != nil {
		return err
	}
	l.Metadata, err = m.metadata(masked.Metadata, jsontext.Value(l.Metadata))
	l.Extras = masked.Extras()
	if err == nil && l.Type == string(e.Type) {
		err = m.refer(ctx, l, e)
	}
	return err
}

// redaction writes the digest of the redacted events, as they are in the masked stream, into their redaction.
func (c *chain) redaction(data jsontext.Value) (jsontext.Value, error) {
	var note event.RedactionNote
	if err := json.Unmarshal(data, &note); err != nil {
		return nil, err
	}
	sum := keptsum.New()
	for _, seq := range note.Seqs {
		if kept, own := c.kept[seq]; own {
			sum.Add(kept)
		}
	}
	members, err := rawjson.Members(data)
	if err != nil || note.Kept == "" {
		return data, err
	}
	return rawjson.Object(rawjson.Set(members, "kept", quoted(string(sum.Digest())))), nil
}

// contentDigests are the members that depend on content, by type.
var contentDigests = map[event.Type][]string{
	event.StepStarted:       {"prompt_cache", "request_digest"},
	event.EffectIntended:    {"nonce", "arguments_digest"},
	event.ApprovalRequested: {"nonce", "arguments_digest"},
	event.ApprovalResolved:  {"arguments_digest"},
}

// sessionMembers are the members with the id of a session, by type.
var sessionMembers = map[event.Type][]jsontext.Pointer{
	event.SessionForked:    {"/parent"},
	event.SessionStarted:   {"/parent/session_id"},
	event.ArtifactRecorded: {"/session_id"},
	event.Lost:             {"/source/session_id", "/extra/kept/child_session_id", "/extra/kept/parent/session_id"},
}

// content returns a payload, or what a redaction kept of it, without digests of content, with
// the new ids. raw is the payload without masks, or nil.
func (m *masking) content(t event.Type, data, raw jsontext.Value, prev event.Hash) (jsontext.Value, error) {
	pointers, ok := sessionMembers[t.Name()]
	if !ok && strings.HasPrefix(string(t), "child_") {
		pointers = []jsontext.Pointer{"/child_session_id"}
	}
	for _, p := range pointers {
		data = m.rename(data, raw, p)
	}
	if t.Name() == event.SessionForked {
		members, err := rawjson.Members(data)
		if err != nil {
			return nil, err
		}
		return rawjson.Object(rawjson.Set(members, "hash", quoted(prev.String()))), nil
	}
	return without(data, contentDigests[t.Name()]...), nil
}

// metadata is the metadata of an event without the digests of its record, with the new ids.
func (m *masking) metadata(masked, raw jsontext.Value) (jsontext.Value, error) {
	if len(masked) == 0 {
		return nil, nil
	}
	for _, p := range []jsontext.Pointer{"/fork_origin/session_id", "/copy_of/session_id"} {
		masked = m.rename(masked, raw, p)
	}
	members, err := rawjson.Members(masked)
	if err != nil {
		return nil, err
	}
	if origin, ok := rawjson.Value(members, "origin"); ok {
		members = rawjson.Set(members, "origin", without(origin, "bytes", "digest", "key"))
	}
	if copied, ok := rawjson.Value(members, "copied_from"); ok {
		var list []string
		if json.Unmarshal(copied, &list) == nil {
			for i := range list {
				list[i] = m.id(list[i])
			}
			if copied, err = json.Marshal(list); err != nil {
				return nil, err
			}
			members = rawjson.Set(members, "copied_from", copied)
		}
	}
	return rawjson.Object(members), nil
}

// id is the new id of a session of the stream, and the id of any other session.
func (m *masking) id(session string) string {
	if fresh, ok := m.ids[session]; ok {
		return fresh
	}
	return session
}

// rename puts the new id of a session into a member. raw is the object before it was masked, or
// nil: a mask may have changed the id.
func (m *masking) rename(object, raw jsontext.Value, p jsontext.Pointer) jsontext.Value {
	name, rest, deeper := strings.Cut(string(p[1:]), "/")
	value, ok, err := rawjson.Lookup(object, name)
	if !ok || err != nil {
		return object
	}
	stored, ok, err := rawjson.Lookup(raw, name)
	if !ok || err != nil {
		stored = value
	}
	if deeper {
		value = m.rename(value, stored, jsontext.Pointer("/"+rest))
	} else if id, ok := rawjson.Text(stored); ok && m.ids[id] != "" {
		value = quoted(m.ids[id])
	}
	members, err := rawjson.Members(object)
	if err != nil {
		return object
	}
	return rawjson.Object(rawjson.Set(members, name, value))
}

// refer writes the masked blobs of an event, and makes l refer to them.
func (m *masking) refer(ctx context.Context, l *line.Line, e *event.Event) error {
	spilled, _, _ := e.Spilled()
	for _, d := range e.Blobs() {
		if d == spilled {
			continue
		}
		ref, err := m.body(ctx, d)
		if err != nil {
			return err
		}
		l.Blobs = append(l.Blobs, string(ref.Blob))
		if ref.Blob != d {
			l.Data = referTo(l.Data, d, ref)
			l.Metadata = referTo(l.Metadata, d, ref)
			l.Extras = referTo(l.Extras, d, ref)
		}
	}
	slices.Sort(l.Blobs)
	l.Blobs = slices.Compact(l.Blobs)
	return nil
}

// body writes the masked body of a blob once.
func (m *masking) body(ctx context.Context, d event.Digest) (ref event.BlobRef, err error) {
	if ref, ok := m.bodies[d]; ok {
		return ref, nil
	}
	r, err := m.shown.OpenBlob(ctx, d)
	if err != nil {
		return ref, err
	}
	body, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return ref, err
	}
	ref = event.BlobRef{Blob: event.DigestOf(body), Bytes: int64(len(body))}
	m.bodies[d] = ref
	if m.blobs[ref.Blob] {
		return ref, nil
	}
	m.blobs[ref.Blob] = true
	return ref, m.blobLine(ref.Blob, body)
}

// referTo replaces a digest in JSON, and the size beside it.
func referTo(text []byte, old event.Digest, ref event.BlobRef) []byte {
	const size = `,"bytes":`
	parts := bytes.Split(text, []byte(`"`+string(old)+`"`))
	for i := range parts[1:] {
		part := &parts[i+1]
		if rest, ok := bytes.CutPrefix(*part, []byte(size)); ok {
			rest = bytes.TrimLeft(rest, "0123456789")
			*part = append(strconv.AppendInt([]byte(size), ref.Bytes, 10), rest...)
		}
	}
	return bytes.Join(parts, []byte(`"`+string(ref.Blob)+`"`))
}

// without is an object without some members. Another value stays.
func without(object jsontext.Value, names ...string) jsontext.Value {
	members, err := rawjson.Members(object)
	if err != nil || len(names) == 0 {
		return object
	}
	return rawjson.Object(slices.DeleteFunc(members, func(m rawjson.Member) bool { return slices.Contains(names, m.Name) }))
}

// quoted is a text without special characters as JSON.
func quoted(text string) jsontext.Value { return jsontext.Value(`"` + text + `"`) }
