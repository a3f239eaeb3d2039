package jsonl_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/transfer"
)

// A conversion that is killed during a write leaves a torn tail. Running it again must
// complete the copy.
func TestAdoptAfterTornTail(t *testing.T) {
	ctx := context.Background()
	src := eventlog.Open(jsonl.New(t.TempDir()))
	defer src.Close()
	for _, text := range []string{"one", "two", "three"} {
		e := event.UserMessage(text)
		if _, err := src.Append(ctx, "s", eventlog.Any(), e); err != nil {
			t.Fatal(err)
		}
	}
	var whole bytes.Buffer
	if err := transfer.Export(ctx, src, &whole, "s"); err != nil {
		t.Fatal(err)
	}
	for cut := range whole.Len() {
		if !testsize.Every(cut, 17) {
			continue
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), whole.Bytes()[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		dst := eventlog.Open(jsonl.New(dir, jsonl.Options{NoSync: true}))
		for _, err := range transfer.Convert(ctx, dst, src) {
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
		if err := dst.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
		if err != nil || !bytes.Equal(got, whole.Bytes()) {
			t.Fatalf("cut at %d: the copy differs (%v)", cut, err)
		}
	}
}
