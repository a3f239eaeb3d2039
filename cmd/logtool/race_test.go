//go:build race

package main

// raceFactor is how much more memory a command needs with the race detector.
const raceFactor = 10
