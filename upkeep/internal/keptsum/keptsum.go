// Package keptsum computes the digest of the members that a redaction keeps.
package keptsum

import (
	"crypto/sha256"
	"hash"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// Sum computes event.RedactionNote.Kept.
type Sum struct {
	sum   hash.Hash
	empty bool
}

// New begins a digest.
func New() *Sum { return &Sum{sum: sha256.New(), empty: true} }

// Add adds the kept members of the next redacted event.
func (k *Sum) Add(kept jsontext.Value) {
	k.empty = false
	k.sum.Write(kept)
	k.sum.Write([]byte{'\n'})
}

// Digest is the digest of all events so far; empty if there was none.
func (k *Sum) Digest() event.Digest {
	if k.empty {
		return ""
	}
	return event.Digest(line.Digest(line.Hash(k.sum.Sum(nil))))
}
