package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// inspection is what an event tells by itself, without those before it.
type inspection struct {
	hash   Hash
	link   link
	faults []fault
	facts  facts
	broken []string       // rules that an import broke
	note   *RedactionNote // of the redacted events it names
	erased bool
}

// fault is something wrong with one event.
type fault struct {
	rule, detail string
	blob         Digest // that is wrong, if it is a blob
}

func (n *inspection) fault(rule, detail string) {
	n.faults = append(n.faults, fault{rule: rule, detail: detail})
}

// inspector inspects events one by one. It is for one goroutine; what it
// learns of blobs is shared.
type inspector struct {
	log   *Log
	blobs *blobChecks
	scan  rawjson.Scanner
}

// inspect checks what e tells by itself, and fills n with it. An error is what
// kept it from being looked at.
func (i *inspector) inspect(ctx context.Context, e *Event, n *inspection) (err error) {
	n.hash, n.link = e.Hash(), e.link()
	i.form(e, n)
	if bytes.Contains(e.Metadata, []byte(`"`+brokenKey+`"`)) {
		n.broken = e.broken()
	}
	sound := true
	if !e.Redacted() {
		sound, err = i.needs(ctx, e, n)
	}
	switch {
	case err != nil:
	case e.Redacted(): // it may have been just now
		i.erased(e, n)
	case sound:
		i.payload(e, n)
	}
	if _, _, spilled := e.Spilled(); spilled {
		e.Data = nil // it may be large
	}
	return err
}

// form checks the JSON of the line besides its data.
func (i *inspector) form(e *Event, n *inspection) {
	if meta := e.line[e.off.metaStart:e.off.metaEnd]; !e.Redacted() && (len(meta) == 0 || i.scan.SoundMembers(meta)) {
		return
	}
	if err := e.checkForm(); err != nil {
		n.fault("payload", err.Error())
	}
}

func (i *inspector) erased(e *Event, n *inspection) {
	n.erased = true
	if f, err := e.pathFacts(); err != nil {
		n.fault("payload", err.Error())
	} else {
		n.facts = *f
	}
}

// needs checks e's blobs. sound says that its data is there.
func (i *inspector) needs(ctx context.Context, e *Event, n *inspection) (sound bool, err error) {
	spilled, size, _ := e.Spilled()
	sound = true
	for _, d := range e.Blobs() {
		var bad error
		if d == spilled {
			bad = i.unspill(ctx, e, size)
			sound = bad == nil
		} else {
			bad = i.blobs.check(ctx, i.log, d)
		}
		switch {
		case bad == nil:
		case ctx.Err() != nil || errors.Is(bad, ErrClosed):
			return false, bad
		case errors.Is(bad, ErrBlobNotFound) && i.log.erasedSince(ctx, e):
			return false, nil
		default:
			n.faults = append(n.faults, fault{"blob", bad.Error(), d})
		}
	}
	return sound, nil
}

var errBlobSize = errors.New("the blob has another size than the line says")

// unspill reads e's data.
func (i *inspector) unspill(ctx context.Context, e *Event, size int64) error {
	data, err := i.log.readBlob(ctx, e.rare.digest)
	if err != nil {
		return err
	}
	if int64(len(data)) != size {
		return fmt.Errorf("%w: %d bytes, not %d", errBlobSize, len(data), size)
	}
	e.Data = jsontext.Value(data)
	return nil
}

// payload checks the data of an event that has it.
func (i *inspector) payload(e *Event, n *inspection) {
	if e.Type == MessageAdded {
		if scanMessage(&i.scan, e.Data, &n.facts) {
			return
		}
	}
	if !i.scan.Sound(e.Data) {
		if err := checkData(e.Data); err != nil {
			n.fault("payload", err.Error())
			return
		}
	}
	p, err := e.checkPayload()
	if err != nil {
		n.fault(ruleOf(err), err.Error())
	}
	switch p := p.(type) {
	case Message, HeadMove, Fork, Loss:
		n.facts = *factsOf(p, e.Data)
	case RedactionNote:
		// In a copy it speaks of the original.
		if _, copied := e.MetadataValue(forkOriginKey); !copied {
			n.note = &p
		}
	}
}

// ruleOf names the rule that an error of a payload speaks of.
func ruleOf(err error) string {
	switch {
	case errors.Is(err, ErrVersion):
		return "version"
	case errors.Is(err, ErrInvalidBlob):
		return "blob"
	case errors.Is(err, ErrInvalidTree):
		return "tree"
	case errors.Is(err, ErrInvalidRole):
		return "unknown_role"
	}
	if name, ok := conversational(err); ok {
		return name
	}
	return "payload"
}

// blobChecks remembers blobs that were found sound, for all who inspect.
type blobChecks struct {
	mu    sync.Mutex
	sound map[Digest]struct{}
}

// maxSound bounds how many are remembered.
const maxSound = 1 << 20

func (b *blobChecks) check(ctx context.Context, l *Log, d Digest) error {
	b.mu.Lock()
	_, sound := b.sound[d]
	b.mu.Unlock()
	if sound {
		return nil
	}
	r, err := l.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sound == nil || len(b.sound) >= maxSound {
		b.sound = map[Digest]struct{}{}
	}
	b.sound[d] = struct{}{}
	return nil
}
