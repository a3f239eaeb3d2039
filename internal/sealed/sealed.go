// Package sealed gives the packages that write and verify stored lines the line of an event.
// Other programs must not use it: an event whose fields and line differ would break a log.
//
// Package event sets the functions. An argument e is an *event.Event.
package sealed

import "github.com/convlog/convlog/internal/line"

var (
	// Of returns the line of a stored event with what its hash covers. It is zero before
	// the append.
	Of func(e any) *line.Sealed

	// Fill makes e the event of a line that was parsed or rendered by this module. e shares
	// the bytes of the line.
	Fill func(e any, l *line.Line)

	// Remember makes event.DecodeKept decode the payload once for e and for the copies that
	// are made of e after the call. The results share their slices, maps and pointers: do
	// not modify what these refer to. The copies may be decoded concurrently. Data with other
	// bytes is decoded again.
	Remember func(e any)
)
