package taubench

import (
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// A folder of tau2-bench has a file about the run, and a folder with a file for each
// simulation.
const (
	resultsFile = "results.json"
	simulations = "simulations"
)

// Gathered returns the file about the run for a simulation in its folder.
func (Format) Gathered(path string, _ []byte) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) != simulations {
		return ""
	}
	run := filepath.Join(filepath.Dir(dir), resultsFile)
	if info, err := os.Stat(run); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return run
}

// simulationsOf are the files with the simulations of a run, in order of their names.
func simulationsOf(path string) (files []string, err error) {
	if filepath.Base(path) != resultsFile {
		return nil, nil
	}
	dir := filepath.Join(filepath.Dir(path), simulations)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && filepath.Ext(entry.Name()) == ".json" {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files, err
}

// recordsOf yields the values of a file, then the values of other files.
func recordsOf(src interop.Source, files []string) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range records.Values(src) {
			if !yield(rec, err) {
				return
			}
		}
		for _, path := range files {
			one, err := interop.File(path)
			if err != nil {
				yield(records.Record{}, err)
				return
			}
			for rec, err := range records.Values(one) {
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}
