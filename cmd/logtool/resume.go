package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/projection"
)

// resumption is a call of resume.
type resumption struct {
	to, cwd, dir string
	from         int // --compact-from; -1 without it
	dry, run     bool
	writer       interop.Writer
}

func (a *app) resumeCommand() *cobra.Command {
	var at pointFlags
	var x resumption
	cmd := a.command(&cobra.Command{
		Use:   "resume [SESSION]",
		Short: "Go on with a session in its program, or in another one",
		Long: `Write a session as a file of the program that it was imported from, or of the one
that --to names, and print the command that goes on with it. The file has what the
model sees at the head, or at the place that --at, --at-turn or --at-snapshot names.
It has a new id, and no file is overwritten. What the program cannot read is listed.
OpenCode reads a file with its command import.

The log gets a fork with the new id. import reads what the program adds to the file
as the events of that fork, so the beginning counts once.

Without a session, resume shows a list on a terminal that narrows as one types, with the
end of the marked session beside it.

--compact-from N puts a summary in the place of the messages before turn N, for a
history that is too long for the other model. The summary is the text of the newest
compaction before turn N, if there is one, and the prompts since. The log gets it as
a compaction of the fork.

--run starts the program. --dir writes the file below another folder, where the
program does not look by itself.`,
		Example: "  logtool resume fix-login --to codex --at-turn 2 --before",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			point, err := at.point(cmd)
			if err != nil {
				return err
			}
			if x.run && (x.dry || a.json) {
				return usagef("--run starts the program: leave out --dry-run and --json")
			}
			if !cmd.Flags().Changed("compact-from") {
				x.from = -1
			} else if x.from < 0 {
				return usagef("turns are counted from 0, not %d", x.from)
			}
			if x.writer, err = writerOf(x.to); err != nil {
				return err
			}
			if len(args) == 0 {
				session, err := a.pick(cmd.Context())
				if err != nil {
					return err
				}
				args = []string{session}
			}
			m := forChanging
			if x.dry {
				m = forReading
			}
			return a.session(cmd.Context(), m, args[0], func(log *eventlog.Log, session string) error {
				return a.resume(cmd.Context(), log, session, point, x)
			})
		},
	}, traits{section: secMove, verb: "writing", args: []argument{sessionArg}})
	cmd.Flags().StringVar(&x.to, "to", "", "the `program`: "+strings.Join(writerNames(), ", "))
	completeFlag(cmd, "to", writerNames()...)
	at.flags(cmd, "at")
	cmd.Flags().IntVar(&x.from, "compact-from", 0, "put a summary in the place of what is before `turn` N, counted from 0")
	cmd.Flags().StringVar(&x.cwd, "cwd", "", "the working directory to go on in; default: that of the session")
	cmd.Flags().StringVar(&x.dir, "dir", "", "write the file below this folder")
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "write nothing; print what would be written and where")
	cmd.Flags().BoolVar(&x.run, "run", false, "start the program")
	return cmd
}

// writers are the programs that can go on with a session.
func writers() (all []interop.Writer) {
	for _, f := range formats.All() {
		if w, ok := f.(interop.Writer); ok {
			all = append(all, w)
		}
	}
	return all
}

func writerNames() (names []string) {
	for _, w := range writers() {
		names = append(names, w.Name())
	}
	slices.Sort(names)
	return names
}

// writerOf returns the writer of a program; nil for no name.
func writerOf(name string) (interop.Writer, error) {
	if name == "" {
		return nil, nil
	}
	for _, w := range writers() {
		if w.Name() == name {
			return w, nil
		}
	}
	return nil, usagef("no program %q can go on with a session: --to is one of %s", name, strings.Join(writerNames(), ", "))
}

// resumed is the result of resume with --json.
type resumed struct {
	Program   string             `json:"program"`
	Session   string             `json:"session"`
	Parent    string             `json:"parent"`
	At        int64              `json:"at"`
	Path      string             `json:"path"`
	Bytes     int                `json:"bytes"`
	Messages  int                `json:"messages"`
	Tokens    int64              `json:"tokens,omitzero"` // of the newest answer and its request
	Compacted *summarized        `json:"compacted,omitzero"`
	Losses    map[string][]int64 `json:"losses"`
	Import    []string           `json:"import,omitzero"`
	Command   []string           `json:"command"`
	CWD       string             `json:"cwd"`
}

