package pi_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/pi"
)

const (
	transcripts = "../../testdata/transcripts/pi"
	hives       = "0195d001-aaaa-7aaa-8aaa-000000000001"
	welsh       = "0195d001-aaaa-7aaa-8aaa-000000000002"
	honey       = "7c1d2e3f-4a5b-4c6d-8e7f-000000000003"
)

var (
	hivesFile = filepath.Join(transcripts, "--home-ada-beehive--", "2026-03-01T09-10-00-000Z_"+hives+".jsonl")
	welshFile = filepath.Join(transcripts, "--home-ada-beehive--", "2026-03-01T11-00-00-000Z_"+welsh+".jsonl")
	honeyFile = filepath.Join(transcripts, "version-1.jsonl")
	upgraded  = filepath.Join(transcripts, "version-1-upgraded.jsonl")
)

// load imports files and folders without an error.
func load(t *testing.T, log *eventlog.Log, paths ...string) interop.Result {
	t.Helper()
	return importtest.Files(t, log, pi.Format{}, paths...)
}

// loadText imports text as a file with the name.
func loadText(t *testing.T, log *eventlog.Log, name, content string) (interop.Result, error) {
	t.Helper()
	return pi.Format{}.Import(t.Context(), log, importtest.Source(name, content))
}

// importLines imports lines without an error or a rejected record.
func importLines(t *testing.T, log *eventlog.Log, lines ...string) interop.Result {
	t.Helper()
	got, err := loadText(t, log, "f", strings.Join(lines, "\n"))
	if err != nil || len(got.Rejected) > 0 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	return got
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, pi.Format{}, "f.jsonl", map[string]bool{
		`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`:   true,
		"\ufeff\n" + `{"type":"session","id":"s","cwd":"/","provider":"x"}` + "\n" + `{"type":"mess`: true,
		`{"type":"session","id":"s"}`:                                         false,
		`{"type":"session","cwd":"/"}`:                                        false,
		`{"type":"user","sessionId":"s","cwd":"/","id":"x"}`:                  false,
		`{"type":"message"}` + "\n" + `{"type":"session","id":"s","cwd":"/"}`: false,
		`[{"type":"session"}]`:                                                false,
		"hives,swarmed\n":                                                     false,
		"":                                                                    false,
	})
}

// A copy needs the session that it is a copy of.
func TestDeclare(t *testing.T) {
	declared := func(file string) interop.IDs {
		return pi.Format{}.Declare(importtest.Source(file, importtest.ReadFile(t, file)))
	}
	hives, honey, welsh := declared(hivesFile), declared(honeyFile), declared(welshFile)
	if len(hives.Needs) > 0 || len(honey.Needs) > 0 || len(welsh.Owns) != 1 || !slices.Equal(welsh.Needs, hives.Owns) {
		t.Errorf("the files declare %+v, %+v and %+v", hives, honey, welsh)
	}
}

func TestBranches(t *testing.T) {
	log := importtest.NewLog(t)
	got := load(t, log, hivesFile)
	if got.Records != 24 || got.Imported != 20 || got.Raw != 4 || got.Events != 25 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "pi:model_change", "pi:thinking_level_change", "user Which…",
		"assistant reasoning I… calls read calls read", "tool result of read", "tool result of read", "assistant Hives…",
		"head_moved to 8", "context branch_summary: The plan could not be edited: hive 7 is not in it.", "session_updated", "pi:custom",
		"context weather: Frost is expected on Friday.", "user Then…", "assistant reasoning calls write", "tool result of write",
		"assistant The…", "compaction_triggered", "user And…", "assistant Shall…",
	}, importtest.Outline(t, log, hives))
	branches, err := fork.Branches(t.Context(), log, hives, false)
	if err != nil || len(branches) != 2 || branches[1].Tip != 13 || branches[1].Base != 8 {
		t.Errorf("branches are %+v, %v", branches, err)
	}
}

func TestTheHeaderStartsTheSession(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile, honeyFile)
	start, _, err := event.Decode[event.Session](&importtest.Events(t, log, hives)[0])
	if err != nil {
		t.Fatal(err)
	}
	if start.Title != "Which hives swarmed last spring?" || start.CWD != "/home/ada/beehive" || start.Agent != "pi" ||
		start.Source != (event.SessionSource{Format: "pi", Version: "3", Path: hivesFile, SessionID: hives}) {
		t.Errorf("the session starts with %+v", start)
	}
	start, _, err = event.Decode[event.Session](&importtest.Events(t, log, honey)[0])
	if err != nil || start.Source.Version != "1" || !strings.Contains(string(start.Extra), `"modelId":"claude-opus-4-5"`) {
		t.Errorf("the session of version 1 starts with %+v, %v", start, err)
	}
}

