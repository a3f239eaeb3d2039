//go:build !unix && !windows

package regular

import (
	"io/fs"
	"os"
)

const noWait = 0

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