func (a *app) resume(ctx context.Context, log *eventlog.Log, session string, point fork.Point, x resumption) error {
	at, err := fork.Resolve(ctx, log, session, point)
	if err != nil {
		return err
	}
	c, err := conversationOf(ctx, log, session, at.Seq)
	if err != nil {
		return err
	}
	tokens, err := newestTokens(ctx, log, session, at.Seq)
	if err != nil {
		return err
	}
	var compacted *summarized
	if x.from >= 0 {
		if compacted, err = compactBefore(ctx, log, session, at.Seq, x.from, &c); err != nil {
			return err
		}
		tokens = 0 // the request of the newest answer was longer
	}
	if x.writer == nil {
		if x.writer, err = writerOf(c.Format); err != nil || x.writer == nil {
			return usagef("session %s came from no program that can go on with it: name one with --to", clean(session))
		}
	}
	if w, ok := x.writer.(interface{ NewID() string }); ok {
		c.ID = w.NewID()
	}
	if err := x.settle(&c); err != nil {
		return err
	}
	folder := a.pathOf(x.writer.Folders()[0])
	if x.dir == "" {
		c.Folder = folder
	}
	w, err := x.writer.Write(c)
	if err != nil {
		return fmt.Errorf("write session %q for %s: %w", session, x.writer.Name(), err)
	}
	if len(w.Import) > 0 {
		folder = filepath.Dir(folder)
	}
	dir := cmp.Or(x.dir, folder)
	r := resumed{
		Program: x.writer.Name(), Session: c.ID, Parent: session, At: at.Seq, Path: filepath.Join(dir, filepath.FromSlash(w.Path)),
		Bytes: len(w.Body), Messages: len(c.History), Tokens: tokens, Compacted: compacted,
		Losses: w.Losses, Command: w.Command, CWD: c.CWD,
	}
	if len(w.Import) > 0 {
		if r.Path, err = filepath.Abs(r.Path); err != nil { // the command runs in another directory
			return err
		}
		r.Import = append(slices.Clone(w.Import), r.Path)
	}
	if !x.dry {
		if err := r.write(ctx, log, &w); err != nil {
			return err
		}
	}
	if err := a.answer(r, func(p *printer) { p.resumed(&r, x.dry) }); err != nil || !x.run {
		return err
	}
	return r.start(ctx, a)
}

// conversationOf reads what a program gets of a session up to an event.
func conversationOf(ctx context.Context, log *eventlog.Log, session string, at int64) (c interop.Conversation, err error) {
	info, err := projection.Load(ctx, log, session, projection.Info(), projection.Options{At: at})
	if err != nil {
		return c, err
	}
	c = interop.Conversation{
		ID: uuid.NewString(), Format: info.State.Source.Format, Title: info.State.Title, CWD: info.State.CWD,
		At: time.Now(), Blob: interop.Bodies(ctx, log), Contexts: map[int64]bool{},
	}
	for parent, err := range log.Ancestors(ctx, session) { // a fork has no source of its own
		if err != nil {
			return c, err
		}
		info, err := projection.Load(ctx, log, parent.Session, projection.Info())
		if err != nil {
			return c, err
		}
		s := info.State
		c.Format, c.Title, c.CWD = cmp.Or(c.Format, s.Source.Format), cmp.Or(c.Title, s.Title), cmp.Or(c.CWD, s.CWD)
	}
	times := map[int64]time.Time{}
	for e, err := range log.Read(ctx, session, eventlog.Between(0, at).OnPath().Bare()) {
		if err != nil {
			return c, err
		}
		times[e.Seq] = event.Dated(e.Timestamp)
		if _, ok := e.MetadataValue("context"); ok {
			c.Contexts[e.Seq] = true
		}
	}
	for e, err := range projection.Entries(ctx, log, session, projection.RenderOptions{}, projection.Options{At: at}) {
		if err != nil {
			return c, err
		}
		c.History, c.Times = append(c.History, e), append(c.Times, times[e.Seq])
	}
	if len(c.History) == 0 {
		return c, fmt.Errorf("session %q has no message up to seq %d: there is nothing to go on with", session, at)
	}
	return c, nil
}

