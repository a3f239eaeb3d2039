package interop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/sessions"
	"github.com/convlog/convlog/store/memory"
)

// notes is a format of lines "session text", in files that each name several
// sessions, in any order.
type notes struct{}

func (notes) Name() string                      { return "notes" }
func (notes) Detect(_ string, head []byte) bool { return strings.HasPrefix(string(head), "s") }

func (notes) Declare(src interop.Source) (ids interop.IDs) {
	f, err := src.Open()
	if err != nil {
		return ids
	}
	defer f.Close()
	for {
		var session, text string
		if _, err := fmt.Fscan(f, &session, &text); err != nil {
			return ids
		}
		ids.Owns = append(ids.Owns, session)
	}
}

func (notes) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (r interop.Result, err error) {
	f, err := src.Open()
	if err != nil {
		return r, err
	}
	defer f.Close()
	for {
		var session, text string
		if _, err := fmt.Fscan(f, &session, &text); err != nil {
			return r, nil
		}
		r.Records++
		if err := note(ctx, log, session, text, &r); err != nil {
			return r, err
		}
	}
}

func note(ctx context.Context, log *eventlog.Log, session, text string, r *interop.Result) error {
	s, err := sessions.Open(ctx, log, session, func(*event.Event) error { return nil })
	if err != nil {
		return err
	}
	if !slices.Contains(r.Sessions, session) {
		r.Sessions = append(r.Sessions, session)
	}
	key := sessions.Key{Own: text}
	if s.Find(key, nil).Seq > 0 {
		r.Present++
		return nil
	}
	e := event.UserMessage(text)
	s.Add(key, time.Unix(0, 0).UTC(), e)
	if err := s.Flush(ctx); err != nil {
		return err
	}
	r.Imported++
	r.Events += s.Written()
	return nil
}

// Files that own the same sessions are imported one after the other, in whatever
// order each of them names the sessions.
func TestFilesThatShareSessions(t *testing.T) {
	const n, rounds = 12, 20
	contents := map[string]string{}
	for i := range n {
		var b strings.Builder
		for at := range n {
			session := at
			if i%2 == 1 {
				session = n - 1 - at
			}
			fmt.Fprintf(&b, "s%d file%d\ns%d all\n", session, i, session)
		}
		contents[fmt.Sprintf("f%02d", i)] = b.String()
	}
	dir := files(t, contents)
	for range rounds {
		log := eventlog.Open(memory.New())
		var progress []string
		table, err := interop.Import(t.Context(), log, []interop.Format{notes{}}, []string{dir}, interop.Options{
			Progress: func(row interop.Row) { progress = append(progress, row.Path) },
		})
		if err != nil {
			t.Fatal(err)
		}
		total := table.Total()
		if want := n * (n + 1); total.Imported != want || total.Events != want || total.Records != 2*n*n || total.Present != 2*n*n-want {
			t.Errorf("total is %+v, want %d events", total, want)
		}
		for i, row := range table.Rows {
			if want := filepath.Join(dir, fmt.Sprintf("f%02d", i)); row.Path != want || len(row.Sessions) != n {
				t.Errorf("row %d is %+v", i, row)
			}
		}
		if len(progress) != n {
			t.Errorf("progress of %v", progress)
		}
		log.Close()
	}
}

