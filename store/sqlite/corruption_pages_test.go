package sqlite

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/witness"
)

// everyByte makes the damage tests flip every byte of the file.
var everyByte = flag.Bool("thorough", false, "damage every byte")

// seed seeds the random choices.
const seed = 20261120

// counts counts the effects of damage to the file.
type counts struct{ tried, noticed, harmless int }

func (n counts) String() string {
	return fmt.Sprintf("%d noticed, %d in unused bytes, 0 unnoticed", n.noticed, n.harmless)
}

// TestPages overwrites every page of the file in several ways.
func TestPages(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 1))
	const size = pageSize
	var sum counts
	for name, damage := range map[string]func(page []byte){
		"zeroed": func(page []byte) { clear(page) },
		"noise": func(page []byte) {
			for i := range page {
				page[i] = byte(random.Uint32())
			}
		},
		"half":       func(page []byte) { clear(page[len(page)/2:]) },
		"first half": func(page []byte) { clear(page[:len(page)/2]) },
		"other":      func(page []byte) { copy(page, p.file[size:2*size]) },
		"shifted":    func(page []byte) { copy(page[1:], page) },
	} {
		for at := 0; at < len(p.file); at += size {
			if !testsize.Every(at/size, 4) {
				continue
			}
			damaged := bytes.Clone(p.file)
			damage(damaged[at : at+size])
			if bytes.Equal(damaged, p.file) {
				continue
			}
			p.try(damaged, &sum)
			if t.Failed() {
				t.Fatalf("page %d %s", at/size+1, name)
			}
		}
	}
	t.Logf("%d pages, overwritten %d times: %v", len(p.file)/size, sum.tried, sum)
}

// TestHeader flips bits of every byte of the file's header.
func TestHeader(t *testing.T) {
	p := newFixture(t)
	var sum counts
	for bit := range 8 * 100 {
		if !*everyByte && !testsize.Every(bit, 11) {
			continue
		}
		if !*everyByte && bit%8 != 7-bit/8%8 && bit%8 != bit/8%8 {
			continue
		}
		p.try(withFlip(p.file, bit/8, 1<<(bit%8)), &sum)
		if t.Failed() {
			t.Fatalf("bit %d of byte %d", bit%8, bit/8)
		}
	}
	t.Logf("%d flips: %v", sum.tried, sum)
}

// TestSchemaVersions sets schema versions that no program writes.
func TestSchemaVersions(t *testing.T) {
	p := newFixture(t)
	for version, target := range map[int32]error{-1: eventlog.ErrCorrupt, -1 << 31: eventlog.ErrCorrupt, 0: eventlog.ErrCorrupt,
		1: event.ErrVersion, schemaVersion - 1: event.ErrVersion, schemaVersion + 1: event.ErrVersion, 1<<31 - 1: event.ErrVersion} {
		p.put(p.file)
		p.sql(func(c *conn) error { return c.run(fmt.Sprintf("PRAGMA user_version = %d", version)) })
		for _, readOnly := range []bool{false, true} {
			s := New(p.path, Options{ReadOnly: readOnly})
			_, err := collect(s.Sessions(t.Context()))
			if !errors.Is(err, target) {
				t.Errorf("version %d, read-only %v: %v, want %v", version, readOnly, err, target)
			}
			must(t, s.Close())
		}
	}
}

// TestTruncatedFile truncates the file at every page and at some bytes.
func TestTruncatedFile(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 3))
	var sum counts
	for page := 0; page < len(p.file); page += pageSize {
		if !testsize.Every(page/pageSize, 3) {
			continue
		}
		for _, cut := range []int{page, page + 1 + random.IntN(pageSize-1)} {
			if cut == 0 {
				continue // an empty file is a new store
			}
			p.try(p.file[:cut], &sum)
			if t.Failed() {
				t.Fatalf("cut at byte %d of %d", cut, len(p.file))
			}
		}
	}
	t.Logf("%d cuts: %v", sum.tried, sum)
}

// TestFileFlips flips bits all over the file. Flips in unused bytes and in columns
// that no code reads change nothing.
func TestFileFlips(t *testing.T) {
	p := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 2))
	var sum counts
	for at := range p.file {
		if at == lookupByte {
			p.flip(at, 4, &sum)
		}
		flips := testsize.Pick(10, 40, 400)
		if !*everyByte && random.IntN(len(p.file)/flips) > 0 {
			continue
		}
		bit := random.IntN(8)
		p.flip(at, bit, &sum)
	}
	t.Logf("%d flips in %d bytes: %v", sum.tried, len(p.file), sum)
}

// lookupByte is part of a key in table events. Only lookups of single rows read the
// key; reading rows in order does not.
const lookupByte = 4*pageSize + 4090

// flip tries the file with one flipped bit.
func (p *fixture) flip(at, bit int, sum *counts) {
	p.Helper()
	damaged := bytes.Clone(p.file)
	damaged[at] ^= 1 << bit
	p.try(damaged, sum)
	if p.Failed() {
		p.Fatalf("bit %d of byte %d in page %d", bit, at%pageSize, at/pageSize+1)
	}
}

// try reads all sessions of a damaged file. Every event that is read must be one that
// was written. Every missing event must be reported. An append must succeed or fail.
func (p *fixture) try(file []byte, sum *counts) {
	p.Helper()
	p.put(file)
	s := p.open()
	defer func() { _ = s.Close() }()
	sum.tried++
	noticed, silent := false, ""
	for info, err := range s.Sessions(p.Context()) {
		if err == nil {
			err = info.Err
		}
		noticed = noticed || err != nil
		p.WantLocated(p, "the listing", err)
	}
	for session := range p.sessions() {
		f := p.Inspect(p, s, session)
		if f.Detected() {
			noticed = true
		} else if !p.Complete(f) {
			silent = session
		}
	}
	for session := range p.sessions() {
		p.appendTo(s, session)
	}
	switch {
	case silent != "":
		p.Errorf("session %q differs from the written events, and Verify reports nothing", silent)
	case noticed:
		sum.noticed++
	default:
		sum.harmless++
	}
}

func (p *fixture) sessions() iter.Seq[string] {
	return slices.Values([]string{witness.Main, witness.Fork, witness.Other})
}

// appendTo appends to a session of a damaged file. Afterwards the session must have
// written events only.
func (p *fixture) appendTo(s *Store, session string) {
	p.Helper()
	l := eventlog.Open(s)
	head, err := l.Append(p.Context(), session, eventlog.Any(), event.Event{Type: "test:note", Data: []byte("1")})
	p.WantLocated(p, "Append", err)
	written := p.Written(session)
	for e, err := range l.Read(p.Context(), session, eventlog.All().Own()) {
		if err != nil {
			p.WantLocated(p, "reading after an append", err)
			return
		}
		if i := e.Seq - written[0].Seq; e.Head() != head && (i < 0 || i >= int64(len(written)) || e.Head() != written[i].Head()) {
			p.Errorf("after an append session %q shows %v, which was not written", session, &e)
		}
	}
}
