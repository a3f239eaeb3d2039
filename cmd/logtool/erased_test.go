package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/testsize"
)

// Whatever event of a session is erased, each command, page and path of the API shows the rest.
func TestAnErasedEventHidesNothingElse(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "log")
	const one, other = "3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67", "c4d9072e-15ab-4f60-8e7d-2b9a6c3f0d18"
	if code := quiet().run(t.Context(), []string{"--store", whole, "import", filepath.Join("..", "..", "testdata", "transcripts", "samples")}); code != 0 {
		t.Fatal(code)
	}
	for n := 1; n <= 27; n++ {
		if !testsize.Every(n, 4) {
			continue
		}
		store := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(store, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		run := func(args ...string) (code int, out string) {
			var b bytes.Buffer
			a := quiet()
			a.out, a.err = &b, &b
			code = a.run(t.Context(), append([]string{"--store", store}, args...))
			return code, b.String()
		}
		if code, out := run("redact", one, fmt.Sprint(n), "--reason", "test"); code != 0 {
			if strings.Contains(out, "lost") || code == 2 {
				t.Errorf("redact %d: %s", n, out)
			}
			continue // an event that cannot be erased
		}
		for _, command := range [][]string{
			{"show", one}, {"show", one, "--full"}, {"tail", one}, {"history", one}, {"runlog", one}, {"runlog", "--tree", one}, {"files", one}, {"files", one, "--diff"},
			{"calls"}, {"calls", one}, {"diff", one, other}, {"diff", other, one}, {"diff", one + "@5", one}, {"cost", one}, {"cost", "--per", "model"}, {"stats"}, {"stats", one},
			{"tree", one}, {"ls", "--long"}, {"search", "parse"}, {"search", "parse", "--everything"}, {"state", "show", one}, {"state", "replay", one}, {"verify"},
			{"export", one, "--format", "html"}, {"export", one, "--format", "markdown"}, {"export", one, "--format", "jsonl"}, {"export", one, "--format", "anthropic"},
			{"export", one, "--format", "markdown", "--mask-paths"}, {"fork", one}, {"store", "scan"},
		} {
			if code, out := run(command...); code != 0 || strings.Contains(out, "left out") {
				t.Errorf("event %d erased: %s: %d\n%.400s", n, command, code, out)
			}
		}
		erasedPages(t, store, n, one, other)
	}
}

// erasedPages checks that pages and paths of the API have their status.
func erasedPages(t *testing.T, store string, n int, one, other string) {
	t.Helper()
	onServer(t, store, func(address, token string) error {
		paths := []string{"/", "/search?q=parse", "/stats", "/diff?a=" + one + "&b=" + other, "/api/v1/sessions", "/api/v1/stats", "/api/v1/search?q=parse"}
		for _, part := range []string{"", "/tree", "/timeline", "/at/5", "/at/27", "/files", "/verify"} {
			paths = append(paths, "/s/"+one+part)
		}
		for _, part := range []string{"", "/events", "/history", "/state", "/files", "/cost", "/tree", "/verify"} {
			paths = append(paths, "/api/v1/sessions/"+one+part)
		}
		for _, path := range paths {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			var body bytes.Buffer
			_, err = body.ReadFrom(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("event %d erased: GET %s: %s, %v\n%.300s", n, path, answer.Status, err, body.String())
			}
		}
		return nil
	})
}
