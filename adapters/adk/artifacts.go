package adk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/adk/v2/artifact"
	"google.golang.org/genai"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// artifacts is the artifact.Service. Each version of a file is an artifact of the session, or of the session with the
// user's state if the file name begins with user:.
type artifacts struct{ sessions *sessions }

var _ artifact.Service = (*artifacts)(nil)

// version is a stored version of a file.
type version struct {
	file   string
	number int64
	record projection.RecordedArtifact
}

// place is the session of the log that has a file.
type place struct {
	who   identity
	logID string
}

func (a *artifacts) place(ctx context.Context, who identity, file string) (place, error) {
	if strings.HasPrefix(file, "user:") {
		return place{who, who.userID()}, nil
	}
	logID, err := a.sessions.find(ctx, who)
	return place{who, logID}, err
}

// Save stores a new version of a file: the highest version plus one, or req.Version. The session must exist.
func (a *artifacts) Save(ctx context.Context, req *artifact.SaveRequest) (*artifact.SaveResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("request validation failed: %w", err)
	}
	number, err := a.save(ctx, identity{req.AppName, req.UserID, req.SessionID}, req)
	if err != nil {
		return nil, fmt.Errorf("save artifact %q of session %q: %w", req.FileName, req.SessionID, err)
	}
	return &artifact.SaveResponse{Version: number}, nil
}

func (a *artifacts) save(ctx context.Context, who identity, req *artifact.SaveRequest) (number int64, err error) {
	p, err := a.place(ctx, who, req.FileName)
	if err != nil {
		return 0, err
	}
	err = a.sessions.log.Hold(ctx, func(ctx context.Context) error {
		part, err := a.sessions.bodies().encodePart(ctx, req.Part)
		if err != nil {
			return err
		}
		record := event.Artifact{ArtifactID: event.NewID().String(), Kind: member, MediaType: part.MediaType, Parts: []event.Part{part}}
		return a.append(ctx, p, func(stored []version) []event.Event {
			number = req.Version
			for _, v := range stored {
				if v.file == req.FileName && req.Version == 0 {
					number = max(number, v.number)
				}
			}
			if req.Version == 0 {
				number++
			}
			record.Name = req.FileName + "/" + strconv.FormatInt(number, 10)
			return []event.Event{event.New(record)}
		})
	})
	return number, err
}

// append appends the events that choose makes of the stored versions. If another writer appends meanwhile, it chooses again.
func (a *artifacts) append(ctx context.Context, p place, choose func([]version) []event.Event) error {
	for {
		stored, head, err := a.versions(ctx, p)
		missing := errors.Is(err, eventlog.ErrNotFound)
		if err != nil && !(missing && p.logID == p.who.userID()) {
			return err
		}
		events := choose(stored)
		if len(events) == 0 {
			return nil
		}
		if missing {
			events = append([]event.Event{event.New(event.Session{Agent: valid(p.who.App), State: true})}, events...)
		}
		err = eventlog.UntilKnown(ctx, func() error {
			_, err := a.sessions.log.Append(ctx, p.logID, eventlog.At(head), events...)
			return err
		})
		if !errors.Is(err, eventlog.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
}

// versions lists the stored versions of all files.
func (a *artifacts) versions(ctx context.Context, p place) (list []version, head event.Head, err error) {
	view, err := projection.Load(ctx, a.sessions.log, p.logID, projection.Artifacts())
	if err != nil {
		return nil, head, err
	}
	for _, item := range view.State.Items {
		i := strings.LastIndexByte(item.Name, '/')
		if item.Kind != member || item.Redacted || i < 0 {
			continue
		}
		number, err := strconv.ParseInt(item.Name[i+1:], 10, 64)
		if err == nil {
			list = append(list, version{item.Name[:i], number, item})
		}
	}
	return list, view.Head, nil
}

// of lists the versions of a file, newest first. A missing session has none.
func (a *artifacts) of(ctx context.Context, who identity, file string) (list []version, p place, err error) {
	p, err = a.place(ctx, who, file)
	if err == nil {
		list, _, err = a.versions(ctx, p)
	}
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, p, nil
	}
	list = slices.DeleteFunc(list, func(v version) bool { return v.file != file })
	slices.SortFunc(list, func(a, b version) int { return int(b.number - a.number) })
	return list, p, err
}

// one returns a version of a file, the newest one if number is 0. A missing one is fs.ErrNotExist.
func (a *artifacts) one(ctx context.Context, who identity, file string, number int64) (version, place, error) {
	list, p, err := a.of(ctx, who, file)
	if err != nil {
		return version{}, p, fmt.Errorf("artifact %q of session %q: %w", file, who.Session, err)
	}
	for _, v := range list {
		if number == 0 || v.number == number {
			return v, p, nil
		}
	}
	return version{}, p, fmt.Errorf("artifact not found: %w", fs.ErrNotExist)
}

// Load returns a version of a file, the newest one if req.Version is 0.
func (a *artifacts) Load(ctx context.Context, req *artifact.LoadRequest) (*artifact.LoadResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("request validation failed: %w", err)
	}
	v, _, err := a.one(ctx, identity{req.AppName, req.UserID, req.SessionID}, req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	var part *genai.Part
	if len(v.record.Parts) == 1 {
		part, err = a.sessions.bodies().decodePart(ctx, &v.record.Parts[0])
	}
	if err != nil {
		return nil, fmt.Errorf("artifact %q of session %q: %w", req.FileName, req.SessionID, err)
	}
	return &artifact.LoadResponse{Part: part}, nil
}

// Delete hides a version of a file, or all versions if req.Version is 0. The events stay: redact them to erase the content.
func (a *artifacts) Delete(ctx context.Context, req *artifact.DeleteRequest) error {
	if err := req.Validate(); err != nil {
		return fmt.Errorf("request validation failed: %w", err)
	}
	p, err := a.place(ctx, identity{req.AppName, req.UserID, req.SessionID}, req.FileName)
	if err == nil {
		err = a.append(ctx, p, func(stored []version) (events []event.Event) {
			for _, v := range stored {
				if v.file == req.FileName && (req.Version == 0 || v.number == req.Version) {
					events = append(events, event.New(event.Artifact{ArtifactID: v.record.ArtifactID, Removed: true}))
				}
			}
			return events
		})
	}
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("delete artifact %q of session %q: %w", req.FileName, req.SessionID, err)
	}
	return nil
}

