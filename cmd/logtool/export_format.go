package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/html"
	"github.com/convlog/convlog/interop/markdown"
	"github.com/convlog/convlog/projection"
)

// exportFormat is a format that sessions are exported in.
type exportFormat struct {
	suffix string // of files in a folder
	isList bool   // of messages, a line for each session
	// write writes one session; nil where a file holds events of all.
	write func(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error
}

var exportFormats = map[string]exportFormat{
	"jsonl":     {},
	"openai":    {suffix: ".json", isList: true, write: exportList},
	"responses": {suffix: ".json", isList: true, write: exportList},
	"anthropic": {suffix: ".json", isList: true, write: exportList},
	"markdown":  {suffix: ".md", write: exportMarkdown},
	"html":      {suffix: ".html", write: exportHTML},
}

func exportMarkdown(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	return markdown.Write(ctx, w, log, session, markdown.Options{All: x.path == allPaths})
}

func exportHTML(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	return html.Write(ctx, w, log, session, html.Options{All: x.path == allPaths})
}

// exportList writes what the model sees of a session on one line.
func exportList(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	view, err := projection.Load(ctx, log, session, projection.History())
	if err != nil {
		return err
	}
	entries, err := view.State.Messages()
	if err != nil {
		return err
	}
	t := historyOptions{format: x.format, model: x.model}
	request, err := t.request(ctx, log, entries)
	if err != nil {
		return err
	}
	_, err = w.Write(append(request, '\n'))
	return err
}

// isFolder reports whether a path names a folder: one that is there, or one to be
// made.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || strings.HasSuffix(path, "/")
}

// exportInto writes each session to a file of its own.
func (a *app) exportInto(ctx context.Context, log *eventlog.Log, sessions []string, x exportOptions) error {
	f := exportFormats[x.format]
	if err := os.MkdirAll(x.file, 0o700); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, session := range sessions {
		file := filepath.Join(x.file, fileName(session)+f.suffix)
		err := a.output(file, func(w io.Writer) error { return f.write(ctx, w, log, session, x) })
		if err != nil {
			return fmt.Errorf("export session %q: %w", session, err)
		}
	}
	return nil
}

// fileName is the name of a file for a session: its id, if that can be one.
func fileName(session string) string {
	const most = 180
	var name strings.Builder
	for _, b := range []byte(session) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-', b == '.' && name.Len() > 0:
			name.WriteByte(b)
		default:
			fmt.Fprintf(&name, "%%%02X", b)
		}
	}
	if name.Len() <= most {
		return name.String()
	}
	return name.String()[:most] + "~" + event.DigestOf([]byte(session)).Hex()[:32]
}
