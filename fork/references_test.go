package fork

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
)

// inert are the members with ids of events of other sessions: a copy does not change
// them.
var inert = map[event.Type]string{
	event.SessionForked: "event_id",
}

// references has every member that FORMAT.md lists as an event's id.
func TestReferencesAreComplete(t *testing.T) {
	page, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\| (?:path|session|tree)[^|]*\\| ([^|]*)\\| ([^|]*)\\|")
	rows := 0
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		for _, quoted := range strings.Split(match[1], ", ") {
			name := event.Type(strings.Trim(quoted, "`"))
			rows++
			// Nested members are objects' own: {…}.
			members := regexp.MustCompile(`\{[^}]*\}|\([^)]*\)`).ReplaceAllString(match[2]+","+match[3], "")
			for _, member := range []string{"turn_id", "parent_event_id", "event_id", "event_ids"} {
				has := slices.Contains(strings.Split(strings.ReplaceAll(members, " ", ""), ","), member)
				if got := slices.Contains(references[name], member) || inert[name] == member; got != has {
					t.Errorf("%s has %s: %v; the registry: %v", name, member, has, got)
				}
			}
		}
	}
	if rows < len(event.Types()) {
		t.Errorf("found %d of %d types", rows, len(event.Types()))
	}
}
