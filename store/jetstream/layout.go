package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	nats "github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	// formatVersion is the version of messages that this program writes, and the newest it
	// reads.
	formatVersion = 1
	// streamsVersion is the version of streams that this program creates, and the newest it
	// opens.
	streamsVersion = 3
)

// Keys of a stream's metadata.
const (
	versionKey = "convlog.version"
	shardsKey  = "convlog.shards"
)

// layout is the streams of a log.
type layout struct {
	shards  []*stream // sessions, by hash of their ids
	blobs   *stream
	control *stream // locks, leases, watermarks, and the record of an erasure
}

// all are all streams of the log.
func (l *layout) all() []*stream { return append([]*stream{l.control, l.blobs}, l.shards...) }

// stream is a stream of the log.
type stream struct {
	store    *Store
	client   *client
	control  *stream // of the log
	name     string
	base     string // the subjects begin with it
	replicas int
	reached  atomic.Uint64 // the highest sequence that this process has stored or read
	behind   error         // it had lost messages when the log was opened, so it takes no appends
}

// shard is the stream of a session.
func (l *layout) shard(session string) *stream {
	sum := sha256.Sum256([]byte(session))
	return l.shards[binary.BigEndian.Uint64(sum[:])%uint64(len(l.shards))]
}

// Subjects of a session. The id is in base64, so any bytes will do.
const (
	framesSubject   = "frames"
	replacedSubject = "replaced"
	indexSubject    = "index"
)

// subject is a subject of the stream.
func (st *stream) subject(tokens ...string) string { return st.base + strings.Join(tokens, ".") }

// of is a subject of a session.
func (st *stream) of(session, kind string) string {
	return st.subject("session", encodeName(session), kind)
}