// settle sets the working directory.
func (x *resumption) settle(c *interop.Conversation) error {
	if x.cwd != "" {
		var err error
		if c.CWD, err = filepath.Abs(x.cwd); err != nil {
			return err
		}
	}
	if c.CWD == "" {
		return usagef("the session has no working directory: name one with --cwd")
	}
	if info, err := os.Stat(c.CWD); err != nil || !info.IsDir() || !filepath.IsAbs(c.CWD) { // of another system
		return fmt.Errorf("the working directory %s does not exist here: name another one with --cwd", clean(c.CWD))
	}
	if real, err := filepath.EvalSymlinks(c.CWD); err == nil { // as the program sees it
		c.CWD = real
	}
	return nil
}

// write writes the file, and appends the fork before the file has its name. So a file without
// a fork has a temporary name.
func (r *resumed) write(ctx context.Context, log *eventlog.Log, w *interop.Written) error {
	file := written.File{Format: r.Program, Path: r.Path, Bytes: int64(len(w.Body)), Header: w.Header, Digest: event.DigestOf(w.Body), Seqs: w.Seqs}
	if n := len(file.Seqs); n > 0 { // the program goes on after the last record
		file.Seqs[n-1] = r.At
	}
	if r.Compacted != nil { // a rewind to an event before the compaction would undo it
		for i := range file.Seqs {
			file.Seqs[i] = r.At + 2 // session_forked, compaction_triggered
		}
	}
	forked := false
	err := writeNew(r.Path, w.Body, func() error {
		_, err := fork.At(ctx, log, r.Parent, fork.AtSeq(r.At), fork.Options{
			ID: r.Session, Label: r.Program, Reason: "resume in " + r.Program, Force: true, Metadata: map[string]any{written.Key: file},
		})
		forked = err == nil
		if forked && r.Compacted != nil {
			_, err = log.Append(ctx, r.Session, eventlog.Any(), event.New(r.Compacted.compaction))
		}
		return err
	})
	if err != nil && forked {
		return fmt.Errorf("%w; the log has the fork %s, without a file", err, r.Session)
	}
	return err
}

// start runs the program in the working directory of the session.
func (r *resumed) start(ctx context.Context, a *app) error {
	for _, words := range [][]string{r.Import, r.Command} {
		if len(words) == 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.CWD, os.Stdin, a.out, a.err
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	return nil
}

func (p *printer) resumed(r *resumed, dry bool) {
	verb := "wrote"
	if dry {
		verb = "would write"
	}
	long := ""
	if r.Tokens > 0 {
		long = fmt.Sprintf(", %s as its model counted", count(r.Tokens, "token"))
	}
	p.Printf("%s %s (%s, %s%s)\n", verb, clean(r.Path), count(r.Messages, "message"), size(int64(r.Bytes)), long)
	if r.Compacted != nil {
		p.Printf("  %s\n", r.Compacted)
	}
	p.losses(r.Losses)
	if dry {
		return
	}
	p.Printf("\ngo on with:\n  cd %s\n", shellWord(clean(r.CWD)))
	for _, words := range [][]string{r.Import, r.Command} {
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = shellWord(clean(word))
		}
		if len(words) > 0 {
			p.Printf("  %s\n", strings.Join(quoted, " "))
		}
	}
}

// lossWords explain the kinds of losses.
var lossWords = map[string]string{
	"reasoning":   "thinking that only its own model can read",
	"system":      "text of the system; the program has its own",
	"context":     "contexts that a program added",
	"error_mark":  "marks of failed results; their texts stay",
	"audio":       "sounds; a line of text stays",
	"document":    "documents; a line of text stays",
	"server_tool": "calls of the provider's own tools",
	"opaque":      "parts that only their provider can read",
	"erased":      "erased content; a line of text stays",
	"interrupted": "results of calls that never ended; a line that says so stays",
}

// losses prints a line for each kind.
func (p *printer) losses(all map[string][]int64) {
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		var places []string
		for _, seq := range slices.Compact(slices.Clone(all[kind])) {
			if len(places) == 5 {
				places = append(places, "…")
				break
			}
			if seq > 0 {
				places = append(places, fmt.Sprintf("#%d", seq))
			}
		}
		p.Printf("  left out: %d × %s %s\n", len(all[kind]), lossWords[kind], strings.Join(places, " "))
	}
}
