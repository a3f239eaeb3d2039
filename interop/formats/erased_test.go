package formats_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/store/memory"
)

// copied copies the transcripts of a format to a folder of the test.
func copied(t *testing.T, format interop.Format) *importtest.Folder {
	t.Helper()
	return importtest.CopyFolders(t, t.TempDir(), folders(t, format)...)
}

// Law: nobody can guess an erased word from the rest of the log. The words are in
// messages, titles, summaries, arguments and prompts of the transcripts.
func TestErasedWordsCannotBeGuessed(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			t.Parallel()
			folder := copied(t, format)
			folder.Write(t, importtest.Unchanged)
			log := importtest.NewLog(t)
			importtest.Files(t, log, format, folder.Path)
			whole, words := importtest.Contents(t, log), importtest.Words(t, log)
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
			enough, tested := testsize.Pick(1, 2, 40), 0
			for _, word := range words {
				if tested == enough {
					break
				}
				if folder.Guess(t, format, word, whole) {
					tested++
				}
			}
			if tested < min(enough, 3) {
				t.Errorf("%d words of %d are content", tested, len(words))
			}
		})
	}
}

// Law: whatever is redacted, an import of the same files or of earlier versions writes
// nothing, and an import of later versions writes nothing of the redacted records.
func TestNothingComesBack(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			t.Parallel()
			folder := copied(t, format)
			for seed := range testsize.Pick[uint64](1, 2, 60) {
				random := rand.New(rand.NewPCG(seed, 0))
				odds := []float64{0.5, 0.05, 0.95, 0.2, 0.8}[seed%5]
				some := func(*event.Event) bool { return random.Float64() < odds }
				folder.StaysAway(t, format, random, some)
				folder.StaysAwayFromGrowth(t, format, random, some)
				if t.Failed() {
					t.Fatal("seed", seed)
				}
			}
		})
	}
}

// A transcript with a four-digit number in a message of the user. The path is the same for
// every number.
var numbered = map[string]func(number string) string{
	"messages": func(number string) string {
		return `[{"role":"system","content":"Be brief."},{"role":"user","content":"My PIN is ` + number + `."},` +
			`{"role":"assistant","content":"Noted."},{"role":"user","content":"Thanks."},{"role":"assistant","content":"Welcome."}]`
	},
	"claude": func(number string) string {
		return `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":"My PIN is ` + number + `."}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-03-01T10:00:01Z","message":{"role":"assistant","id":"m","content":[{"type":"text","text":"Noted."}]}}
{"type":"last-prompt","sessionId":"s","leafUuid":"u2"}
`
	},
	"codex": func(number string) string {
		return `{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"01900001-0000-7000-8000-0000000000aa","cwd":"/"}}
{"timestamp":"2026-03-01T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"My PIN is ` + number + `."}]}}
{"timestamp":"2026-03-01T10:00:02Z","type":"event_msg","payload":{"type":"user_message","message":"My PIN is ` + number + `."}}
{"timestamp":"2026-03-01T10:00:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Noted."}]}}
`
	},
	"mini-swe-agent": func(number string) string {
		return `{"trajectory_format":"mini-swe-agent-1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"The PIN is ` + number + `."},` +
			`{"role":"assistant","content":"Noted."}],"info":{"exit_status":"Submitted"}}`
	},
	"entire": func(number string) string {
		return `{"v":1,"agent":"codex","type":"user","ts":"2026-05-04T06:00:00.000Z","content":[{"text":"My PIN is ` + number + `."}]}
{"v":1,"agent":"codex","type":"assistant","ts":"2026-05-04T06:00:01.000Z","content":[{"type":"text","text":"Noted."}]}
`
	},
}

// Law: once the events with a number are redacted, the logs of all candidates are equal.
func TestAnErasedNumberCannotBeGuessed(t *testing.T) {
	candidates := testsize.Pick(5, 10, 10000)
	for name, text := range numbered {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			format := named(t, name)
			path := "last_mini_run.traj.json"
			var first []importtest.Content
			for i := range candidates {
				number := fmt.Sprintf("%04d", i*(10000/candidates))
				log := eventlog.Open(memory.New())
				importtest.Text(t, log, format, path, text(number))
				says := func(e *event.Event) bool { return strings.Contains(string(e.Data), number+".") }
				if n := importtest.Redact(t, log, says); n < 1 {
					t.Fatalf("%d events say %s", n, number)
				}
				rest := importtest.Remains(t, log)
				if first == nil {
					first = rest
				}
				if !reflect.DeepEqual(first, rest) {
					importtest.Same(t, number, first, rest)
					t.FailNow()
				}
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
