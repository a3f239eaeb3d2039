package inspect_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/inspect"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
)

var gulls = filepath.Join("../../testdata/transcripts/inspect", "gulls.eval")

// entry is a file in a packed log.
type entry struct{ name, content string }

func pack(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// packedTides returns the files of the JSON fixture as a packed log.
func packedTides(t testing.TB) []entry {
	t.Helper()
	var log struct {
		Samples []json.RawMessage `json:"samples"`
	}
	whole := map[string]json.RawMessage{}
	content := []byte(importtest.ReadFile(t, tides))
	if err := json.Unmarshal(content, &log); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	delete(whole, "samples")
	header, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	start := `{"version":2,"eval":` + string(whole["eval"]) + `,"plan":` + string(whole["plan"]) + `}`
	entries := []entry{{"_journal/start.json", start}}
	for i, sample := range log.Samples {
		entries = append(entries, entry{"samples/a/" + string('a'+rune(i)) + "_epoch_1.json", string(sample)})
	}
	return append(entries, entry{"summaries.json", "[]"}, entry{"header.json", string(header)})
}

// Law: a packed log gives the same sessions as its JSON document. Importing the
// document afterwards adds nothing.
func TestPackedLogEqualsJSON(t *testing.T) {
	json, packed := importtest.NewLog(t), importtest.NewLog(t)
	first := importtest.Load(t, json, format, "f", importtest.ReadFile(t, tides))
	content := pack(t, packedTides(t)...)
	got := importtest.Load(t, packed, format, "f.eval", content)
	if got.Records != first.Records || got.Imported != first.Imported || got.Raw != first.Raw || len(got.Rejected) != 1 {
		t.Fatalf("import of JSON: %+v, packed: %+v", first, got)
	}
	for _, id := range first.Sessions {
		importtest.Same(t, id, importtest.Path(t, json, id), importtest.Path(t, packed, id))
	}
	importtest.Again(t, packed, format, "f.eval", content)
	importtest.Again(t, json, format, "f.eval", content)
}

func TestPackedFile(t *testing.T) {
	log := importtest.NewLog(t)
	table := importtest.Table(t, log, format, gulls)
	got := table.Total()
	if got.Records != 15 || len(got.Rejected) != 1 || !strings.Contains(got.Rejected[0].Reason, "samples/3_epoch_1.json: not of this format") || len(got.Sessions) != 2 {
		t.Fatalf("import: %+v", got)
	}
	all := importtest.Events(t, log, got.Sessions[0])
	results := all[len(all)-2]
	if text := string(results.Data); results.Type != "inspect:log" || !strings.Contains(text, `"stderr":"NaN"`) || !strings.Contains(text, `"reducer":"mean"`) {
		t.Errorf("the results are %s %s", results.Type, results.Data)
	}
	origin, _ := all[2].MetadataValue(records.OriginKey)
	if start := importtest.Start(t, log, got.Sessions[0]); !strings.HasSuffix(start.Source.Path, "gulls.eval/samples/noon_epoch_1.json") || !bytes.Contains(origin, []byte(`"line":13`)) {
		t.Errorf("the session starts with %+v, and its message comes from %s", start, origin)
	}
	if again := importtest.Files(t, log, format, gulls); again.Events != 0 {
		t.Errorf("import again: %+v", again)
	}
}

// A log in progress has a journal and no header. Samples follow, and a sample can be
// written again.
func TestGrowingPackedLog(t *testing.T) {
	all := packedTides(t)
	begun, later := pack(t, all[:2]...), pack(t, append(all, all[2])...)
	log := importtest.NewLog(t)
	if got := importtest.Load(t, log, format, "f.eval", begun); len(got.Sessions) != 1 || got.Raw == 0 {
		t.Errorf("import of the beginning: %+v", got)
	}
	got := importtest.Load(t, log, format, "f.eval", later)
	importtest.Again(t, log, format, "f.eval", later)
	if len(got.Sessions) != 2 || got.Present == 0 {
		t.Errorf("import of all: %+v", got)
	}
	path := importtest.Path(t, log, got.Sessions[0])
	if strings.Join(path[len(path)-2:], " ") != "session_updated inspect:log" {
		t.Errorf("the path ends with %q", path)
	}
	if got := importtest.Load(t, importtest.NewLog(t), format, "f.eval", pack(t, all[0])); got.Skipped != 1 || got.Events != 0 {
		t.Errorf("import without samples: %+v", got)
	}
}

// A damaged file is rejected by name. The readable samples are imported.
func TestDamagedPackedLog(t *testing.T) {
	all := packedTides(t)
	content := pack(t, all...)
	cut := append(all[:2:2], entry{"samples/c_epoch_1.json", all[2].content[:40]}, entry{"samples/d_epoch_1.json", ""}, all[len(all)-1])
	for name, c := range map[string]struct {
		content, reason string
		rejected        int
	}{
		"cut off":           {content[:len(content)-30], "cut off, or not a packed log", 1},
		"no log":            {pack(t, entry{"a.txt", "a"}), "cut off, or not a packed log", 1},
		"no header":         {pack(t, all[1]), "cut off, or not a packed log", 1},
		"samples":           {pack(t, cut...), "samples/c_epoch_1.json: cut off", 2},
		"header":            {pack(t, entry{"header.json", `{"eval":`}), "header.json: cut off", 1},
		"another header":    {pack(t, entry{"header.json", `{"eval":7}`}), "not of this format", 1},
		"an unknown method": {strings.ReplaceAll(content, "PK\x01\x02\x14\x00\x14\x00\x08\x00\x08\x00", "PK\x01\x02\x14\x00\x14\x00\x08\x00\x5d\x00"), "convert the log to JSON", 1},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got := importtest.Load(t, log, format, "f.eval", c.content)
			if len(got.Rejected) != c.rejected || !strings.Contains(got.Rejected[0].Reason, c.reason) {
				t.Errorf("import: %+v", got)
			}
			importtest.Again(t, log, format, "f.eval", c.content)
		})
	}
}

