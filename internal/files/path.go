package files

import (
	"path"
	"strings"
)

// resolve returns the clean path of a name in a folder, with slashes. Paths of Windows keep
// their drive.
func resolve(folder, name string) string {
	if name == "" {
		return ""
	}
	name = strings.TrimPrefix(name, "file://")
	name, folder = slashed(name), slashed(folder)
	if !isAbsolute(name) && folder != "" && !strings.HasPrefix(name, "~/") {
		name = folder + "/" + name
	}
	return path.Clean(name)
}

// slashed replaces the backslashes of a path of Windows.
func slashed(name string) string {
	if hasDrive(name) || strings.HasPrefix(name, `\\`) || strings.Contains(name, `\`) && !strings.Contains(name, "/") {
		return strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

func isAbsolute(name string) bool { return strings.HasPrefix(name, "/") || hasDrive(name) }

// hasDrive reports whether a path begins with the drive of Windows, as in C:\.
func hasDrive(name string) bool {
	return len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') && ('a' <= name[0]|0x20 && name[0]|0x20 <= 'z')
}

// Below returns a path relative to a folder, if it is in the folder.
func Below(folder, name string) string {
	if below, ok := strings.CutPrefix(name, strings.TrimSuffix(slashed(folder), "/")+"/"); ok && folder != "" {
		return below
	}
	return name
}

// Matches reports whether a path has a name: the whole path, or its last elements, as
// parse.go, birdlog/parse.go. A name that ends with a slash is a folder on the way.
func Matches(name, path string) bool {
	name = strings.TrimPrefix(slashed(name), "./")
	if folder, ok := strings.CutSuffix(name, "/"); ok && folder != "" {
		return strings.HasPrefix(path, folder+"/") || strings.Contains(path, "/"+strings.TrimPrefix(folder, "/")+"/")
	}
	return path == name || !strings.HasPrefix(name, "/") && strings.HasSuffix(path, "/"+name)
}
