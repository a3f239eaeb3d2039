package main

// printPeak is not used: Windows does not report the peak memory of a process that has ended.
func printPeak() { panic("no peak memory on Windows") }
