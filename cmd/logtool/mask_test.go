package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop/html"
	"github.com/convlog/convlog/interop/markdown"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// secretPlaces writes places and people in the forms in which texts have them. Each name that
// they are made of is new, so that an export must not have it.
type secretPlaces struct {
	*rand.Rand
	hidden []string // the names
}

func (g *secretPlaces) pick(texts ...string) string { return texts[g.IntN(len(texts))] }

// name is a new name of letters.
func (g *secretPlaces) name() string {
	name := "zq"
	for range 4 + g.IntN(5) {
		name += string(rune('a' + g.IntN(26)))
	}
	g.hidden = append(g.hidden, name)
	return name
}

// written is a path as it is, escaped as in JSON, or encoded as in an address.
func (g *secretPlaces) written(path string) string {
	switch g.IntN(6) {
	case 0:
		return strings.NewReplacer("/", `\/`, `\`, `\\`).Replace(path)
	case 1:
		return strings.NewReplacer(`\`, `\\\\`).Replace(path)
	case 2:
		return strings.NewReplacer("/", "%2F", `\`, "%5C").Replace(path)
	case 3:
		return "file://" + strings.ReplaceAll(path, `\`, "/")
	}
	return path
}

// between puts a text between characters that can be beside it.
func (g *secretPlaces) between(text string) string {
	return g.pick("", " ", "\n", "'", `"`, "(", "=", ":", ",", "`", ">", `\n`, `\t`, `\u003e`, "[") + text +
		g.pick("", " ", "\n", "'", `"`, ")", ":", ",", "`", ". ", `\n`, `\u003c`, "]", ";")
}

// texts are texts with a home directory, its user, working folders, folders of transcripts,
// temporary folders and authors.
func (g *secretPlaces) texts(folders ...string) (texts []string) {
	user, author, mail := g.name(), g.name()+" "+g.name(), g.name()+"@"+g.name()+g.pick(".org", ".co.uk", ".dev")
	if g.IntN(3) == 0 {
		user = g.name() + g.pick("-", ".", "_") + user
	}
	home := g.pick("/home/", "/Users/", `C:\Users\`, "/mnt/c/Users/", "/var/home/", `C:\Documents and Settings\`) + user
	add := func(text string) { texts = append(texts, g.between(text)) }
	add(home + g.pick("/x", `\x`))
	for range 12 {
		switch g.IntN(8) {
		case 0:
			add(g.written(home) + g.pick("", "/notes", "/.config/x"))
		case 1:
			add(g.pick(user, "github.com/"+user+"/shop", user+"/rewrite", "@"+user, "~"+user, strings.ToUpper(user[:1])+user[1:]))
		case 2:
			add(written.ClaudeFolder("/Users/"+user) + "-shop/x.jsonl")
		case 3:
			add(g.written(g.pick("", "/private") + "/var/folders/" + g.name() + "/" + g.name() + "/T/go-build1"))
		case 4:
			add(g.pick("Author: ", "Author:     ", "Committer: ", "Co-authored-by: ", "Signed-off-by: ", "author ", "From: ") + author + g.pick(" <", ` \u003c`) + mail + ">")
		case 5:
			texts = append(texts, "Author: "+author+" <"+mail+">")
			add(g.pick(author, strings.ToUpper(author), mail, "mailto:"+mail, "user.name="+author))
		default:
			folder := folders[g.IntN(len(folders))]
			add(g.pick(g.written(folder)+g.pick("", "/x.go", ":3"), written.ClaudeFolder(folder), g.written(folder)+" "+folder))
		}
	}
	return texts
}

// An export has no name of a home directory, a user, a working folder, a folder of transcripts, a
// temporary folder or an author of git, in whatever form and beside whatever character a text
// has it.
func TestMasksOfGeneratedPlaces(t *testing.T) {
	t.Parallel()
	for seed := range testsize.Pick[uint64](15, 60, 60) {
		g := &secretPlaces{Rand: rand.New(rand.NewPCG(seed, 1))}
		cwd, source := "/srv/"+g.name()+"/"+g.name(), "/data/"+g.name()+"/"+g.name()
		log := eventlog.Open(memory.New())
		origin, _ := json.Marshal(map[string]any{"origin": map[string]any{"source": source + "/a.jsonl", "line": 1}})
		add := func(p event.Payload) {
			e := event.New(p)
			e.Metadata = jsontext.Value(origin)
			if _, err := log.Append(t.Context(), "s", eventlog.Any(), e); err != nil {
				t.Fatal(err)
			}
		}
		texts := g.texts(cwd, source)
		add(event.Session{CWD: cwd, Title: texts[0], Source: event.SessionSource{Path: source + "/a.jsonl"}})
		for _, text := range texts {
			arguments, _ := json.Marshal(map[string]string{"command": text, text: "x"})
			nested, _ := json.Marshal(text)
			add(event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}})
			add(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c", "t", arguments)}})
			add(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c", "t", event.Text(string(nested)))}})
		}
		m, err := maskPaths(t.Context(), log, []string{"s"})
		if err != nil {
			t.Fatal(err)
		}
		for format, write := range map[string]func(context.Context, io.Writer) error{
			"jsonl": func(ctx context.Context, w io.Writer) error {
				return exportLines(ctx, m.log, w, []string{"s"}, exportOptions{path: activePath})
			},
			"bundle": func(ctx context.Context, w io.Writer) error {
				_, _, err := transfer.ExportMasked(ctx, log, m.log, w, "s")
				return err
			},
			"markdown": func(ctx context.Context, w io.Writer) error {
				return markdown.Write(ctx, w, m.log, "s", eventlog.All(), nil)
			},
			"html": func(ctx context.Context, w io.Writer) error {
				return html.Write(ctx, w, m.log, "s", eventlog.All(), nil, nil)
			},
		} {
			var out bytes.Buffer
			if err := write(t.Context(), &out); err != nil {
				t.Fatal(err)
			}
			text := strings.ToLower(out.String())
			for _, name := range g.hidden {
				if i := strings.Index(text, name); i >= 0 {
					t.Fatalf("seed %d, %s has %q: …%q…", seed, format, name, text[max(0, i-80):min(len(text), i+60)])
				}
			}
			if !strings.Contains(text, "/path/1") {
				t.Fatalf("seed %d, %s has no mask", seed, format)
			}
		}
	}
}

// What is no place and no person stays.
func TestMasksLeaveOtherTexts(t *testing.T) {
	log := eventlog.Open(memory.New())
	const text = "git@github.com:x/y go@1.26.3 Claude <noreply@anthropic.com> react@^18.2.0 /srvx/shops adamant /var/foldersx the author From: here <b> @ada.b a@b /srv/shop-2"
	for _, p := range []event.Payload{event.Session{CWD: "/srv/shop"}, event.Message{Role: event.User, Parts: []event.Part{event.Text(text + " /home/ada/x")}}} {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.New(p)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := maskPaths(t.Context(), log, []string{"s"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.log.Event(t.Context(), "s", 2)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := event.Decode[event.Message](&e)
	if want := strings.Replace(text, "@ada.b", "@user.b", 1) + " ~/x"; got.Text() != want {
		t.Errorf("%s\nwant %s", got.Text(), want)
	}
}
