//go:build !linux

package testsize

// memoryFolder returns a folder in memory for temporary files, or an empty string.
func memoryFolder() string { return "" }
