package folder

import (
	"errors"
	"os"
)

// TempFile is a file that Close removes. It has no name where the system removes an open
// file, so a killed process leaves nothing.
type TempFile struct{ *os.File }

// Temp creates a TempFile, with the arguments of os.CreateTemp.
func Temp(dir, pattern string) (*TempFile, error) {
	file, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // where the system refuses, Close removes it
	return &TempFile{file}, nil
}

// Close closes and removes the file.
func (f *TempFile) Close() error {
	err := f.File.Close()
	if removed := os.Remove(f.Name()); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
