// Package examples holds small programs, one per folder, for the tasks of
// docs/guide. Its tests run them.
package examples
