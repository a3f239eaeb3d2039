package transfer_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line/linetest"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

const maxFuzzed = 64 << 10 // larger inputs find nothing more, and take their time

// Import of any bytes: it refuses a line with an error that names the reason, or stores
// whole, sound sessions. A second import of the same bytes stores nothing.
func FuzzImport(f *testing.F) {
	golden := eventlog.Open(jsonl.New("../../testdata/golden", jsonl.Options{ReadOnly: true}))
	defer golden.Close()
	for info, err := range golden.Sessions(f.Context()) {
		if err != nil {
			f.Fatal(err)
		}
		var stream bytes.Buffer
		if err := transfer.Export(f.Context(), golden, &stream, info.ID); err != nil {
			f.Fatal(err)
		}
		var tree bytes.Buffer
		if _, err := transfer.ExportTree(f.Context(), golden, &tree, info.ID); err != nil {
			f.Fatal(err)
		}
		if tree.Len() < maxFuzzed/4 {
			f.Add(tree.Bytes())
			f.Add(tree.Bytes()[:tree.Len()*3/4])
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
		for _, stream := range [][]byte{stream, linetest.Rechain(stream)} {
			log := eventlog.Open(memory.New())
			first, err := transfer.Import(t.Context(), log, bytes.NewReader(stream))
			if err != nil && !typed(err) {
				t.Fatalf("no error of the log's: %v", err)
			}
			imported(t, log, first)
			again, other := transfer.Import(t.Context(), log, bytes.NewReader(stream))
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
	for _, sentinel := range []error{event.ErrInvalid, eventlog.ErrCorrupt, eventlog.ErrConflict, event.ErrForeign, event.ErrVersion,
		eventlog.ErrNotFound, eventlog.ErrEventNotFound} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return errors.As(err, new(*transfer.TreeError))
}

// imported makes sure that the log holds the sessions that were adopted, whole
// and sound, and no others.
func imported(t *testing.T, log *eventlog.Log, adopted []transfer.Result) {
	t.Helper()
	heads := map[string]event.Head{}
	for _, a := range adopted {
		heads[a.Session] = a.Head
	}
	found := map[string]event.Head{}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil || info.Err != nil {
			t.Fatal(err, info.Err)
		}
		found[info.ID] = info.Last.Head()
		if info.Last.More() > 0 {
			t.Errorf("session %q ends inside an append", info.ID)
		}
		report, err := verify.Session(t.Context(), log, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Defects {
			// Events of a newer version are stored. Verify alone checks relations between events
			// that readers do not need.
			if !slices.Contains([]string{"version", "duplicate", "redaction"}, d.Rule) {
				t.Errorf("imported, but %v", d)
			}
		}
		for _, err := range log.Read(t.Context(), info.ID, eventlog.All().OnPath()) {
			if err != nil && !errors.Is(err, event.ErrVersion) {
				t.Errorf("imported, but its path cannot be read: %v", err)
			}
		}
	}
	delete(found, storenotes.Session) // the notes of redactions are this store's own
	delete(heads, storenotes.Session)
	if diff := cmp.Diff(heads, found); diff != "" {
		t.Errorf("sessions (-adopted +found):\n%s", diff)
	}
}
