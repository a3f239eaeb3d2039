// Package httpapi has what the HTTP handlers over a log share: problem documents, streams of
// server-sent events, the guard of a server on loopback, and the JSON of an event.
package httpapi
