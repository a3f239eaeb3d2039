package main

import (
	"testing"

	"github.com/convlog/convlog/secrets"
)

// Paths are found in each form in which texts have them, and similar paths are not.
func TestPathScanner(t *testing.T) {
	scanner, err := secrets.New(placeRules([]string{"/home/ada-l/my work", "/home/ada-l/my work/sub", "/srv/a.b", "/проекты/склад", `D:\src\Shop`, "/w"})...)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"cd '/home/ada-l/my work' && ls":          "cd '/path/1' && ls",
		"/home/ada-l/my work/sub/x":               "/path/2/x",
		"/home/ada-l/my work/subs":                "/path/1/subs",
		"/home/ada-l/my works":                    "~/my works",
		"-home-ada-l-my-work/x.jsonl":             "-path-1/x.jsonl",
		"See /srv/a.b.":                           "See /path/3.",
		"/srv/a.b.c /srv/axb /x/srv/a.b":          "/srv/a.b.c /srv/axb /x/srv/a.b",
		"/srv/a.b/c:/srv/a.b":                     "/path/3/c:/path/3",
		"/проекты/склад/x":                        "/path/4/x",
		`d:\src\shop D:\src\Shop\main.go`:         `d:\src\shop /path/5\main.go`,
		`{"p":"D:\\src\\Shop\\main.go"}`:          `{"p":"/path/5\\main.go"}`,
		"a/w /w /w/x":                             "a/w /path/6 /path/6/x",
		`C:\Users\Ada\x`:                          `~\x`,
		"/mnt/c/Users/Ada/x":                      "~/x",
		"/Users/ada/x,/var/home/ada":              "~/x,~",
		"/nfs2/home/ada/x":                        "/nfs2/home/user/x",
		"/root/.bashrc /rooted /x/root":           "~/.bashrc /rooted /x/root",
		"home/ada is relative, /home/$USER known": "home/ada is relative, /home/$USER known",
		"the homepage of all users":               "the homepage of all users",
		"%2Fhome%2Fada%2Fx":                       "~%2Fx",
		"file:///home/ada/x":                      "file://~/x",
		"/home/ada":                               "~",
	} {
		if got, _ := scanner.Mask([]byte(text)); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
