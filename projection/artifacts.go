package projection

import (
	"slices"

	"github.com/convlog/convlog/event"
)

// ArtifactList is the artifacts of a session, in the order of their first record.
type ArtifactList struct {
	Items []RecordedArtifact `json:"items,omitzero"`
}

// RecordedArtifact is the last record of an artifact.
type RecordedArtifact struct {
	event.Artifact `json:",inline"`
	// Seq is the seq of the artifact_recorded event.
	Seq int64 `json:"seq"`
	// Redacted reports that name and body were erased.
	Redacted bool `json:"redacted,omitzero"`
}

// Artifacts is the artifacts that the active path recorded. An artifact replaces an
// earlier one with the same name. Artifacts without a name are appended. A removed artifact is
// not in the list.
func Artifacts() Projection[ArtifactList] {
	return Projection[ArtifactList]{
		builtin: true, Name: "artifacts", Version: 1, Apply: (*ArtifactList).apply, Digest: (*ArtifactList).digest,
	}
}

// Get returns the artifact with the name.
func (l *ArtifactList) Get(name string) (a RecordedArtifact, ok bool) {
	i := slices.IndexFunc(l.Items, func(x RecordedArtifact) bool { return name != "" && x.Name == name })
	if i < 0 {
		return a, false
	}
	return l.Items[i], true
}

func (l *ArtifactList) apply(e *event.Event) error {
	if e.Type.Name() != event.ArtifactRecorded {
		return nil
	}
	a, err := event.DecodeKept[event.Artifact](e)
	if err != nil {
		return err
	}
	if a.Removed {
		l.Items = slices.DeleteFunc(l.Items, func(x RecordedArtifact) bool { return x.ArtifactID == a.ArtifactID })
		return nil
	}
	r := RecordedArtifact{Artifact: a, Seq: e.Seq, Redacted: e.Redacted()}
	i := slices.IndexFunc(l.Items, func(x RecordedArtifact) bool { return r.replaces(&x) })
	if i < 0 {
		l.Items = append(l.Items, r)
		return nil
	}
	r.Name = l.Items[i].Name
	l.Items[i] = r
	return nil
}

// replaces reports whether r and old have one name or, if the name was erased, one
// id.
func (r *RecordedArtifact) replaces(old *RecordedArtifact) bool {
	if r.Redacted {
		return r.ArtifactID == old.ArtifactID
	}
	return r.Name != "" && r.Name == old.Name
}

// digest leaves out ids and seqs.
func (l *ArtifactList) digest() (event.Digest, error) {
	c := ArtifactList{Items: slices.Clone(l.Items)}
	for i := range c.Items {
		a := &c.Items[i]
		a.ArtifactID, a.ChildID, a.SessionID, a.Seq = "", "", "", 0
	}
	return digestOf(&c)
}
