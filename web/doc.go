// Package web serves the sessions of a log as pages for a browser. The pages change no session, and
// work without scripts; a script makes them follow a session while it grows.
//
//	h, err := web.New(log, web.Options{Prices: prices.Builtin()})
//	...
//	fmt.Println("open", h.URL("127.0.0.1:8080"))
//	err = http.Serve(listener, h)
//
// Whoever holds the token of the Handler reads all of the log, so URL has the token. The first
// request exchanges it for a cookie; a program sends it as Authorization: Bearer.
//
// Programs in other languages read, follow and append at /api/v1: openapi.json describes it, and
// docs/guide/api.md has programs. A new path is a row in routes, its answer in openapi.json, and a
// request in TestAPI.
//
// A new page of this package is one file and one template: a value of type page with its
// pattern, its name among the tabs of a session, and a function that loads its view; a file in
// templates that defines "content" for the view; and a line in pages. stats.go is an example of
// a page. A page below /s/{session} embeds *sessionHead in its view, which Handler.head loads, and
// begins its template with {{template "head" .}}; event.go is an example, and htmlpage.View
// renders entries, calls and diffs.
package web
