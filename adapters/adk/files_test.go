package adk_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"google.golang.org/adk/v2/artifact"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/genai"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/adaptertest"
)

var userMessage, assistantMessage = event.UserMessage, event.AssistantMessage

func save(t testing.TB, a artifact.Service, session, file string, p *genai.Part) int64 {
	t.Helper()
	saved, err := a.Save(t.Context(), &artifact.SaveRequest{AppName: "shop", UserID: "ann", SessionID: session, FileName: file, Part: p})
	if err != nil {
		t.Fatal(err)
	}
	return saved.Version
}

func load(t testing.TB, a artifact.Service, session, file string, version int64) (*genai.Part, error) {
	got, err := a.Load(t.Context(), &artifact.LoadRequest{AppName: "shop", UserID: "ann", SessionID: session, FileName: file, Version: version})
	if err != nil {
		return nil, err
	}
	return got.Part, nil
}

// What ADK's own tests ask of an artifact service: they are internal to ADK.
func TestArtifacts(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		log := open(t)
		s := adk.New(log)
		create(t, s.Sessions, nil)
		large := genai.NewPartFromBytes(bytes.Repeat([]byte("x"), 1<<20), "image/png")
		for i, p := range []*genai.Part{genai.NewPartFromText("one"), large, genai.NewPartFromBytes([]byte("three"), "text/csv")} {
			if v := save(t, s.Artifacts, "s1", "report", p); v != int64(i+1) {
				t.Errorf("version %d, want %d", v, i+1)
			}
		}
		save(t, s.Artifacts, "s1", "user:photo", large)
		if p, err := load(t, s.Artifacts, "s1", "report", 0); err != nil || string(p.InlineData.Data) != "three" {
			t.Errorf("newest: %v", err)
		}
		if p, err := load(t, s.Artifacts, "s1", "report", 2); err != nil || !bytes.Equal(p.InlineData.Data, large.InlineData.Data) {
			t.Errorf("version 2: %v", err)
		}
		if p, err := load(t, s.Artifacts, "another", "user:photo", 0); err != nil || len(p.InlineData.Data) != 1<<20 {
			t.Errorf("file of the user: %v", err)
		}
		key := artifact.GetArtifactVersionRequest{AppName: "shop", UserID: "ann", SessionID: "s1", FileName: "report"}
		if v, err := s.Artifacts.GetArtifactVersion(t.Context(), &key); err != nil || v.ArtifactVersion.Version != 3 || v.ArtifactVersion.MimeType != "text/csv" {
			t.Errorf("newest: %+v, %v", v, err)
		}
		f, err := fork.At(t.Context(), log, "adk/shop/ann/s1", fork.Head())
		if err != nil {
			t.Fatal(err)
		}
		remove := func(version int64) {
			if err := s.Artifacts.Delete(t.Context(), &artifact.DeleteRequest{AppName: "shop", UserID: "ann", SessionID: "s1", FileName: "report", Version: version}); err != nil {
				t.Fatal(err)
			}
		}
		remove(3)
		versions, err := s.Artifacts.Versions(t.Context(), &artifact.VersionsRequest{AppName: "shop", UserID: "ann", SessionID: "s1", FileName: "report"})
		if err != nil || !slices.Equal(versions.Versions, []int64{2, 1}) {
			t.Errorf("versions %v, %v", versions, err)
		}
		remove(0)
		remove(0)
		if _, err := load(t, s.Artifacts, "s1", "report", 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removed file: %v", err)
		}
		if p, err := load(t, s.Artifacts, f.ID, "report", 0); err != nil || string(p.InlineData.Data) != "three" {
			t.Errorf("in the fork: %v", err)
		}
		for session, want := range map[string][]string{"s1": {"user:photo"}, f.ID: {"report", "user:photo"}, "none": {"user:photo"}} {
			list, err := s.Artifacts.List(t.Context(), &artifact.ListRequest{AppName: "shop", UserID: "ann", SessionID: session})
			if err != nil || !slices.Equal(list.FileNames, want) {
				t.Errorf("files of %s: %v, %v", session, list, err)
			}
		}
		if _, err := s.Artifacts.Save(t.Context(), &artifact.SaveRequest{AppName: "shop", UserID: "ann", SessionID: "none", FileName: "f", Part: large}); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("file of a missing session: %v", err)
		}
	})
}

func TestWritersOfOneFile(t *testing.T) {
	s := adk.New(adaptertest.Folder(t))
	create(t, s.Sessions, nil)
	var group sync.WaitGroup
	versions := make([]int64, 8)
	for i := range versions {
		group.Go(func() { versions[i] = save(t, s.Artifacts, "s1", "user:f", genai.NewPartFromText("x")) })
	}
	group.Wait()
	slices.Sort(versions)
	if !slices.Equal(versions, []int64{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("versions %v", versions)
	}
}

func TestMemory(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		log := open(t)
		s := adk.New(log)
		ask(t, log, "ann", "s1", "the quick brown fox")
		ask(t, log, "ann", "s2", "hello fox")
		ask(t, log, "ben", "s1", "a secret fox")
		found := func(user, query string) (list []string) {
			t.Helper()
			got, err := s.Memory.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "shop", UserID: user, Query: query})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range got.Memories {
				if m.ID == "" || m.Author == "" || m.Timestamp.IsZero() {
					t.Errorf("incomplete entry %+v", m)
				}
				list = append(list, m.Content.Parts[0].Text)
			}
			return list
		}
		if got := found("ann", "fox"); got != nil {
			t.Errorf("before a session is added: %q", got)
		}
		for _, id := range []string{"s1", "s2"} {
			if err := s.Memory.AddSessionToMemory(t.Context(), getOf(t, s.Sessions, "ann", id, 0)); err != nil {
				t.Fatal(err)
			}
		}
		ask(t, log, "ann", "s1", "later fox")
		if got := found("ann", "Quick FOX?"); !slices.Equal(got, []string{"the quick brown fox", "hello fox"}) {
			t.Errorf("found %q", got)
		}
		for _, query := range []string{"", "fo", "nothing", `"`} {
			if got := found("ann", query); got != nil {
				t.Errorf("%q finds %q", query, got)
			}
		}
		if got := found("ben", "fox"); got != nil {
			t.Errorf("another user finds %q", got)
		}
		if err := s.Memory.AddSessionToMemory(t.Context(), getOf(t, s.Sessions, "ann", "s1", 0)); err != nil {
			t.Fatal(err)
		}
		if got := found("ann", "later"); len(got) != 1 {
			t.Errorf("found %q after the session was added again", got)
		}
	})
}
