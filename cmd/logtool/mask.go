package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/secrets"
)

// placeMask is a view of a log without the names of people and of places.
type placeMask struct {
	log     *eventlog.Log
	folders map[string]bool // working directories, and folders of imported files
	files   map[string]bool // that were imported by relative paths
	names   *names
}

// maskPaths returns a view of a log for an export of sessions. It shows ~ for a home directory,
// and /path/N for the working directory of a session and for the folder of an imported file. N is
// the same in each export until the store gets a session with another folder. The names of the users and
// the authors that the exported sessions name are masked in them.
func maskPaths(ctx context.Context, log *eventlog.Log, sessions []string) (m placeMask, err error) {
	m = placeMask{folders: map[string]bool{}, files: map[string]bool{}}
	if m.names, err = newNames(); err != nil {
		return m, err
	}
	shared := listing.Programs{}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return m, err
		}
		m.add(listing.NewRow(info, shared).Began.CWD)
		m.addSource(&info.First)
	}
	all := slices.Sorted(maps.Keys(m.folders))
	for _, id := range sessions {
		if err := m.read(ctx, log, id); err != nil {
			return m, err
		}
	}
	// The folders of later records come after the others, whose numbers stay.
	for _, folder := range slices.Sorted(maps.Keys(m.folders)) {
		if !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	scanner, err := secrets.New(slices.Concat(m.fileRules(), placeRules(all), m.names.rules())...)
	if err != nil {
		return m, err
	}
	m.log = eventlog.Open(secrets.View(log.Store(), scanner))
	return m, nil
}

// maskTexts returns a view of a log that shows [masked] for each of the texts.
func maskTexts(log *eventlog.Log, texts []string) (*eventlog.Log, error) {
	if len(texts) == 0 {
		return log, nil
	}
	anywhere := func([]byte, int, int) bool { return true }
	var rules []secrets.Rule
	for _, text := range texts {
		rules = append(rules, wordRule("text", "[masked]", text, anywhere))
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return nil, usagef("--mask %q is no valid text", text)
		}
		if inner := string(quoted[1 : len(quoted)-1]); inner != text { // in arguments, which are JSON
			rules = append(rules, wordRule("text", "[masked]", inner, anywhere))
		}
	}
	scanner, err := secrets.New(rules...)
	if err != nil {
		return nil, err
	}
	return eventlog.Open(secrets.View(log.Store(), scanner)), nil
}

// add adds a folder that is no home directory.
func (m *placeMask) add(folder string) {
	if folder = strings.TrimRight(folder, `/\`); folder != "" && folder != "." && !usualHome.MatchString(folder) {
		m.folders[folder] = true
	}
}

// originOf is the file that an event was imported from; empty if there is none.
func originOf(e *event.Event) string {
	var metadata struct {
		Origin struct {
			Source string `json:"source"`
		} `json:"origin"`
	}
	if len(e.Metadata) == 0 || json.Unmarshal(e.Metadata, &metadata) != nil {
		return ""
	}
	return metadata.Origin.Source
}

// addSource adds the folder of the file that an event was imported from.
func (m *placeMask) addSource(e *event.Event) {
	source := originOf(e)
	file := strings.ReplaceAll(source, `\`, "/")
	folder := path.Dir(file)
	switch absolute := strings.HasPrefix(file, "/") || strings.Contains(file, ":/"); {
	case file == "" || folder == "." || belowHome(folder):
	case absolute:
		m.add(source[:len(folder)])
	default:
		m.files[source] = true
	}
}

// fileRules find the files that were imported by paths below or beside the folder of that import.
func (m *placeMask) fileRules() (rules []secrets.Rule) {
	for i, file := range slices.Sorted(maps.Keys(m.files)) {
		mask := "…/" + path.Base(strings.ReplaceAll(file, `\`, "/"))
		rules = append(rules, wordRule(fmt.Sprint("file-", i+1), mask, file, func(text []byte, start, end int) bool { return beginsPath(text, start) && endsPath(text, end) }))
	}
	return rules
}

// read collects the names and the folders of a session.
func (m *placeMask) read(ctx context.Context, log *eventlog.Log, session string) error {
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return err
		}
		m.addSource(&e)
		for _, v := range []jsontext.Value{e.Data, e.Metadata, e.Extras()} {
			m.names.collect(v)
		}
	}
	return nil
}

// maskPathsUsage is the help of --mask-paths.
const maskPathsUsage = "mask folders, names of users and authors, and e-mails"

// masked prints the names that are masked, and a sentence about the others.
func (a *app) masked(m *placeMask, others string) {
	people := slices.Sorted(maps.Keys(m.names.users))
	people = append(people, slices.Sorted(maps.Keys(m.names.authors))...)
	text := "no name of a user or an author was found"
	if len(people) > 0 {
		text = "masked: the names " + someOf(people, 20)
	}
	a.note("%s; folders, home directories and e-mail addresses\n%s", clean(text), others)
}
