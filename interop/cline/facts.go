package cline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/records"
)

// facts are the facts in the files beside the history of a task.
type facts struct {
	title, folder, parent string
	isRoo                 bool
	environments          jsontext.Value // the versions of Cline and its host
	models                []modelUse
	// shown are the messages of the interface. answers are the indexes of the requests
	// by the index of their answer in the history, if the interface says it.
	shown   []shown
	answers map[int]int
	// deleted are the ranges of the history that are not sent any more, by the index of the
	// first message after the deletion.
	deleted map[int]deleted
	// total is the usage of all requests.
	total usage
}

// modelUse is the model from a time on.
type modelUse struct {
	At       float64 `json:"ts"`
	Model    string  `json:"model_id"`
	Provider string  `json:"model_provider_id"`
}

// modelInfo is the model of an answer. A document has the shorter names.
type modelInfo struct {
	Model    string `json:"modelId"`
	Provider string `json:"providerId"`
	ID       string `json:"id"`
	Vendor   string `json:"provider"`
}

// shown is a message of the interface.
type shown struct {
	At    float64   `json:"ts"`
	Say   string    `json:"say"`
	Text  string    `json:"text"`
	Model modelInfo `json:"modelInfo"`
	// Last is the index of the last message of the history; nil if it is unknown.
	Last *int `json:"conversationHistoryIndex"`
	// Deleted is the range of the history that is not sent any more; nil if there is none.
	Deleted *deleted `json:"conversationHistoryDeletedRange"`

	usage   usage
	request bool
	answer  bool // the history has the answer of the request
}

// readFacts reads the files beside a history. It rejects a file that cannot be parsed.
func readFacts(history string) (f facts, rejected []*records.RecordError) {
	f.isRoo = isInRooFolder(history)
	if fileKind(history) == "" {
		return f, nil
	}
	read := func(name string, into any) bool {
		path := filepath.Join(filepath.Dir(history), name)
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return false
		}
		if err == nil {
			err = json.Unmarshal(content, into, jsontext.AllowInvalidUTF8(true))
		}
		if err != nil {
			rec := records.Record{Source: path, Line: 1}
			rejected = append(rejected, rec.Reject(fmt.Errorf("%s: %w", name, err)))
		}
		return err == nil
	}
	f.readMetadata(read)
	f.readItem(read)
	f.readShown(read)
	return f, rejected
}

// readMetadata reads the models and versions.
func (f *facts) readMetadata(read func(string, any) bool) {
	var m struct {
		Models       []modelUse     `json:"model_usage"`
		Environments jsontext.Value `json:"environment_history"`
	}
	if read(metadataFile, &m) {
		f.models, f.environments = m.Models, m.Environments
	}
}

// readItem reads the entry of a task in the list of tasks of Roo Code.
func (f *facts) readItem(read func(string, any) bool) {
	var item struct {
		Task      string `json:"task"`
		Workspace string `json:"workspace"`
		Parent    string `json:"parentTaskId"`
		counts
	}
	if read(itemFile, &item) {
		f.isRoo = true
		f.title, f.folder, f.parent, f.total = item.Task, item.Workspace, item.Parent, item.usage()
	}
}

// readShown reads the messages of the interface.
func (f *facts) readShown(read func(string, any) bool) {
	if !read(interfaceFile, &f.shown) {
		return
	}
	f.answers, f.deleted = map[int]int{}, map[int]deleted{}
	newest := deleted{-1, -1}
	var sum usage
	for i := range f.shown {
		s := &f.shown[i]
		switch s.Say {
		case "task", "text":
			if i == 0 {
				f.title = s.Text
			}
		case "api_req_started", "deleted_api_reqs", "subagent_usage":
			s.request = s.Say == "api_req_started"
			var c counts
			if json.Unmarshal([]byte(s.Text), &c) == nil {
				s.usage = c.usage()
				sum.add(s.usage)
			}
		}
		if s.Deleted != nil && s.Last != nil && s.Deleted[1] > newest[1] {
			newest = *s.Deleted
			f.deleted[*s.Last+1] = newest
		}
		if s.request && s.Last != nil {
			f.answers[*s.Last+answerAhead] = i // of several attempts the last
		}
	}
	if !sum.isZero() {
		f.total = sum
	}
}

// answerAhead is how far the answer of a request is ahead of the last message of the
// history when the request begins: the message of the user comes between them.
const answerAhead = 2

// request is the request of the answer at an index of the history, with the time of the
// answer; nil if it is unknown. Without indexes it is the newest request before the
// answer.
func (f *facts) request(index int, at float64) *shown {
	if i, ok := f.answers[index]; ok {
		f.shown[i].answer = true
		return &f.shown[i]
	}
	if len(f.answers) > 0 || at == 0 {
		return nil
	}
	var newest *shown
	for i := range f.shown {
		if s := &f.shown[i]; s.request && s.At <= at {
			newest = s
		}
	}
	if newest == nil || newest.answer {
		return nil
	}
	newest.answer = true
	return newest
}

// answered is the time of the last part of the answer at an index of the history; zero if
// it is unknown.
func (f *facts) answered(index int) (at float64) {
	begun, ok := f.answers[index]
	if !ok {
		return 0
	}
	for _, s := range f.shown[begun+1:] {
		if s.Last != nil && *s.Last == index-1 {
			at = s.At
		}
	}
	return max(at, f.shown[begun].At)
}

// asked is the time of the request with the message at an index of the history; zero if it
// is unknown.
func (f *facts) asked(index int) float64 {
	if i, ok := f.answers[index+1]; ok {
		return f.shown[i].At
	}
	return 0
}

// modelAt is the model at a time.
func (f *facts) modelAt(at float64) (use modelUse) {
	for i, u := range f.models {
		if i == 0 || u.At <= at {
			use = u
		}
	}
	return use
}

func milli(ms float64) time.Time {
	if ms <= 0 || ms > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}