func TestCompactionEntries(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile, honeyFile)
	c, _, err := event.Decode[event.Compaction](&importtest.Events(t, log, hives)[22])
	if err != nil {
		t.Fatal(err)
	}
	summary := event.Message{Role: event.User, Parts: []event.Part{event.Text("Hives 3 and 7 swarmed; a note about hive 7 is being written.")}}
	importtest.Same(t, "compaction", event.Compaction{
		Strategy: "summary", Covers: event.Stretch{From: 1, To: 22}, Summary: summary.Text(), TokensBefore: 41200,
		Entries:   []event.CompactionEntry{{Message: &summary}, {Seq: 19}, {Seq: 20}, {Seq: 21}, {Seq: 22}},
		ReadFiles: []string{"hives.csv"}, ModifiedFiles: []string{"notes/hive-7.md"}, Extra: c.Extra,
	}, c)
	c, _, err = event.Decode[event.Compaction](&importtest.Events(t, log, honey)[11])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "what version 1 kept", []int64{0, 7, 8, 9, 10, 11}, seqsOf(c.Entries))
}

func seqsOf(entries []event.CompactionEntry) (seqs []int64) {
	for _, e := range entries {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func TestHistory(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, honeyFile)
	var said []string
	for _, m := range historyOf(t, log, honey) {
		said = append(said, string(m.Role)+" "+m.Text())
	}
	importtest.Same(t, "history", []string{
		"user 41 jars of honey; wax is in wax/blocks.txt.", "user And of wax?", "assistant ", "user $ ls wax\nblocks.txt\n",
		"user It is in wax/blocks.txt.", "assistant Let me see.", "tool ", "user Go on.", "assistant 12 blocks of wax.",
	}, said)
}

func historyOf(t *testing.T, log *eventlog.Log, session string) (all []event.Message) {
	t.Helper()
	for _, e := range importtest.History(t, log, session) {
		all = append(all, e.Message)
	}
	return all
}

func TestACopyIsAForkOfItsParent(t *testing.T) {
	log := importtest.NewLog(t)
	if got := load(t, log, hivesFile, welshFile); got.Present != 15 || got.Events != 30 || got.Imported != 23 {
		t.Errorf("import: %+v", got)
	}
	all := importtest.Events(t, log, welsh)
	f, ok, err := event.Decode[event.Fork](&all[22])
	if err != nil || !ok || f.Parent != hives || f.Seq != 22 {
		t.Fatalf("event 23 is %s, %+v, %v", all[22].Type, f, err)
	}
	update, _, err := event.Decode[event.Session](&all[23])
	if err != nil || update.Title != "Swarms of last spring" || update.Source.SessionID != welsh || all[23].SessionID != welsh {
		t.Errorf("the fork has %+v, %v", update, err)
	}
	importtest.Same(t, "own events", []string{"session_forked", "session_updated", "pi:label", "user Translate…", "assistant Heidiodd…"}, importtest.Outline(t, log, welsh)[17:])
	if again := load(t, log, hivesFile, welshFile); again.Events != 0 || again.Present != again.Records {
		t.Errorf("import again: %+v", again)
	}
}

func TestACopyOfACopy(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile, welshFile)
	lines := strings.Split(importtest.ReadFile(t, welshFile), "\n")
	lines[0] = `{"type":"session","version":3,"id":"third","timestamp":"2026-03-01T12:00:00.000Z","cwd":"/srv","parentSession":"C:\\sessions\\2026_` + welsh + `.jsonl"}`
	lines[len(lines)-2] = `{"type":"message","id":"d1","parentId":"b0000002","timestamp":"2026-03-01T12:00:01.000Z","message":{"role":"assistant","content":"Symudodd."}}`
	importLines(t, log, lines...)
	var parent eventlog.Ancestor
	var err error
	for parent, err = range log.Ancestors(t.Context(), "third") {
		break
	}
	if err != nil || parent.Session != welsh || parent.Through.Seq != 26 {
		t.Errorf("parent is %+v, %v", parent, err)
	}
	if got := importLines(t, log, lines...); got.Events != 0 {
		t.Errorf("import again: %+v", got)
	}
}

func TestCopyWithoutLinesOfItsOwnIsHeld(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile)
	lines := strings.Split(importtest.ReadFile(t, welshFile), "\n")
	got := importLines(t, log, lines[:16]...)
	if got.Skipped != 16 || got.Events != 0 || len(importtest.Sessions(t, log)) != 1 {
		t.Errorf("import: %+v", got)
	}
}

func TestForkContinuesAfterAnInterruption(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile, welshFile)
	want := importtest.Contents(t, log)
	cut := importtest.NewLog(t)
	load(t, cut, hivesFile)
	forked := importtest.Events(t, log, welsh)[22]
	if _, err := cut.Append(t.Context(), welsh, eventlog.New(), event.Event{ID: forked.ID, Type: forked.Type, Timestamp: forked.Timestamp,
		Metadata: forked.Metadata, Data: rehash(t, cut, forked.Data)}); err != nil {
		t.Fatal(err)
	}
	load(t, cut, welshFile)
	importtest.Same(t, "log", want, importtest.Contents(t, cut))
}

