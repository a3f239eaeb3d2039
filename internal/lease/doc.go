// Package lease implements eventlog.Leaser for the stores. A Table has the leases of an
// open store. Below it, a lock of the operating system for each lease excludes other
// processes and other open stores. The kernel releases the locks of a process that dies.
//
// On Linux the locks are ranges of one byte in one file (ranges.go), so any number of
// leases needs one descriptor. Other systems have a file for each lease (files.go).
package lease
