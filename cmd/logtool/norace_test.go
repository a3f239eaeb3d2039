//go:build !race

package main

// raceFactor is how much more memory a command needs without the race detector.
const raceFactor = 1