// A copy without its original owns its records. They are inherited in the original, if that is
// imported later.
func TestACopyWithoutItsParentOwnsItsRecords(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, welshFile)
	all := importtest.Events(t, log, welsh)
	if origin, ok := all[0].MetadataValue("copy_of"); !ok || !strings.Contains(string(origin), hives) {
		t.Errorf("copy_of is %s", origin)
	}
	inherited := func(session string) (n int) {
		for _, e := range importtest.Events(t, log, session) {
			if e.Inherited() {
				n++
			}
		}
		return n
	}
	if n := inherited(welsh); len(all) != 19 || n != 0 {
		t.Errorf("%d of %d events are inherited", n, len(all))
	}
	load(t, log, hivesFile)
	if n := inherited(hives); n != 15 {
		t.Errorf("%d events of the original are inherited", n)
	}
	if got := load(t, log, hivesFile, welshFile); got.Events != 0 {
		t.Errorf("import again, when the original is there: %+v", got)
	}
}

func TestASessionThatOnlyNamesAParent(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, hivesFile)
	importLines(t, log, `{"type":"session","version":3,"id":"next","timestamp":"2025-12-02T00:00:00.000Z","cwd":"/","parentSession":"`+hives+`.jsonl"}`,
		entry("m1", "", `"role":"user","content":"Hello"`))
	start, _, err := event.Decode[event.Session](&importtest.Events(t, log, "next")[0])
	if err != nil || start.Parent.SessionID != hives {
		t.Errorf("start is %+v, %v", start, err)
	}
}

func TestUpgradedFilesAddOnlyNewEvents(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, honeyFile)
	if got := load(t, log, upgraded); got.Present != 15 || got.Events != 1 {
		t.Errorf("the upgraded file: %+v", got)
	}
	if got := load(t, log, honeyFile); got.Events != 0 {
		t.Errorf("the old file again: %+v", got)
	}
	if moved := strings.Contains(strings.Join(importtest.Outline(t, log, honey), " "), "head_moved"); moved {
		t.Error("the head was moved")
	}
}

func TestExtensionMessagesOfVersion2(t *testing.T) {
	log := importtest.NewLog(t)
	v2 := `{"type":"session","version":2,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`
	hook := entry("m2", "m1", `"role":"hookMessage","customType":"weather","content":"Rain.","display":true`)
	importLines(t, log, v2, entry("m1", "", `"role":"user","content":"Hello"`), hook)
	importtest.Same(t, "active path", []string{"session_started", "user Hello…", "context weather: Rain."}, importtest.Outline(t, log, "s"))
	got := importLines(t, log, header, entry("m1", "", `"role":"user","content":"Hello"`), strings.Replace(hook, "hookMessage", "custom", 1))
	if got.Events != 0 {
		t.Errorf("import as version 3: %+v", got)
	}
}

func TestCostsAreExact(t *testing.T) {
	log := importtest.NewLog(t)
	usage := `"usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"total":%s}}`
	importLines(t, log, header, entry("m1", "", `"role":"assistant","content":"a",`+fmt.Sprintf(usage, "0.035720749999999996")),
		entry("m2", "m1", `"role":"assistant","content":"b",`+fmt.Sprintf(usage, "-1")),
		entry("m3", "m2", `"role":"assistant","content":"c",`+strings.Replace(fmt.Sprintf(usage, "1"), `"input":1`, `"input":-1`, 1)))
	all := importtest.Events(t, log, "s")
	m, _, err := event.Decode[event.Message](&all[1])
	if err != nil || all[1].Cost.String() != "0.03572075" || all[2].Cost != 0 || all[3].Cost != 0 {
		t.Errorf("costs are %s, %s, %s, %v", all[1].Cost, all[2].Cost, all[3].Cost, err)
	}
	importtest.Same(t, "usage", event.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4,
		Extra: []byte(`{"totalTokens":10,"cost":{"input":0,"total":0.035720749999999996}}`)}, m.Usage)
	if m, _, err := event.Decode[event.Message](&all[3]); err != nil || !strings.Contains(string(m.Extra), `"input":-1`) {
		t.Errorf("malformed usage is lost: %s, %v", m.Extra, err)
	}
}

func TestAnotherSessionOfTheSameIDIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	importLines(t, log, header, entry("m1", "", `"role":"user","content":"One"`))
	before := importtest.Contents(t, log)
	_, err := loadText(t, log, "f", header+"\n"+entry("x1", "", `"role":"user","content":"Two"`))
	var history *records.HistoryError
	if !errors.As(err, &history) || history.Line != 2 || history.Session != "s" {
		t.Errorf("error is %v", err)
	}
	importtest.Same(t, "log", before, importtest.Contents(t, log))
	importtest.Say(t, log, "own", event.Message{Role: event.User, Parts: []event.Part{event.Text("mine")}})
	if _, err := loadText(t, log, "f", strings.Replace(header, `"s"`, `"own"`, 1)+"\n"+entry("m1", "", `"role":"user","content":"One"`)); !errors.Is(err, interop.ErrHistory) {
		t.Errorf("a session of another program: %v", err)
	}
}
