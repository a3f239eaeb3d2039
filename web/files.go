package web

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop/formats"
)

// filesPage lists the files that a session read and changed, and the changes in order.
var filesPage = page{pattern: "/s/{session}/files", template: "files.html", tab: "Files", load: (*Handler).files}

// filesView is the page of the files of a session.
type filesView struct {
	*sessionHead
	Files []fileRow
	Left  int    // files that the page leaves out
	File  string // the page is about this file; empty for all
	All   string // the address of the page about all files
	// Changes are the changes from the one with the number From, counted from 1.
	Changes        []fileChange
	Found          int
	From, To       int
	Earlier, Later string
	Notes          []htmlpage.Link // calls that may have changed files
}

// fileRow is a file in the table.
type fileRow struct {
	*files.File
	Name, Link string
	Gaps       []string
}

// fileChange is a change of a file.
type fileChange struct {
	Seq      int64
	Link     string
	Tool     string
	Path, To string
	At       time.Time
	Orphaned bool
	Gap      string
	Diff     *htmlpage.Diff
	Unknown  bool   // the log does not have the text
	Command  string // of a shell
}

// The most files and changes that a page shows.
const (
	filesRows   = 200
	fileChanges = 50
)

func (h *Handler) files(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	from, err := seqOf(r, "from", 1)
	if err != nil {
		return view{}, err
	}
	v := filesView{sessionHead: s, File: r.URL.Query().Get("file"), From: int(min(from, 1<<31)), All: sessionPath(s.ID, "files")}
	list, err := h.fileChanges(r.Context(), &v)
	if err != nil {
		return view{}, err
	}
	v.list(list)
	v.pager()
	title := "Files · " + s.Title
	if v.File != "" {
		title = transcript.Visible(files.Below(s.row.CWD, v.File)) + " · " + s.Title
	}
	return view{title: title, body: v}, nil
}

// changesTo yields what a session did to files up to an event.
func (h *Handler) changesTo(ctx context.Context, session string, seq int64) iter.Seq2[files.Change, error] {
	return files.Of(ctx, h.log, session, eventlog.Between(0, seq), formats.FileTools)
}

// fileChanges reads the list of the files, and the changes of the page.
func (h *Handler) fileChanges(ctx context.Context, v *filesView) (*files.List, error) {
	list := &files.List{}
	render := newView(v.ID, v.row.CWD)
	for c, err := range h.changesTo(ctx, v.ID, v.Head) {
		if err != nil {
			return nil, err
		}
		list.Add(&c)
		if !c.Changes() || c.Result == 0 || v.File != "" && c.Path != v.File && c.To != v.File {
			continue
		}
		if v.Found++; v.From <= v.Found && v.Found < v.From+fileChanges {
			v.Changes = append(v.Changes, v.change(render, &c))
		}
	}
	return list, nil
}

func (v *filesView) change(render *htmlpage.View, c *files.Change) fileChange {
	folder := v.row.CWD
	x := fileChange{Seq: c.Seq, Link: eventLink(v.ID, c.Seq), Tool: transcript.Visible(htmlpage.Brief(c.Tool, 60)), At: c.At, Orphaned: c.Orphaned,
		Path: transcript.Visible(files.Below(folder, c.Path)), Command: transcript.Visible(htmlpage.Brief(c.Command, 160))}
	if c.Does == files.Move {
		x.To = transcript.Visible(files.Below(folder, c.To))
	}
	if g := c.GapBefore(); g != nil {
		x.Gap = gapText(g)
	}
	if hunks := c.Hunks(); len(hunks) > 0 {
		d := render.Diff(files.Below(folder, cmp.Or(c.To, c.Path)), hunks)
		x.Diff = &d
	} else {
		x.Unknown = !c.After.Known
	}
	return x
}

func gapText(g *files.ListedGap) string {
	short := *g
	short.Command = htmlpage.Brief(g.Command, 160)
	return transcript.Visible(short.String())
}

// list makes the table of files, and the notes about calls that may have changed files.
func (v *filesView) list(list *files.List) {
	for _, f := range list.Files {
		if v.File != "" && f.Path != v.File {
			continue
		}
		if len(v.Files) == filesRows {
			v.Left = len(list.Files) - filesRows
			break
		}
		row := fileRow{File: f, Name: transcript.Visible(files.Below(v.row.CWD, f.Path)), Link: v.All + "?file=" + url.QueryEscape(f.Path)}
		for i := range f.Gaps {
			row.Gaps = append(row.Gaps, gapText(&f.Gaps[i]))
		}
		v.Files = append(v.Files, row)
	}
	note := func(text, link string) {
		v.Notes = append(v.Notes, htmlpage.Link{Name: transcript.Visible(text), Href: link})
	}
	for _, tool := range slices.Sorted(maps.Keys(list.Commands)) {
		note(transcript.Count(int64(list.Commands[tool]), "call")+" of "+htmlpage.Brief(tool, 60)+" may have changed any file", "")
	}
	for _, child := range list.Children {
		note("a sub-agent changed files in its own session", sessionPath(child, "files"))
	}
	if list.Open > 0 {
		note(transcript.Count(int64(list.Open), "call")+" without a result", "")
	}
}

// pager links the changes before and after those of the page.
func (v *filesView) pager() {
	v.To = v.From + len(v.Changes) - 1
	address := func(from int) string {
		q := url.Values{"from": {strconv.Itoa(from)}}
		if v.File != "" {
			q.Set("file", v.File)
		}
		return v.All + "?" + q.Encode()
	}
	if v.From > 1 {
		v.Earlier = address(max(1, v.From-fileChanges))
	}
	if v.To < v.Found {
		v.Later = address(v.To + 1)
	}
}
