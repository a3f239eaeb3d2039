// Package inspect imports the eval logs of Inspect. A log is a JSON document with one
// conversation per sample, or a packed log (.eval): a zip archive with one file per
// sample.
//
// # Events
//
// Each sample becomes a session. The session id is the sample's uuid. Without a uuid,
// the id consists of the task, the sample, the epoch and a digest of the run.
// Messages become message_added, with calls, results, tool errors and reasoning.
// Texts and images from the attachments replace their references. An answer gets the
// token counts of its model event, if the log has that event and message ids. The
// remaining tokens of the sample become a step_completed after the messages.
//
// All events and attachments are stored raw after the messages, as "inspect:<event>"
// and "inspect:attachments". The extra of session_started holds the other members of
// the sample and the evaluation. The results of the evaluation are stored raw as
// "inspect:log", in its first sample. A truncated document is rejected.
//
// # Packed logs
//
// A packed log gives the same sessions as the JSON document. The importer unpacks one
// sample at a time and rejects a sample over 256 MB. If a log unpacks to more than
// 200 times its size plus 1 GB, the import fails with errTooLarge. NaN and Infinity,
// which are invalid in JSON, become strings. The importer skips the summaries: the
// samples have the same data.
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

const formatName = "inspect"

// Format imports eval logs of Inspect. The zero value is ready for use.
type Format struct{}

// Name returns "inspect".
func (Format) Name() string { return formatName }

// Declare gives the evaluation, for all of its samples: its run, its task's id, or
// else its task. A run that repeats another has the task's id of that run, and some of
// its samples.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) (owned []string) {
		if bytes.HasPrefix(begin, []byte("PK")) {
			begin = firstFile(begin)
		}
		eval := head.Begins(begin).In("eval")
		for _, name := range []string{"run_id", "task_id"} {
			if id := eval.Text(name); id != "" {
				owned = append(owned, "inspect:"+id)
			}
		}
		if task := eval.Text("task"); len(owned) == 0 && task != "" {
			owned = append(owned, "inspect:"+task)
		}
		return owned
	})
}

// Detect checks that a log starts with a version or status, and with the task. A
// packed log has the suffix .eval and a zip header.
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

// Import appends the events of the source that are not in the log yet.
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
		return document.Import(ctx, log, src, formatName, read)
	}
	p, done, err := openPacked(src)
	if err != nil {
		return interop.Result{}, err
	}
	result, err := document.ImportRecords(ctx, log, src, formatName, p.records(), p.read)
	return result, errors.Join(err, done())
}
