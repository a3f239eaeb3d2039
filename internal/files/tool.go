// Package files tells what a session read and changed. It reads the calls of tools and
// their results; a table of the session's program says what each tool does with which file.
package files

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Tools describes the tools of a program that work on files, by name.
type Tools map[string]Tool

// Tool describes a tool. Path, Text, Old, All, Edits and Folder are names of arguments;
// several names of one argument, from versions of the program, are separated by a space.
type Tool struct {
	Does Doing
	// Path is the argument with the path of the file, or of files. Without it the tool works on
	// the file that Sees names.
	Path string
	// Text is the argument with the new text, the patch or the command. A patch may be
	// the whole arguments.
	Text string
	// Old is the argument with the text that Text replaces, and All the flag that replaces
	// every place. Edits is an argument with a list of such arguments.
	Old, All, Edits string
	// Line is the argument with the number of the line after which Text is inserted. Of the
	// lines that Text replaces, Line is the first and End the last.
	Line, End string
	// Folder is the argument with the working folder; without it, the folder of the message
	// or of the session counts.
	Folder string
	// Pick names one of Each for the arguments, and returns the arguments of that tool. The tool
	// itself does nothing then.
	Pick func(args *Arguments) (name string, own Arguments)
	Each Tools
	// Sees reads a result; nil if results tell nothing about the content of files.
	Sees func(r *Result) Seen
}

// Doing is what a tool does.
type Doing int8

// The doings of tools.
const (
	Reads    Doing = iota + 1 // the file at Path
	Writes                    // Text is the whole new content of the file
	Edits                     // replaces Old by Text, or each of Edits in turn
	Blocks                    // Text has blocks of the form SEARCH … REPLACE
	Patches                   // Text is a patch in the form of apply_patch
	Inserts                   // inserts Text after Line
	Replaces                  // replaces the lines from Line to End by Text
	Changes                   // changes the file; the arguments do not give the text
	Deletes                   // the file at Path
	Runs                      // Text is a shell command
	Acts                      // may change any file; Text says how
)

// Result is the result of a call, with the parts of its record that the log keeps beside it.
type Result struct {
	*event.Part
	// Call has the arguments of the call.
	Call Arguments
	// Beside is the Extra of the message with the result.
	Beside jsontext.Value
}

// Text joins the texts of the result.
func (r *Result) Text() string {
	var b strings.Builder
	for i := range r.Content {
		b.WriteString(r.Content[i].Text)
	}
	return b.String()
}

// Seen is the content of a file that a result shows. The zero value shows nothing.
type Seen struct {
	// Before is the whole content before the call, and After the whole content after it. A
	// read shows After.
	Before, After *string
	// Created says that there was no file before the call.
	Created bool
	// Failed says that nothing was done, in a result that is not marked as an error.
	Failed bool
	// Lines is a part of the content after the call: whole lines from number From on.
	Lines string
	From  int
	// Places are the numbers of the first changed lines, one for each run of changed lines.
	Places []int
	// Path is the file that the call worked on, if its arguments do not name it.
	Path string
	// Folder is the working folder after the call.
	Folder string
}

// Numbered reads lines with their numbers, as "     3\ttext", "3: text", "3| text" and "3:text":
// the lines without the numbers, and the first number. Lines without a number end the text.
func Numbered(text, mark string) (s Seen) {
	var b strings.Builder
	next := 0
	for line := range strings.Lines(text) {
		number, rest, ok := strings.Cut(line, mark)
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if !ok || err != nil || next > 0 && n != next {
			if next > 0 {
				break
			}
			continue
		}
		if s.From == 0 {
			s.From = n
		}
		next = n + 1
		b.WriteString(rest)
	}
	s.Lines = b.String()
	return s
}
