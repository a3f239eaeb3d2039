package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture of the rooms into docs/ARCHITECTURE.md")

// The page has the picture between these lines.
const (
	pictureStart = "<!-- The picture is generated: go test ./internal/archtest -update -->\n"
	pictureEnd   = "<!-- End of the picture. -->\n"
)

// The picture of the rooms in ARCHITECTURE.md shows the imports of the code. All rooms,
// also the internal ones, form floors: no room imports one above it.
func TestPictureOfTheRooms(t *testing.T) {
	root := moduleRoot(t)
	arrows := arrowsOf(t, root)
	if _, err := floorsOf(arrows); err != nil {
		t.Fatal(err)
	}
	want := pictureStart + picture(arrows.ofUsers()) + pictureEnd
	name := filepath.Join(root, "docs", "ARCHITECTURE.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), pictureStart)
	_, after, closed := strings.Cut(rest, pictureEnd)
	if !ok || !closed {
		t.Fatalf("docs/ARCHITECTURE.md has no place for the picture: %q … %q", pictureStart, pictureEnd)
	}
	if fresh := before + want + after; fresh != string(page) {
		if !*update {
			t.Fatal("the picture of the rooms in docs/ARCHITECTURE.md is out of date: run go test ./internal/archtest -update")
		}
		if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// graph holds the rooms that each room imports.
type graph map[string]map[string]bool

// arrowsOf are the imports between rooms, without tests and their kits.
func arrowsOf(t *testing.T, root string) graph {
	arrows := graph{}
	eachPackage(t, root, func(p pkg) {
		from, ok := roomOf(p.dir)
		if !ok {
			return
		}
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			inside, ours := strings.CutPrefix(imported, module+"/")
			if to, shown := roomOf(inside); ours && shown && to != from {
				arrows[from][to] = true
			}
		}
	})
	return arrows
}

// roomOf is the name that a package has in the picture. Kits of tests are not in it.
func roomOf(dir string) (name string, ok bool) {
	switch {
	case strings.HasSuffix(dir, "test"), dir == "internal/suite", dir == "internal/testkit", dir == "internal/garden",
		dir == "internal/crashfs", dir == "internal/tcpproxy", strings.HasPrefix(dir, "internal/bench"), strings.HasPrefix(dir, "internal/torture"), strings.HasPrefix(dir, "examples"):
		return "", false
	case strings.HasPrefix(dir, "interop/"):
		return "interop/…", true
	}
	return dir, true
}

// floorsOf gives each room its floor: 0 for a room without imports, else one above
// the highest room that it imports.
func floorsOf(arrows graph) (floors map[string]int, err error) {
	floors = map[string]int{}
	const climbing = -1
	var floor func(room string) (int, error)
	floor = func(room string) (int, error) {
		if n, known := floors[room]; known {
			if n == climbing {
				return 0, fmt.Errorf("room %s imports itself through others", room)
			}
			return n, nil
		}
		floors[room] = climbing
		highest := 0
		for to := range arrows[room] {
			below, err := floor(to)
			if err != nil {
				return 0, err
			}
			highest = max(highest, below+1)
		}
		floors[room] = highest
		return highest, nil
	}
	for room := range arrows {
		if _, err := floor(room); err != nil {
			return nil, err
		}
	}
	return floors, nil
}

// ofUsers returns the rooms that users can import. An arrow through internal rooms leads
// to the rooms that those import.
func (g graph) ofUsers() graph {
	public := graph{}
	for room, to := range g {
		if !internal(room) {
			public[room] = map[string]bool{}
			g.addPublic(public[room], to)
		}
	}
	return public
}

func (g graph) addPublic(found, rooms map[string]bool) {
	for room := range rooms {
		if internal(room) {
			g.addPublic(found, g[room])
		} else {
			found[room] = true
		}
	}
}

func internal(room string) bool { return slices.Contains(strings.Split(room, "/"), "internal") }

// picture draws the rooms. It leaves out an arrow if other arrows lead to the same room.
func picture(arrows graph) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		var to []string
		for _, room := range slices.Sorted(maps.Keys(arrows[from])) {
			if !arrows.detour(from, room) {
				to = append(to, node(room))
			}
		}
		fmt.Fprintf(&b, "    %s[%q]", node(from), from)
		if len(to) > 0 {
			fmt.Fprintf(&b, " --> %s", strings.Join(to, " & "))
		}
		b.WriteByte('\n')
	}
	b.WriteString("```\n")
	return b.String()
}

// detour reports whether another room that from imports leads to the room to.
func (g graph) detour(from, to string) bool {
	for via := range g[from] {
		if via != to && g.leads(via, to) {
			return true
		}
	}
	return false
}

func (g graph) leads(from, to string) bool {
	if g[from][to] {
		return true
	}
	for via := range g[from] {
		if g.leads(via, to) {
			return true
		}
	}
	return false
}

// node is a room's name as an identifier of the picture.
func node(room string) string {
	return strings.NewReplacer("/", "_", "…", "formats").Replace(room)
}

// A cycle of rooms, which Go allows if several packages are one room, is an error.
func TestACycleOfRoomsIsFound(t *testing.T) {
	if _, err := floorsOf(graph{"a": {"b": true}, "b": {"c": true}, "c": {"a": true}}); err == nil {
		t.Error("a cycle has floors")
	}
	floors, err := floorsOf(graph{"a": {"b": true, "c": true}, "b": {"c": true}, "c": {}})
	if err != nil || floors["a"] != 2 || floors["b"] != 1 || floors["c"] != 0 {
		t.Errorf("floors are %v, %v", floors, err)
	}
}

func TestThePictureLeadsThroughInternalRooms(t *testing.T) {
	arrows := graph{"a": {"internal/b": true}, "internal/b": {"a/internal/c": true, "d": true}, "a/internal/c": {"e": true}, "d": {"e": true}, "e": {}}
	want := "```mermaid\nflowchart TD\n    a[\"a\"] --> d\n    d[\"d\"] --> e\n    e[\"e\"]\n```\n"
	if got := picture(arrows.ofUsers()); got != want {
		t.Errorf("the picture is\n%s\nand should be\n%s", got, want)
	}
}