// A log that would fill the memory is rejected before it is unpacked.
func TestDecompressionBomb(t *testing.T) {
	text := []byte(pack(t, entry{"header.json", `{"eval":{"task":"t"}}`}, entry{"samples/a_epoch_1.json", "{}"}))
	at := bytes.LastIndex(text, []byte("PK\x01\x02"))
	for i, large := range []byte{0xff, 0xff, 0xff, 0x1f} { // a declared size of 512 MB
		text[at+24+i] = large
	}
	got := importtest.Load(t, importtest.NewLog(t), format, "f.eval", string(text))
	if len(got.Rejected) != 1 || !strings.Contains(got.Rejected[0].Reason, inspect.ErrTooLarge.Error()) {
		t.Errorf("import: %+v", got)
	}
	for i := range 4 {
		text[at+24+i] = 0xfe // 4 GB
	}
	_, err := format.Import(t.Context(), importtest.NewLog(t), importtest.Source("f.eval", string(text)))
	if !errors.Is(err, inspect.ErrTooLarge) || !strings.Contains(err.Error(), "f.eval: ") {
		t.Errorf("import: %v", err)
	}
}

// A packed log from a stream goes to a temporary file, and gives the same log as the
// file.
func TestPackedStream(t *testing.T) {
	b, err := os.ReadFile(gulls)
	if err != nil {
		t.Fatal(err)
	}
	file, stream := importtest.NewLog(t), importtest.NewLog(t)
	importtest.Files(t, file, format, gulls)
	importtest.Load(t, stream, format, gulls, string(b))
	importtest.Same(t, "log", importtest.Contents(t, file), importtest.Contents(t, stream))
}

func TestDetectPacked(t *testing.T) {
	content := pack(t, packedTides(t)...)
	importtest.Detects(t, format, "f.eval", map[string]bool{content[:100]: true, "PK\x03\x04": true, "PK": false, "": false})
	importtest.Detects(t, format, "f.zip", map[string]bool{content: false})
	for name, want := range map[string]string{content: "inspect:run1", importtest.ReadFile(t, tides): "inspect:run1", content[:20]: "", "PK\x03\x04": ""} {
		owns := (inspect.Format{}).Declare(importtest.Source("f", name)).Owns
		if len(owns) == 0 && want != "" || len(owns) > 0 && owns[0] != want {
			t.Errorf("the log owns %q, want %q", owns, want)
		}
	}
}

func FuzzImportPacked(f *testing.F) {
	f.Add(importtest.ReadFile(f, gulls))
	f.Add(pack(f, entry{"header.json", `{"status":"started","eval":{"task":"t"},"a":[NaN,-Infinity,"NaN\"Infinity"]}`}, entry{"samples/1.json", `{"id":1,"epoch":1,"messages":[{"role":"user","content":"Hi"}]}`}))
	f.Fuzz(func(t *testing.T, text string) {
		_, err := format.Import(t.Context(), importtest.NewLog(t), importtest.Source("f.eval", text))
		if !errors.Is(err, inspect.ErrTooLarge) {
			importtest.Lines{Format: format}.Sound(t, "f.eval", text)
		}
	})
}
