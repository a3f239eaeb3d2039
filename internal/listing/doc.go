// Package listing lists the sessions of a log for people: a small row for each session, with
// its origin, its program and its counts, filters and orders. Commands and pages use it.
package listing
