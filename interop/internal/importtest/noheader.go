package importtest

import (
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// NoHeader is the law of a file whose first line, the header of the session, is damaged: the name
// of the file gives the session its id, the other lines are imported, and the result says so. A later version with the header adds nothing but the header. A file without an id in its
// name is not imported. short is the id that the session has if only the name gives it.
func NoHeader(t TB, format interop.Format, name, text, session, short string) {
	t.Helper()
	header, rest, _ := strings.Cut(text, "\n")
	whole := NewLog(t)
	Load(t, whole, format, name, text)
	want := texts(t, whole, session)
	for damage, first := range map[string]string{
		"cut":              header[:15] + "\n",
		"the next follows": header[:15],
		"NULs":             strings.Repeat("\x00", len(header)) + "\n",
		"empty":            "\n",
		"missing":          "",
	} {
		damaged := first + rest
		log := NewLog(t)
		got := Load(t, log, format, name, damaged)
		if len(got.Rejected) != 1 || got.Rejected[0].Line != 1 || !strings.Contains(got.Rejected[0].Reason, "the name of the file") {
			t.Errorf("%s: rejected %+v", damage, got.Rejected)
		}
		first := Events(t, log, short)[0]
		if _, marked := first.MetadataValue("no_header"); !marked {
			t.Errorf("%s: the start is %s with %s", damage, first.Type, first.Metadata)
		}
		Same(t, damage+": messages", want, texts(t, log, short))
		Again(t, log, format, name, damaged)
		if got := Text(t, log, format, name, text); got.Events > 1 || len(got.Rejected) > 0 {
			t.Errorf("%s: the repaired file: %+v", damage, got)
		}
		Again(t, log, format, name, text)
		Again(t, log, format, name, damaged)
		Same(t, damage+", repaired: messages", want, texts(t, log, short))
		if all := Sessions(t, log); !slices.Equal(all, []string{short}) {
			t.Errorf("%s: sessions %q", damage, all)
		}
		Again(t, whole, format, name, damaged)

		unnamed := NewLog(t)
		if format.Detect("copy.jsonl", []byte(damaged)) {
			Text(t, unnamed, format, "copy.jsonl", damaged)
		}
		if all := Sessions(t, unnamed); len(all) > 0 {
			t.Errorf("%s: without an id, sessions %q", damage, all)
		}
	}
}

// texts are the texts of the messages of a session.
func texts(t TB, log *eventlog.Log, session string) (all []string) {
	t.Helper()
	for _, m := range Messages(t, log, session) {
		all = append(all, m.Text())
	}
	return all
}