// An import that is canceled begins no more files, and says so.
func TestCanceledImport(t *testing.T) {
	contents := map[string]string{}
	for i := range 50 {
		contents[fmt.Sprintf("f%02d", i)] = fmt.Sprintf("s%d hello", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := eventlog.Open(memory.New())
	defer log.Close()
	table, err := interop.Import(ctx, log, []interop.Format{notes{}}, []string{files(t, contents)}, interop.Options{
		Progress: func(interop.Row) { cancel() },
	})
	if err == nil || ctx.Err() == nil || len(table.Rows) == 0 || len(table.Rows) == 50 {
		t.Errorf("%d rows, error %v", len(table.Rows), err)
	}
}

// linked is a format of files "<name>: own ID… need ID… more ID…". Its imports note
// their file, and fail the test if another file that owns one of the ids runs.
type linked struct {
	name string
	*linkedRuns
}

// linkedRuns are the imports of linked files.
type linkedRuns struct {
	journal
	running map[string]bool  // ids that a running import owns
	shared  []string         // ids that two imports owned at the same time
	listed  map[string]bool  // files whose More was read
	fail    map[string]error // by file
}

func (l linked) Name() string { return l.name }
func (l linked) Detect(_ string, head []byte) bool {
	return strings.HasPrefix(string(head), l.name+": ")
}

func (l linked) Declare(src interop.Source) interop.IDs {
	ids := map[string][]string{}
	list := ""
	for _, word := range strings.Fields(contentOf(src))[1:] {
		switch word {
		case "own", "need", "more":
			list = word
		default:
			ids[list] = append(ids[list], word)
		}
	}
	return interop.IDs{Owns: ids["own"], Needs: ids["need"], More: func(yield func(string) bool) {
		l.mu.Lock()
		l.listed[src.Name] = true
		l.mu.Unlock()
		for _, id := range ids["more"] {
			if !yield(id) {
				return
			}
		}
	}}
}

func (l linked) Import(_ context.Context, _ *eventlog.Log, src interop.Source) (interop.Result, error) {
	owns := l.Declare(src).Owns
	l.mark(owns, true)
	runtime.Gosched()
	l.note(src.Name)
	l.mark(owns, false)
	return interop.Result{Records: 1, Imported: 1}, l.fail[src.Name]
}

// mark notes that the import of a file begins or ends.
func (l linked) mark(owns []string, begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Compact(slices.Sorted(slices.Values(owns))) {
		if begins && l.running[id] {
			l.shared = append(l.shared, id)
		}
		l.running[id] = begins
	}
}

func contentOf(src interop.Source) string {
	f, err := src.Open()
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return string(b)
}

// imports are the imports of files in the formats a and b, which must succeed.
func imports(t *testing.T, contents map[string]string) (*linkedRuns, interop.Table) {
	t.Helper()
	runs := &linkedRuns{running: map[string]bool{}, listed: map[string]bool{}}
	var sources []interop.Source
	for name, content := range contents { // Find orders them by name
		sources = append(sources, interop.Source{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		}})
	}
	log := eventlog.Open(memory.New())
	defer log.Close()
	formats := []interop.Format{linked{"a", runs}, linked{"b", runs}}
	table, err := interop.Import(t.Context(), log, formats, nil, interop.Options{Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs.shared) > 0 {
		t.Errorf("imports of files that own %q ran at the same time", runs.shared)
	}
	return runs, table
}

// The rows are in the order of the sort. A file that another needs is imported
// first, whatever its name and format.
func TestOrder(t *testing.T) {
	tests := map[string]struct {
		files  map[string]string
		want   string            // the rows
		cycles map[string]string // the cycles of rows
	}{
		"no ids":                    {files: map[string]string{"1": "a: ", "2": "a: "}, want: "1 2"},
		"a child before its parent": {files: map[string]string{"1": "a: own c need p", "2": "a: own p"}, want: "2 1"},
		"a chain that is reversed": {
			files: map[string]string{
				"1": "a: own g need f", "2": "a: own f need e", "3": "a: own e need d", "4": "a: own d need c",
				"5": "a: own c need b", "6": "a: own b need a", "7": "a: own a", "8": "a: own z",
			},
			want: "7 8 6 5 4 3 2 1",
		},
		"a need that nobody owns": {files: map[string]string{"1": "a: own c need missing", "2": "a: own p"}, want: "1 2"},
		"a need that the file owns itself": {
			files: map[string]string{"1": "a: own c need c", "2": "a: own c"}, want: "1 2",
		},
		"two copies of a parent": {
			files: map[string]string{"1": "a: own c need p", "2": "a: own p", "3": "a: own q", "4": "a: own p"}, want: "2 3 4 1",
		},
		"a copy that is newer needs more": {
			files: map[string]string{"1": "a: own s need r", "2": "a: own s r"}, want: "2 1",
		},
		"needs across formats": {
			files: map[string]string{"1": "a: own c need p", "2": "b: own p need g", "3": "a: own g"}, want: "3 2 1",
		},
		"two files that need each other": {
			files: map[string]string{"1": "a: own p need q", "2": "a: own q need p"}, want: "2 1", cycles: map[string]string{"2": "1"},
		},
		"a cycle of three, and files before and after it": {
			files: map[string]string{
				"0": "a: own last need x", "1": "a: own x need y", "2": "a: own y need z", "3": "a: own z need x first", "4": "a: own first",
			},
			want: "4 3 2 1 0", cycles: map[string]string{"3": "1"},
		},
		"a cycle that needs another": {
			files: map[string]string{
				"1": "a: own p need q x", "2": "a: own q need p", "3": "a: own x need y", "4": "a: own y need x",
			},
			want: "2 4 3 1", cycles: map[string]string{"2": "1", "4": "3"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				_, table := imports(t, test.files)
				var rows []string
				cycles := map[string]string{}
				for _, row := range table.Rows {
					rows = append(rows, row.Path)
					if row.Cycle != "" {
						cycles[row.Path] = row.Cycle
					}
				}
				if got := strings.Join(rows, " "); got != test.want {
					t.Fatalf("the order is %s, want %s", got, test.want)
				}
				if !maps.Equal(cycles, test.cycles) {
					t.Fatalf("the cycles are %q, want %q", cycles, test.cycles)
				}
			}
		})
	}
}

// More is read only of files that share an id with a file whose need nobody owns.
func TestMoreIsReadIfNeeded(t *testing.T) {
	runs, table := imports(t, map[string]string{
		"1": "a: own s need s/2", "2": "a: own s more s/1 s/2", "3": "a: own t more t/1", "4": "a: own u need s",
	})
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true}, runs.listed); diff != "" {
		t.Errorf("More was read of (-want +got):\n%s", diff)
	}
	if first := table.Rows[0].Path; first != "2" {
		t.Errorf("the first file is %s", first)
	}
	if runs, _ := imports(t, map[string]string{"1": "a: own s more s/1", "2": "a: own s need s"}); len(runs.listed) > 0 {
		t.Errorf("More was read of %v, though nobody needs it", runs.listed)
	}
}

