// Package documenttest names what the tests of formats of documents share.
package documenttest

import (
	"github.com/convlog/convlog/interop/internal/importtest"
)

// These are importtest's.
var (
	NewLog   = importtest.NewLog
	Source   = importtest.Source
	ReadFile = importtest.ReadFile
	Load     = importtest.Load
	Sessions = importtest.Sessions
	Events   = importtest.Events
	Start    = importtest.Start
	Messages = importtest.Messages
	Path     = importtest.Path
	Draw     = importtest.Draw
	Dump     = importtest.Dump
	Again    = importtest.Again
	Grows    = importtest.Grows
	Fuzz     = importtest.Fuzz
)

// Same complains where two values differ.
func Same[T any](t importtest.TB, what string, want, got T) {
	t.Helper()
	importtest.Same(t, what, want, got)
}
