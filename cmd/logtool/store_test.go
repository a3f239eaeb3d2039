package main

import (
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	files := func(path string) bool { return path == "conversations" || path == "odd:name" }
	dirs := func(path string) bool { return path == "folder.db" || path == "logs" }
	tests := []struct {
		text string
		want string
	}{
		{"jsonl:logs", "jsonl:logs"},
		{"jsonl:s.db", "jsonl:s.db"},
		{"sqlite:logs", "sqlite:logs"},
		{"sqlite:/a:b", "sqlite:/a:b"},
		{"logs", "jsonl:logs"},
		{"new", "jsonl:new"},
		{"s.db", "sqlite:s.db"},
		{"dir/S.SQLite", "sqlite:dir/S.SQLite"},
		{"x.sqlite3", "sqlite:x.sqlite3"},
		{"conversations", "sqlite:conversations"},
		{"folder.db", "jsonl:folder.db"},
		{`C:\logs`, `jsonl:C:\logs`},
		{"c:/logs/s.db", "sqlite:c:/logs/s.db"},
		{`jsonl:C:\logs`, `jsonl:C:\logs`},
		{`sqlite:D:\s.db`, `sqlite:D:\s.db`},
		{`\\host\share\logs`, `jsonl:\\host\share\logs`},
		{"odd:name", "sqlite:odd:name"},
		{"jsonl:other:name", "jsonl:other:name"},
		{"JSONL:logs", "jsonl:logs"},
		{"jsonl:https://host", "jsonl:https://host"},
		{"jsonl:user=x", "jsonl:user=x"},
		{"/data/user=me/logs", "jsonl:/data/user=me/logs"},
		{"my logs", "jsonl:my logs"},
		{"Postgres://ann:secret@host/db", "postgres://ann@host:5432/db"},
		{"postgres://ann:secret@host/db", "postgres://ann@host:5432/db"},
		{"postgresql://ann@one,two:7/db?password=secret&schema=tea%20log", "postgres://ann@one:5432,two:7/db?schema=tea+log"},
		{"nats://ann:secret@one,nats://token@two:7?prefix=tea", "nats://one,nats://two:7?prefix=tea"},
		{"tls://host", "tls://host"},
	}
	for _, test := range tests {
		got, err := parsePlace(test.text, files, dirs)
		if err != nil || got.String() != test.want {
			t.Errorf("parsePlace(%q) = %v, %v; want %s", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"jsonl:", "sqlite:", "postgres://ann:se/cret@host/db", "postgres://host/db?partitions=0", "nats://ann:se/cret@host", "nats://host/x", "nats://host?prefix=a.b"} {
		if _, err := parsePlace(text, files, dirs); exitCode(err) != 2 {
			t.Errorf("parsePlace(%q) = %v, want a usage error", text, err)
		}
	}
}

// A text that is no known store is refused, and no error shows it.
func TestPlacesThatAreNone(t *testing.T) {
	no := func(string) bool { return false }
	yes := func(string) bool { return true }
	for _, text := range []string{
		"mysql://ann:secret@host/db", "https://ann:secret@host/db", "postgres:/ann:secret@host/db", "postgres:ann:secret@host", "nats:/secret@host",
		"postgresql:secret", "host=db password=secret", "HOST = db PASSWORD = secret", "password=secret", "dbname=secret user=ann",
		`"postgres://ann:secret@host/db"`, "'postgres://ann:secret@host/db'", " postgres://ann:secret@host/db", "postgres://ann:secret@host/db ",
		"`nats://secret@host`", "\tlogs-secret", "logs-secret\n", "jdbc:postgresql://host/db?password=secret", "file:///secret.db", "redis:secret",
		"POSTGRES:/ann:secret@host/db", "x postgres://ann:secret@host/db", "s3://secret", "postgres+ssl://ann:secret@host/db",
		"postgres%3A//ann:secret@host/db", "postgres%3a%2f%2fann%3asecret@host%2fdb", "SUA" + strings.Repeat("SECRET7", 7) + "SECRET",
	} {
		_, err := parsePlace(text, no, no)
		if exitCode(err) != 2 || strings.Contains(err.Error(), "secret") {
			t.Errorf("parsePlace(%q): %v", text, err)
		}
		if text == "redis:secret" {
			continue // a folder of this name exists
		}
		if _, err := parsePlace(text, no, yes); exitCode(err) != 2 || strings.Contains(err.Error(), "secret") {
			t.Errorf("parsePlace(%q) of a folder: %v", text, err)
		}
	}
}

func TestDefaultPlace(t *testing.T) {
	tests := []struct {
		flag string
		env  string
		want string
	}{
		{"a.db", "CONVLOG_STORE=b", "sqlite:a.db"},
		{"", "CONVLOG_STORE=b XDG_DATA_HOME=/data HOME=/h", "jsonl:b"},
		{"", "XDG_DATA_HOME=/data HOME=/h", "jsonl:/data/convlog"},
		{"", "HOME=/h", "jsonl:/h/.local/share/convlog"},
	}
	for _, test := range tests {
		a := &app{store: test.flag, getenv: environment(test.env)}
		got, err := a.place()
		if err != nil || got.String() != test.want {
			t.Errorf("--store %q, %s: %v, %v; want %s", test.flag, test.env, got, err, test.want)
		}
	}
	if _, err := (&app{getenv: environment("")}).place(); exitCode(err) != 2 {
		t.Errorf("without a home: %v, want a usage error", err)
	}
}

func environment(text string) func(string) string {
	vars := map[string]string{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		vars[name] = value
	}
	return func(name string) string { return vars[name] }
}
