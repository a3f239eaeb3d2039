package eventlog_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/storetest"
)

// Whatever is imported as an export: what is refused is refused with an error
// that says why, what is accepted is whole and sound, and importing it again
// stores nothing.
func FuzzImport(f *testing.F) {
	golden := eventlog.Open(jsonl.New(goldens, jsonl.Options{ReadOnly: true}))
	defer golden.Close()
	for info, err := range golden.Sessions(f.Context()) {
		if err != nil {
			f.Fatal(err)
		}
		var stream bytes.Buffer
		if err := golden.Export(f.Context(), &stream, info.ID); err != nil {
			f.Fatal(err)
		}
		if stream.Len() < maxFuzzed/4 {
			f.Add(stream.Bytes())
			f.Add(bytes.ReplaceAll(stream.Bytes(), []byte("\n"), []byte("\r\n\n")))
			f.Add(stream.Bytes()[:stream.Len()*3/4])
		}
	}
	f.Add([]byte("{\"blob\":\"x\",\"bytes\":-1}\n{}\nnull"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > maxFuzzed {
			return
		}
		for _, stream := range [][]byte{stream, eventlog.Rechain(stream)} {
			log := eventlog.Open(storetest.NewMemory())
			first, err := log.Import(t.Context(), bytes.NewReader(stream))
			if err != nil && !typed(err) {
				t.Fatalf("no error of the log's: %v", err)
			}
			imported(t, log, first)
			again, other := log.Import(t.Context(), bytes.NewReader(stream))
			if (other == nil) != (err == nil) {
				t.Fatalf("imported again: %v, before: %v", other, err)
			}
			for _, a := range again {
				if a.Stored > 0 {
					t.Fatalf("imported again: %+v", a)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// typed reports whether an error is one of the contract's.
func typed(err error) bool {
	for _, sentinel := range []error{eventlog.ErrInvalid, eventlog.ErrCorrupt, eventlog.ErrConflict, eventlog.ErrForeign, eventlog.ErrVersion,
		eventlog.ErrNotFound, eventlog.ErrEventNotFound} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// imported makes sure that the log holds the sessions that were adopted, whole
// and sound, and no others.
func imported(t *testing.T, log *eventlog.Log, adopted []eventlog.Adopted) {
	t.Helper()
	heads := map[string]eventlog.Head{}
	for _, a := range adopted {
		heads[a.Session] = a.Head
	}
	found := map[string]eventlog.Head{}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil || info.Err != nil {
			t.Fatal(err, info.Err)
		}
		found[info.ID] = info.Last.Head()
		if info.Last.More() > 0 {
			t.Errorf("session %q ends inside an append", info.ID)
		}
		report, err := log.Verify(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Defects {
			// What this program is too old for is kept; relations between events
			// that nobody needs to read them are for Verify.
			if !slices.Contains([]string{"version", "duplicate", "redaction"}, d.Rule) {
				t.Errorf("imported, but %v", d)
			}
		}
		if _, err := collected(log.ActivePath(t.Context(), info.ID)); err != nil && !errors.Is(err, eventlog.ErrVersion) {
			t.Errorf("imported, but its path cannot be read: %v", err)
		}
	}
	if diff := cmp.Diff(heads, found); diff != "" {
		t.Errorf("sessions (-adopted +found):\n%s", diff)
	}
}
