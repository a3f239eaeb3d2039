package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// apiAppend appends with every expectation, and events that cannot be appended.
func apiAppend(t *testing.T, s *site) {
	const path = "/sessions/new/events"
	add := func(body string, headers ...string) (h head) {
		t.Helper()
		x := s.call("POST", path, body, headers...)
		if x.value(t, &h); x.status != http.StatusOK || x.header.Get("ETag") != h.tag() {
			t.Errorf("%d %s %s", x.status, x.header, x.body)
		}
		return h
	}
	first := says("1", "2")
	h := add(first, "If-None-Match", "*")
	if again := add(first, "If-None-Match", "*"); h.Seq != 2 || again != h {
		t.Errorf("%+v, then %+v", h, again)
	}
	p := s.refuses(http.StatusPreconditionFailed, "conflict", "POST", path, says("x"), "If-None-Match", "*")
	if p.Seq != h.Seq || p.Hash != h.Hash {
		t.Errorf("the head is %+v, not %+v", h, p)
	}
	second := says("3")
	next := add(second, "If-Match", h.tag())
	p = s.refuses(http.StatusPreconditionFailed, "expected head 2", "POST", path, says("lost the race"), "If-Match", h.tag())
	if p.Seq != 3 || p.Hash != next.Hash {
		t.Errorf("the head is %+v, not %+v", next, p)
	}
	third := add(says("4"), "If-Match", fmt.Sprintf(`"%d"`, next.Seq))
	if again := add(second, "If-Match", h.tag()); again != next {
		t.Errorf("the repeated append has %+v, not %+v", again, next)
	}
	s.refuses(http.StatusPreconditionFailed, "expected head 9", "POST", path, says("x"), "If-Match", `"9"`)
	fifth := says("5")
	anywhere := add(fifth)
	if again := add(fifth); again != anywhere || again.Seq != third.Seq+1 {
		t.Errorf("%+v, then %+v", anywhere, again)
	}
	if add(`{"events":[{"type":"shop:order","data":{"n":1},"metadata":{"a":"b"},"cost":0.25}]}`).Seq != 6 {
		t.Error("an event without an id")
	}

	s.refuses(http.StatusConflict, "other content", "POST", path, strings.Replace(fifth, `"text":"5"`, `"text":"other"`, 1))
	s.refuses(http.StatusNotFound, "not found", "POST", "/sessions/none/events", says("x"), "If-Match", h.tag())
	s.refuses(http.StatusNotFound, "not found", "POST", "/sessions/none/events", says("x"), "If-Match", `"1"`)
	for _, match := range []string{"*", `"x"`, `"0"`, `"1:abc"`} {
		s.refuses(http.StatusBadRequest, "If-Match is", "POST", path, says("x"), "If-Match", match)
	}
	s.refuses(http.StatusBadRequest, "If-None-Match: *", "POST", path, says("x"), "If-None-Match", h.tag())
	s.refuses(http.StatusUnsupportedMediaType, "JSON", "POST", path, says("x"), "Content-Type", "text/plain")
	s.refuses(http.StatusRequestEntityTooLarge, "longer than", "POST", path, `{"events":[`+strings.Repeat(" ", 17<<20))
	for body, words := range map[string]string{`{`: "EOF", `[]`: "cannot be read", `{"event":[]}`: "event", `{"events":[{"id":"x","type":"a:b","data":1}]}`: "/events/0/id", `{"events":[{"type":1}]}`: "/events/0/type"} {
		s.refuses(http.StatusBadRequest, words, "POST", path, body)
	}
	before := s.get(path).body
	for _, c := range []struct{ body, rule, place string }{
		{`{"events":[]}`, "", "no events"},
		{says("x")[:len(says("x"))-2] + `,{"type":"message_added","data":{"role":"nobody","parts":[]}}]}`, "unknown_role", "event 2 (message_added)"},
		{`{"events":[{"type":"message_added","data":{"role":"tool","parts":[{"type":"tool_result","call_id":"c9","output":[]}]}}]}`, "orphan_result", "event 1"},
		{`{"events":[{"type":"Bad Type","data":1}]}`, "event_type", "event 1"},
		{`{"events":[{"type":"session_forked","data":{}}]}`, "", "event 1"},
		{`{"events":[{"type":"a:b","data":1,"metadata":[1]}]}`, "metadata", "event 1"},
	} {
		if p := s.refuses(http.StatusUnprocessableEntity, c.place, "POST", path, c.body); c.rule != "" && p.Rule != c.rule {
			t.Errorf("%s: the rule is %q: %s", c.body, p.Rule, p.Detail)
		}
	}
	s.refuses(http.StatusUnprocessableEntity, "session", "POST", "/sessions/a%00b/events", says("x"))
	if after := s.get(path).body; string(after) != string(before) {
		t.Error("a refused append changed the session")
	}
}
