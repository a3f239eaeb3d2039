// Package examples holds small programs, one per folder, for the tasks of
// docs/GUIDE.md. Its tests run them.
package examples
