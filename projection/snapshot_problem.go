package projection

import "errors"

// SnapshotProblem is a snapshot that a load could not use, or that VerifySnapshots
// cannot read or finds different from a replay. A load reads more events then; redact a
// snapshot that differs.
type SnapshotProblem struct {
	Session  string
	Snapshot SnapshotRef
	// Part is the projection in the body; empty if the problem is about the whole snapshot.
	Part string
	// Mark reports that the snapshot has no body, so no load uses it. Its set may
	// also have had other versions of its projections: a mark does not contain their
	// versions.
	Mark bool
	// Reason is one word:
	//
	//   - "redacted": the body was redacted.
	//   - "other_version": another version of the projection made the body.
	//   - "bad_digest": the body does not match its digest.
	//   - "unreadable": the body is missing or cannot be decoded.
	//   - "copied": the snapshot was copied with its session. Its states may contain ids
	//     and costs of the original session.
	//   - "off_path": the last event that the snapshot covers is not on the path of the
	//     snapshot.
	//   - "other_events": the events before the snapshot are not the events that it was made
	//     from, for example after a repair that lost some; or the snapshot has no hash of
	//     them.
	//   - "other_state", "other_digest": the state of a projection, or the digest of the
	//     states, differs from a replay. VerifySnapshots only.
	Reason string
	Err    error
}

// snapshotReason is the reason of a SnapshotProblem, as an error that its Err matches.
type snapshotReason string

const (
	redactedSnapshot snapshotReason = "redacted"
	otherVersion     snapshotReason = "other_version"
	badDigest        snapshotReason = "bad_digest"
	unreadable       snapshotReason = "unreadable"
	copiedSnapshot   snapshotReason = "copied"
	offPath          snapshotReason = "off_path"
	otherEvents      snapshotReason = "other_events"
	otherState       snapshotReason = "other_state"
	otherDigest      snapshotReason = "other_digest"
)

var snapshotReasons = map[snapshotReason]string{
	redactedSnapshot: "snapshot is redacted",
	otherVersion:     "snapshot has another version",
	badDigest:        "snapshot does not match its digest",
	unreadable:       "snapshot cannot be read",
	copiedSnapshot:   "snapshot was copied from another session",
	offPath:          "snapshot covers another path",
	otherEvents:      "snapshot covers other events",
	otherState:       "state differs from a replay",
	otherDigest:      "state digest differs from a replay",
}

func (r snapshotReason) Error() string { return snapshotReasons[r] }

// problemOf returns the problem that err reports. ok is false if err is no reason to skip a
// snapshot, for example a failed read.
func problemOf(ref SnapshotRef, err error) (p SnapshotProblem, ok bool) {
	var reason snapshotReason
	ok = errors.As(err, &reason)
	return SnapshotProblem{Snapshot: ref, Reason: string(reason), Err: err}, ok
}
