package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.jsonl", "b.txt", ".c.jsonl", "d/e.jsonl", "d/f/g.jsonl", ".h/i.jsonl", "[x]"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string][]string{
		"*.jsonl":     {"a.jsonl"},
		"**/*.jsonl":  {"a.jsonl", "d/e.jsonl", "d/f/g.jsonl"},
		"d/**":        {"d/e.jsonl", "d/f", "d/f/g.jsonl"},
		"**/f":        {"d/f"},
		"d/*/?.jsonl": {"d/f/g.jsonl"},
		".*.jsonl":    {".c.jsonl"},
		".h/*":        {".h/i.jsonl"},
		"*.gz":        nil,
		"no/where/*":  nil,
		"[ab].*":      {"a.jsonl", "b.txt"},
		"**/**/e*":    {"d/e.jsonl"},
	}
	for pattern, want := range tests {
		got, err := glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		for i := range got {
			got[i], _ = filepath.Rel(dir, got[i])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	if _, err := glob("[a"); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("a bad pattern gives %v", err)
	}
	t.Chdir(dir)
	if got, err := glob("d/*.jsonl"); err != nil || !cmp.Equal(got, []string{"d/e.jsonl"}) {
		t.Errorf("a relative pattern gives %q, %v", got, err)
	}
}
