// Package inspect imports the eval logs that Inspect writes: as JSON, one document
// in which each sample is a conversation, or packed (.eval), a file for each sample
// in a zip.
//
// Each sample is a session: of the sample's uuid, else named by the task, the
// sample, the epoch and digits of the run. Its messages become message_added;
// calls, results, errors of tools and reasoning are told as such, and texts and
// images that stand among the attachments are put in their places. What a model took
// is told of the answer that it gave, where the log has its event and the ids of
// messages; the rest of the sample's tokens become a step_completed behind the
// messages. Then all events, and the attachments, are kept raw as
// "inspect:<event>" and "inspect:attachments". All else that is told of the sample
// and of the evaluation is in the extra of session_started; the results of the
// whole evaluation are kept raw, as "inspect:log", in its first sample. A document
// that is cut off is refused.
//
// A packed log gives the same sessions. Its samples are unpacked one after the
// other; one that is larger than 256 MB is refused, and so is a log that unpacks to
// two hundred times its size and a gigabyte (ErrTooLarge). NaN and infinities, which
// JSON does not have, become texts. Its summaries, which repeat what the samples
// tell, are not read.
package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "inspect"

// Format imports eval logs of Inspect. The zero value is ready for use.
type Format struct{}

// Name is "inspect".
func (Format) Name() string { return Name }

// Declare gives the evaluation, for all of its samples: its run, its task's id, or
// else its task. A run that repeats another has the task's id of that run, and some of
// its samples.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	if bytes.HasPrefix(begin, []byte("PK")) {
		begin = firstOf(begin)
	}
	eval := head.Begins(begin).In("eval")
	for _, name := range []string{"run_id", "task_id"} {
		if id := eval.Text(name); id != "" {
			ids.Owns = append(ids.Owns, "inspect:"+id)
		}
	}
	if task := eval.Text("task"); len(ids.Owns) == 0 && task != "" {
		ids.Owns = []string{"inspect:" + task}
	}
	return ids
}

// Detect looks for what a log begins with: its version or status, and the task. A
// packed log is known by its name and by what all packed files begin with.
func (Format) Detect(name string, begin []byte) bool {
	if isPacked(name, begin) {
		return true
	}
	h := head.Begins(begin)
	if head.IsArray(begin) || !h.Has("version") && !h.Has("status") {
		return false
	}
	eval := h.In("eval")
	return eval.Has("task") && (eval.Has("run_id") || eval.Has("task_id") || eval.Has("model"))
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	f, err := src.Open()
	if err != nil {
		return interop.Result{}, fmt.Errorf("open %s: %w", src.Name, err)
	}
	begin := make([]byte, 4)
	n, err := io.ReadFull(f, begin)
	if err := f.Close(); err != nil {
		return interop.Result{}, fmt.Errorf("close %s: %w", src.Name, err)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return interop.Result{}, fmt.Errorf("read %s: %w", src.Name, err)
	}
	if !isPacked(src.Name, begin[:n]) {
		return document.Import(ctx, log, src, Name, read)
	}
	p, done, err := unpack(src)
	if err != nil {
		return interop.Result{}, err
	}
	result, err := document.ImportRecords(ctx, log, src, Name, p.records(), p.read)
	return result, errors.Join(err, done())
}