// Whatever files own and need, each is imported once, after the owners of its needs
// that do not need it, never together with another owner of its ids, and in the same
// order every time.
func TestOrderLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "files")
		ids := rapid.SliceOfN(rapid.SampledFrom(strings.Split("p q r s t u v", " ")), 0, 3)
		owns, needs, contents := map[string][]string{}, map[string][]string{}, map[string]string{}
		for i := range n {
			name := fmt.Sprintf("%02d", i)
			owns[name], needs[name] = ids.Draw(rt, "owns"), ids.Draw(rt, "needs")
			contents[name] = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "format") +
				": own " + strings.Join(owns[name], " ") + " need " + strings.Join(needs[name], " ")
		}
		runs, table := imports(t, contents)
		_, again := imports(t, contents)
		if !slices.EqualFunc(table.Rows, again.Rows, func(a, b interop.Row) bool { return a.Path == b.Path && a.Cycle == b.Cycle }) {
			rt.Errorf("another order the second time")
		}
		if names := slices.Sorted(maps.Keys(contents)); !slices.Equal(names, slices.Sorted(slices.Values(runs.files))) {
			rt.Fatalf("imported %q, want %q", runs.files, names)
		}
		before := owners(owns, needs)
		for file := range contents {
			for owner := range before[file] {
				if !reaches(before, owner, file) && slices.Index(runs.files, owner) > slices.Index(runs.files, file) {
					rt.Errorf("%s is imported before %s, which it needs: %q", file, owner, runs.files)
				}
			}
		}
	})
}

// owners are the files that own what each file needs and does not own itself.
func owners(owns, needs map[string][]string) map[string]map[string]bool {
	before := map[string]map[string]bool{}
	for file := range owns {
		before[file] = map[string]bool{}
		for _, id := range needs[file] {
			for owner := range owns {
				if !slices.Contains(owns[file], id) && slices.Contains(owns[owner], id) {
					before[file][owner] = true
				}
			}
		}
	}
	return before
}

// reaches reports whether a file needs another, maybe through others.
func reaches(before map[string]map[string]bool, from, to string) bool {
	seen := map[string]bool{}
	var visit func(file string) bool
	visit = func(file string) bool {
		if file == to {
			return true
		}
		if seen[file] {
			return false
		}
		seen[file] = true
		for owner := range before[file] {
			if visit(owner) {
				return true
			}
		}
		return false
	}
	return visit(from)
}

// A file whose import fails does not stop the files that need it.
func TestFilesThatNeedAFileThatFails(t *testing.T) {
	failed := errors.New("no luck")
	runs := &linkedRuns{running: map[string]bool{}, listed: map[string]bool{}, fail: map[string]error{}}
	dir := files(t, map[string]string{"1": "a: own c need p", "2": "a: own p"})
	runs.fail[filepath.Join(dir, "2")] = failed
	table, err := run(t, []interop.Format{linked{"a", runs}}, dir)
	if !errors.Is(err, failed) || len(table.Rows) != 2 || table.Rows[0].Err == nil || table.Rows[1].Err != nil {
		t.Errorf("rows %+v, error %v", table.Rows, err)
	}
}
