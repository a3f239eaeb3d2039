//go:build unix && !linux

package main

// maxrssUnit is the unit of Rusage.Maxrss, in bytes.
const maxrssUnit = 1
