package listing

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
)

// catalogued puts all sessions of a log into its catalog, and returns the rows of the log.
func catalogued(t *testing.T, log *eventlog.Log) []*Row {
	t.Helper()
	c := stats.NewCatalog(log)
	rows, err := Read(t.Context(), c, func(int) {}, Known{})
	if err != nil {
		t.Fatal(err)
	}
	if err := EachSummary(t.Context(), c, rows, func() {}, func(*Row, *stats.Summary) {}); err != nil {
		t.Fatal(err)
	}
	c.Flush(t.Context())
	return rows
}

// listedAs is a session of a listing.
type listedAs struct {
	ID          string
	Head        event.Head
	Events      int64
	Bytes       int64
	Node        string
	First, Last string
	Known       bool
	Err, Tail   string
}

func listedIn(t *testing.T, c *stats.Catalog) (all []listedAs) {
	t.Helper()
	for s, err := range c.Sessions(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		info := s.SessionInfo
		x := listedAs{ID: info.ID, Head: info.Head(), Events: info.Events(), Bytes: info.Bytes, Known: !info.Known.IsZero()}
		n := fork.NodeOf(info)
		x.Node = fmt.Sprintln(*n.Origin, n.State, n.Last, n.Active)
		x.First = fmt.Sprintln(info.First.SessionID, info.First.Type, info.First.Timestamp, string(info.First.Data), string(info.First.Metadata))
		x.Last = fmt.Sprintln(info.Last.SessionID, info.Last.Seq, info.Last.Timestamp)
		x.Err, x.Tail = fmt.Sprint(info.Err), fmt.Sprint(info.Tail)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b listedAs) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// namesByID are the names that the catalog has, by session.
func namesByID(t *testing.T, c *stats.Catalog, rows []*Row) map[string]string {
	names := map[string]string{}
	eachName(t.Context(), c, rows, func(row *Row, name string) { names[row.ID] = name })
	return names
}

// told checks that a listing tells the names and the sums of n sessions, as readers by id have them.
func told(t *testing.T, log *eventlog.Log, n int) {
	t.Helper()
	c := stats.NewCatalog(log)
	names, sums := map[string]string{}, map[string]stats.Summary{}
	rows, err := Read(t.Context(), c, func(int) {}, Known{
		Name: func(row *Row, name string) { names[row.ID] = name },
		Sum:  func(row *Row, s *stats.Summary) { sums[row.ID] = *s },
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(namesByID(t, c, rows), names); diff != "" || len(names) != n {
		t.Errorf("a listing tells %d names, not %d (-by id +told):\n%s", len(names), n, diff)
	}
	if len(sums) != n {
		t.Errorf("a listing tells %d sums, not %d", len(sums), n)
	}
	err = EachSummary(t.Context(), c, rows, func() {}, func(row *Row, s *stats.Summary) {
		if sum, ok := sums[row.ID]; ok {
			if diff := cmp.Diff(*s, sum); diff != "" {
				t.Errorf("the sum of session %q (-by id +told):\n%s", row.ID, diff)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// openedFS counts the files that a store opens.
type openedFS struct {
	jsonl.FS
	opened atomic.Int64
}

func (f *openedFS) Open(name string, flag int) (jsonl.File, error) {
	f.opened.Add(1)
	return f.FS.Open(name, flag)
}

// A list of sessions in the catalog, and their sums, open the files of the catalog once each,
// however many sessions there are.
func TestListsOpenTheFilesOfTheCatalog(t *testing.T) {
	const files, sessions = 256, 800
	fs := &openedFS{FS: jsonl.Dir(t.TempDir())}
	log := eventlog.Open(jsonl.New("", jsonl.Options{FS: fs, NoSync: true}))
	defer log.Close()
	for i := range sessions {
		if _, err := log.Append(t.Context(), fmt.Sprint("s", i), eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	rows := catalogued(t, log)
	c := stats.NewCatalog(log)
	counted := func(what string, f func() error) {
		t.Helper()
		before := fs.opened.Load()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if n := fs.opened.Load() - before; n > files {
			t.Errorf("%s of %d sessions: %d files are opened", what, sessions, n)
		}
	}
	counted("a list", func() error {
		_, err := Read(t.Context(), c, func(int) {}, Known{})
		return err
	})
	for _, q := range []Query{{Long: true}, {Text: "hello"}, {Long: true, Text: "hello"}, {Filter: Filter{Model: "m"}}} {
		counted(fmt.Sprintf("a list of %+v", q), func() error {
			_, err := answer(t, log, &q, q.Known())
			return err
		})
	}
	counted("the names", func() error {
		if n := len(namesByID(t, c, rows)); n != sessions {
			return fmt.Errorf("%d names", n)
		}
		return nil
	})
	counted("the sums", func() error {
		return EachSummary(t.Context(), c, rows, func() {}, func(*Row, *stats.Summary) {})
	})
}

// answer returns the rows that a query selects, with the columns that its list shows.
func answer(t *testing.T, log *eventlog.Log, q *Query, known Known) ([]*Row, error) {
	c := stats.NewCatalog(log)
	all, err := Read(t.Context(), c, func(int) {}, known)
	if err != nil {
		return nil, err
	}
	r := Reader{Log: log, Catalog: c}
	rows, err := q.Choose(t.Context(), &r, all)
	if err == nil && q.Long {
		err = r.Summaries(t.Context(), rows)
	}
	if err == nil && !q.Long {
		err = r.Names(t.Context(), rows)
	}
	return rows, err
}

// A list that takes columns from the catalog while it lists the sessions shows the same as one that
// reads them later. Forks have the agent and the folder of their parent, unless they have their own.
func TestListsWithKnownColumns(t *testing.T) {
	log := eventlog.Open(jsonl.New(t.TempDir()))
	defer log.Close()
	put := func(session string, payloads ...event.Payload) {
		t.Helper()
		for _, p := range payloads {
			if _, err := log.Append(t.Context(), session, eventlog.Any(), event.New(p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	forkOf := func(parent, id string) {
		t.Helper()
		if _, err := fork.At(t.Context(), log, parent, fork.Head(), fork.Options{ID: id, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	said := event.Message{Role: event.Assistant, Model: "m", Parts: []event.Part{event.Text("x")}}
	put("b", event.Session{Title: "a title", Agent: "agent", CWD: "/work", Source: event.SessionSource{Format: "claude"}}, said)
	forkOf("b", "c")
	forkOf("c", "a")
	forkOf("c", "f")
	put("b", event.Session{Updated: true, Agent: "newer", CWD: "/moved"})
	put("c", event.Session{Updated: true, CWD: "/own", Title: "a title of the fork", Source: event.SessionSource{Format: "codex"}}, said)
	put("d", event.Message{Role: event.User, Parts: []event.Part{event.Text("a title, untitled")}}, event.Session{Updated: true, Source: event.SessionSource{Format: "codex"}})
	put("g", event.Session{Updated: true, Agent: "late", CWD: "/late"}, said)
	forkOf("g", "h") // g does not begin with its program, so the fork has none
	catalogued(t, log)
	forkOf("b", "e") // not in the catalog
	for _, long := range []bool{false, true} {
		for _, text := range []string{"", "title", "nowhere"} {
			for _, f := range []Filter{{}, {Model: "m"}, {Source: "codex"}, {CWD: "/work"}, {CWD: "/moved"}} {
				for _, q := range []Query{{Sort: ByID}, {Sort: ByCost}, {Sort: ByActivity, Limit: 2}} {
					q.Long, q.Text, q.Filter = long, text, f
					want, err := answer(t, log, &q, Known{})
					if err != nil {
						t.Fatal(err)
					}
					got, err := answer(t, log, &q, q.Known())
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(shown(want), shown(got)); diff != "" {
						t.Errorf("%+v (-read later +known):\n%s", q, diff)
					}
				}
			}
		}
	}
	rows, err := answer(t, log, &Query{Long: true, Sort: ByID}, Known{})
	if err != nil || len(rows) != 8 {
		t.Fatal(rows, err)
	}
	for i, want := range []Program{{"", "agent", "/work"}, {"claude", "newer", "/moved"}, {"codex", "agent", "/own"}, {"codex", "", ""}, {"", "agent", "/work"}, {"", "agent", "/work"}, {"", "late", "/late"}, {"", "", ""}} {
		if *rows[i].Program != want {
			t.Errorf("session %q has the program %+v, want %+v", rows[i].ID, *rows[i].Program, want)
		}
	}
}

// shown are the columns of rows.
func shown(rows []*Row) (all []any) {
	for _, row := range rows {
		all = append(all, row.ID, *row.Program, row.KnownTitle(), row.IsRead() && row.Messages > 0, row.Spend())
	}
	return all
}

// A listing reads no event of a session whose row is up to date, and shows the same.
func TestListingsReadRows(t *testing.T) {
	for name, open := range map[string]func(dir string) eventlog.Store{
		"jsonl":  func(dir string) eventlog.Store { return jsonl.New(dir) },
		"sqlite": func(dir string) eventlog.Store { return sqlite.New(filepath.Join(dir, "log.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := eventlog.Open(open(dir))
			defer log.Close()
			put := func(session string, payloads ...event.Payload) {
				t.Helper()
				for _, p := range payloads {
					if _, err := log.Append(t.Context(), session, eventlog.Any().Lenient(), event.New(p)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := range 150 { // several pages
				put(fmt.Sprintf("s%03d", i), event.Session{Title: "a title", CWD: "/work"}, event.Session{Updated: true, Title: "another"})
			}
			put("run", event.Session{Parent: event.SessionParent{SessionID: "s001", Seq: 1}})
			put("state", event.Session{State: true})
			if _, err := fork.At(t.Context(), log, "s002", fork.Point{}, fork.Options{ID: "forked", Force: true}); err != nil {
				t.Fatal(err)
			}
			want := listedIn(t, stats.NewCatalog(log))
			catalogued(t, log)
			// unread are the sessions that a listing reads.
			unread := func(want []listedAs) (read []string) {
				t.Helper()
				got := listedIn(t, stats.NewCatalog(log))
				for i := range got {
					if !got[i].Known {
						read = append(read, got[i].ID)
					}
					got[i].Known = false
				}
				if diff := cmp.Diff(want, got); want != nil && diff != "" {
					t.Errorf("the rows differ from the events (-events +rows):\n%s", diff)
				}
				return read
			}
			if read := unread(want); len(read) > 0 {
				t.Errorf("a listing reads %v", read)
			}
			told(t, log, len(want))
			put("s010", event.Session{Updated: true, Title: "newer"})
			put("later", event.Session{Title: "later"})
			if _, err := erase.Redact(t.Context(), log, "s020", []int64{2}, erase.RedactOptions{Reason: "test"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"convlog:store", "later", "s010", "s020"}, unread(nil)); diff != "" {
				t.Errorf("sessions that a listing reads after changes (-want +got):\n%s", diff)
			}
			told(t, log, len(want)-2)
			if name != "jsonl" {
				return
			}
			torn, err := os.OpenFile(filepath.Join(dir, "s030.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := torn.WriteString("{torn"); err != nil {
				t.Fatal(err)
			}
			torn.Close()
			catalogued(t, log)
			if diff := cmp.Diff([]string{"s030"}, unread(nil)); diff != "" {
				t.Errorf("sessions that a listing reads beside a torn end (-want +got):\n%s", diff)
			}
		})
	}
}
