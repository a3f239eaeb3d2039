package gemini

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
)

// slugOf is the name of the folder that the program uses for the sessions of a working
// directory, below its folder tmp. If the program has none yet, it is the name that the program
// chooses when it starts there.
func slugOf(tmp, cwd string) (string, error) {
	var registry struct {
		Projects map[string]string `json:"projects"`
	}
	path := filepath.Join(filepath.Dir(tmp), "projects.json")
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, &registry); err != nil {
			return "", fmt.Errorf("%s: %w: Gemini CLI finds no session without it", path, err)
		}
	} else if tmp != "" && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if slug := registry.Projects[cwd]; slug != "" && filepath.IsLocal(slug) {
		return slug, nil
	}
	taken := map[string]bool{}
	for _, slug := range registry.Projects {
		taken[slug] = true
	}
	if owned := ownedBy(tmp, cwd, taken); owned != "" {
		return owned, nil
	}
	base := slugify(filepath.Base(cwd))
	slug := base
	for n := 1; taken[slug]; n++ {
		slug = fmt.Sprintf("%s-%d", base, n)
	}
	return slug, nil
}

// ownedBy returns the folder of the working directory: its mark names the directory. It returns an
// empty name if there is none, and adds the folders of other directories to taken.
func ownedBy(tmp, cwd string, taken map[string]bool) string {
	marks, _ := filepath.Glob(filepath.Join(tmp, "*", ".project_root")) // the pattern is valid, unless tmp is odd
	for _, mark := range marks {
		owner, err := os.ReadFile(mark)
		slug := filepath.Base(filepath.Dir(mark))
		if err == nil && strings.TrimSpace(string(owner)) == cwd {
			return slug
		}
		taken[slug] = true
	}
	return ""
}

var noSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slugify makes the name of a folder of a name, as the program does.
func slugify(name string) string {
	if slug := strings.Trim(noSlug.ReplaceAllString(strings.ToLower(name), "-"), "-"); slug != "" {
		return slug
	}
	return "project"
}
