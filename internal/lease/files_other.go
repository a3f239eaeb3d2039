//go:build !linux

package lease

// Files returns a table with a lock file for each lease that is held: path, a dash and
// 16 hex digits.
func Files(path FilePath, _ bool) *Table { return newTable(newFiles(path)) }
