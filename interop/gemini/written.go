package gemini

import "strings"

// responseSuffix ends the id of the message that the program makes of the results of an answer
// when it goes on.
const responseSuffix = "_response"

// isWritten reports whether the record is of the part of the file that the log wrote, or
// repeats a record of it.
func (w *recordWriter) isWritten() bool {
	_, ok := w.s.Records[strings.TrimSuffix(w.r.id, responseSuffix)]
	return ok
}

// addWritten notes a message whose events the log has.
func (w *recordWriter) addWritten(pieces []piece) {
	id := strings.TrimSuffix(w.r.id, responseSuffix)
	if _, again := w.s.parents[id]; !again {
		w.s.parents[id] = w.s.lastSeq
	}
	w.s.told.tell(w.r, pieces)
	for i := range pieces {
		for _, call := range pieces[i].m.ToolCalls() {
			w.s.callers[call.CallID] = id
		}
	}
	w.newest, w.s.matched = max(w.newest, w.s.Records[id]), true
}