func encodeName(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// sessionOf returns the session of a subject.
func (st *stream) sessionOf(subject string) (session string, ok bool) {
	rest, ok := strings.CutPrefix(subject, st.subject("session", ""))
	if !ok {
		return "", false
	}
	name, _, _ := strings.Cut(rest, ".")
	id, err := base64.RawURLEncoding.Strict().DecodeString(name)
	return string(id), err == nil
}

// decodeLast returns the name in the last token of a subject.
func (st *stream) decodeLast(subject string) (name string, ok bool) {
	token := subject[strings.LastIndexByte(subject, '.')+1:]
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return string(text), err == nil
}

// maxSession is the length of the longest session id, in bytes.
const maxSession = 200

func checkSession(session string) error {
	if session == "" || len(session) > maxSession {
		return fmt.Errorf("%w: it has 1 to %d bytes, not %d", event.ErrInvalidSession, maxSession, len(session))
	}
	return nil
}

func (s *Store) streamName(kind string) string { return s.options.Prefix + "_" + kind }

func (s *Store) stream(c *client, kind string) *stream {
	return &stream{store: s, client: c, name: s.streamName(kind), base: s.options.Prefix + "." + kind + "."}
}

// newLayout is the layout of a log with a number of shards.
func (s *Store) newLayout(c *client, shards int) *layout {
	l := &layout{blobs: s.stream(c, "blobs"), control: s.stream(c, "control")}
	for n := range shards {
		l.shards = append(l.shards, s.stream(c, strconv.Itoa(n)))
	}
	for _, st := range l.all() {
		st.control = l.control
	}
	return l
}

// config is the configuration of a new stream.
func (s *Store) config(st *stream, shards, replicas int) nats.StreamConfig {
	config := nats.StreamConfig{
		Name: st.name, Subjects: []string{st.base + ">"}, Storage: nats.FileStorage, Retention: nats.LimitsPolicy,
		Discard: nats.DiscardNew, Replicas: replicas, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Duplicates: 2 * time.Minute, AllowDirect: true, AllowAtomicPublish: true, AllowMsgTTL: true,
		Metadata: map[string]string{versionKey: strconv.Itoa(streamsVersion), shardsKey: strconv.Itoa(shards)},
	}
	if st.name != s.streamName("blobs") && st.name != s.streamName("control") {
		config.RePublish = &nats.RePublish{Source: st.base + ">", Destination: s.liveSubject(st.base + ">"), HeadersOnly: true}
	}
	config.AllowRollup = st.name == s.streamName("control")
	return config
}

// liveSubject is the subject to which the server repeats a stored message.
func (s *Store) liveSubject(subject string) string {
	return s.options.Prefix + ".live." + strings.TrimPrefix(subject, s.options.Prefix+".")
}

// reading returns the layout of the log for a call that reads. It is nil if there is no
// log yet.
func (s *Store) reading(ctx context.Context) (*layout, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	if l := s.layout.Load(); l != nil {
		return l, nil
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.find(ctx, c)
}

// writable returns the layout of the log for a call that writes. It creates the log if
// necessary.
func (s *Store) writable(ctx context.Context) (*layout, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if s.options.ReadOnly {
		return nil, eventlog.ErrReadOnly
	}
	l, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkPayload(s.client.Load()); l != nil || err != nil {
		return l, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.create(ctx, s.client.Load())
}

// find looks for the log. The control stream is created first, so its metadata is the
// authority for the number of shards. A log whose creation was interrupted counts as
// missing.
func (s *Store) find(ctx context.Context, c *client) (*layout, error) {
	if l := s.layout.Load(); l != nil {
		return l, nil
	}
	l, err := s.findStreams(ctx, c)
	switch {
	case err != nil:
		return nil, s.failure(err)
	case l == nil && (s.options.ReadOnly || s.options.MustExist):
		return nil, fmt.Errorf("%w: the account has no streams %s_*", ErrNoLog, s.options.Prefix)
	case l != nil:
		s.layout.Store(l)
	}
	return l, nil
}

// check returns the layout that the control stream describes.
func (s *Store) check(c *client, info *nats.StreamInfo) (*layout, error) {
	version, err := strconv.Atoi(info.Config.Metadata[versionKey])
	shards, err2 := strconv.Atoi(info.Config.Metadata[shardsKey])
	switch {
	case err != nil || err2 != nil || shards < 1 || shards > maxShards:
		return nil, fmt.Errorf("%w: stream %s belongs to another program: choose another prefix", ErrForeign, info.Config.Name)
	case version != streamsVersion:
		return nil, &event.VersionError{What: "jetstream format", Got: version, Max: streamsVersion}
	case s.options.Shards != 0 && s.options.Shards != shards:
		return nil, fmt.Errorf("%w: the log has shards=%d, not %d: leave out the option shards", ErrForeign, shards, s.options.Shards)
	}
	return s.newLayout(c, shards), nil
}

// checkStream compares a stream with the configuration that the log needs.
func (s *Store) checkStream(st *stream, info *nats.StreamInfo) error {
	config := info.Config
	want := s.config(st, 1, 1)
	st.replicas = config.Replicas
	var wrong string
	switch {
	case len(config.Subjects) != 1 || config.Subjects[0] != want.Subjects[0]:
		wrong = fmt.Sprintf("has the subjects %q, not %q", config.Subjects, want.Subjects)
	case config.Replicas < s.options.Replicas:
		wrong = fmt.Sprintf("has replicas=%d, not %d: add replicas to the stream, or lower the option", config.Replicas, s.options.Replicas)
	case config.Storage != want.Storage:
		wrong = "is in memory, not in files"
	case config.Retention != want.Retention || config.Discard != want.Discard || config.MaxMsgsPerSubject > 0 || config.MaxAge > 0:
		wrong = "loses old messages: set retention limits, discard new, no maximum age, and no maximum of messages for each subject"
	case !config.AllowDirect || !config.AllowAtomicPublish || !config.AllowMsgTTL:
		wrong = "must allow direct gets, atomic publishes and TTLs of messages: use a server of version 2.12 or later"
	case config.DenyDelete || config.DenyPurge || config.Sealed:
		wrong = "is sealed, or denies the deletion of messages"
	case want.RePublish != nil && (config.RePublish == nil || config.RePublish.Source != want.RePublish.Source || config.RePublish.Destination != want.RePublish.Destination):
		wrong = "does not republish its messages to " + want.RePublish.Destination
	default:
		return nil
	}
	return fmt.Errorf("%w: stream %s %s", ErrForeign, st.name, wrong)
}

// create creates the streams that are missing, and completes the log with its id. Of several
// processes, the first one fixes the number of shards.
func (s *Store) create(ctx context.Context, c *client) (*layout, error) {
	shards, replicas := max(s.options.Shards, 1), max(s.options.Replicas, 1)
	control := s.stream(c, "control")
	err := control.create(ctx, s.config(control, shards, replicas))
	if isCode(err, codeNameExists) {
		var info *nats.StreamInfo
		if info, err = control.info(ctx, nil); err == nil {
			var l *layout
			if l, err = s.check(c, info); err == nil {
				shards, replicas = len(l.shards), info.Config.Replicas
			}
		}
	}
	l := s.newLayout(c, shards)
	for _, st := range l.all()[1:] {
		if err == nil {
			err = st.create(ctx, s.config(st, shards, replicas))
			if isCode(err, codeNameExists) {
				err = nil // find checks it
			}
		}
	}
	if err == nil {
		_, err = l.identify(ctx)
	}
	if err != nil {
		return nil, wrap("create the streams "+s.options.Prefix+"_*", s.refusal(err))
	}
	return s.awaitLayout(ctx, c)
}

// awaitLayout looks for a log that was just created. A server of a cluster may learn of
// the streams later than the server that answered.
func (s *Store) awaitLayout(ctx context.Context, c *client) (*layout, error) {
	for began := time.Now(); ; {
		l, err := s.find(ctx, c)
		switch {
		case l != nil || err != nil:
			return l, err
		case time.Since(began) > longestPause:
			return nil, fmt.Errorf("%w: a stream was removed while the log was created", eventlog.ErrMoved)
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refusal is the error of a server that does not create a stream.
func (s *Store) refusal(err error) error {
	err = s.failure(err)
	var answer *apiError
	if errors.As(err, &answer) && !errors.Is(err, ErrForeign) && !errors.Is(err, eventlog.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

func (st *stream) create(ctx context.Context, config nats.StreamConfig) error {
	var info nats.StreamInfo
	return st.client.request(ctx, "$JS.API.STREAM.CREATE."+st.name, config, &info)
}

// infoRequest selects the subjects in the answer of info.
type infoRequest struct {
	Subjects string `json:"subjects_filter,omitempty"`
	Offset   int    `json:"offset,omitempty"`
}

// info asks the leader for the state of the stream.
func (st *stream) info(ctx context.Context, subjects *infoRequest) (*nats.StreamInfo, error) {
	if subjects == nil {
		subjects = &infoRequest{}
	}
	var info nats.StreamInfo
	if err := st.client.request(ctx, "$JS.API.STREAM.INFO."+st.name, subjects, &info); err != nil {
		return nil, err
	}
	return &info, nil
}
