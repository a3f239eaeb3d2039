package flowhttp_test

import (
	"bufio"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/internal/testsize"
)

// Many viewers follow many running sessions. A viewer that stops reading stops no turn, and
// no other viewer.
func TestManyViewers(t *testing.T) {
	t.Parallel()
	sessions, each := testsize.Pick(3, 10, 100), 10
	pace := make(chan struct{})
	s := newServer(t, chat{pace}, options{})
	for i := range sessions {
		s.call("POST", fmt.Sprintf("/sessions/s%d/inputs", i), fmt.Sprintf(`{"text":%q}`, strings.Repeat("word ", 20)), 202)
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var mu sync.Mutex
	var delays []time.Duration
	var ready, done sync.WaitGroup
	for i := range sessions * each {
		session := fmt.Sprintf("s%d", i/each)
		ready.Add(1)
		if i%each == 0 { // it never reads
			r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/sessions/"+session+"/events", nil)
			answer, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { answer.Body.Close() })
			ready.Done()
			continue
		}
		done.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/sessions/"+session+"/events", nil)
			answer, err := s.Client().Do(r)
			if err != nil {
				t.Error(err)
				ready.Done()
				return
			}
			defer answer.Body.Close()
			begun := false
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				line := lines.Text()
				if !begun && strings.Contains(line, `"step_started"`) {
					begun = true
					ready.Done()
				}
				if at, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(at, `"turn_completed"`) {
					_, at, _ := strings.Cut(at, `"time":"`)
					at, _, _ = strings.Cut(at, `"`)
					stored, _ := time.Parse(time.RFC3339Nano, at)
					mu.Lock()
					delays = append(delays, time.Since(stored))
					mu.Unlock()
					return
				}
			}
			t.Error("the stream ended before the turn")
		})
	}
	ready.Wait()
	runtime.GC()
	runtime.ReadMemStats(&during)
	go func() {
		for {
			select {
			case pace <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	done.Wait()
	slices.Sort(delays)
	if len(delays) != sessions*(each-1) {
		t.Fatalf("%d viewers saw the end, want %d", len(delays), sessions*(each-1))
	}
	t.Logf("%d viewers of %d sessions: %d KiB each with client and server, from the event to the viewer %v median, %v at most",
		sessions*each, sessions, (during.HeapInuse+during.StackInuse-before.HeapInuse-before.StackInuse)/uint64(sessions*each)/1024, delays[len(delays)/2], delays[len(delays)-1])
}