// List lists the files of the session and of the user, sorted.
func (a *artifacts) List(ctx context.Context, req *artifact.ListRequest) (*artifact.ListResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("request validation failed: %w", err)
	}
	who := identity{req.AppName, req.UserID, req.SessionID}
	names := []string{}
	for _, scope := range []string{"", "user:"} {
		p, err := a.place(ctx, who, scope)
		var list []version
		if err == nil {
			list, _, err = a.versions(ctx, p)
		}
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return nil, fmt.Errorf("list artifacts of session %q: %w", req.SessionID, err)
		}
		for _, v := range list {
			names = append(names, v.file)
		}
	}
	slices.Sort(names)
	return &artifact.ListResponse{FileNames: slices.Compact(names)}, nil
}

// Versions lists the versions of a file, newest first.
func (a *artifacts) Versions(ctx context.Context, req *artifact.VersionsRequest) (*artifact.VersionsResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("request validation failed: %w", err)
	}
	list, _, err := a.of(ctx, identity{req.AppName, req.UserID, req.SessionID}, req.FileName)
	if err != nil {
		return nil, fmt.Errorf("versions of artifact %q of session %q: %w", req.FileName, req.SessionID, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("artifact not found: %w", fs.ErrNotExist)
	}
	numbers := make([]int64, len(list))
	for i, v := range list {
		numbers[i] = v.number
	}
	return &artifact.VersionsResponse{Versions: numbers}, nil
}

// GetArtifactVersion describes a version of a file, the newest one if req.Version is 0.
func (a *artifacts) GetArtifactVersion(ctx context.Context, req *artifact.GetArtifactVersionRequest) (*artifact.GetArtifactVersionResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("request validation failed: %w", err)
	}
	v, p, err := a.one(ctx, identity{req.AppName, req.UserID, req.SessionID}, req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	e, err := a.sessions.log.Event(ctx, p.logID, v.record.Seq)
	if err != nil {
		return nil, fmt.Errorf("artifact %q of session %q: %w", req.FileName, req.SessionID, err)
	}
	out := &artifact.ArtifactVersion{Version: v.number, CreateTime: e.Timestamp, MimeType: v.record.MediaType}
	if out.MimeType == "" {
		out.MimeType = "text/plain"
	}
	return &artifact.GetArtifactVersionResponse{ArtifactVersion: out}, nil
}
