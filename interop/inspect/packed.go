package inspect

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// Limits for unpacking.
const (
	maxFile  = 256 << 20 // bytes of one file
	maxTotal = 1 << 30   // bytes of all files, beyond maxRatio times the packed size
	maxRatio = 200
)

// samplesFolder holds one file per sample. The file name contains the sample id,
// which can be any text.
const samplesFolder = "samples/"

// errTooLarge reports that a packed log, or a file in it, exceeds the limits for
// unpacking.
var errTooLarge = errors.New("too large to be unpacked")

// isPacked reports whether a file is a packed log.
func isPacked(name string, begin []byte) bool {
	return strings.HasSuffix(name, ".eval") && bytes.HasPrefix(begin, []byte("PK\x03\x04"))
}

// firstFile returns the beginning of the first file in a packed log.
func firstFile(begin []byte) []byte {
	const size = 30 // of the header before the file name
	if len(begin) < size {
		return nil
	}
	method := binary.LittleEndian.Uint16(begin[8:])
	start := size + int(binary.LittleEndian.Uint16(begin[26:])) + int(binary.LittleEndian.Uint16(begin[28:]))
	if start > len(begin) {
		return nil
	}
	if method == zip.Store {
		return begin[start:]
	}
	first, _ := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(begin[start:])), 64<<10)) // begin is truncated, so an error is normal
	return first
}

// packed is a packed log.
type packed struct {
	src        interop.Source
	start      []*zip.File // files that describe the whole evaluation
	reductions *zip.File   // scores of all epochs; can be nil
	samples    []*zip.File
	started    bool
	e          evaluation
	rest       jsontext.Value // results of the evaluation, until a sample has them
	header     records.Record
}

// openPacked opens a packed log. done closes it.
func openPacked(src interop.Source) (p *packed, done func() error, err error) {
	f, size, done, err := openAt(src)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", src.Name, err)
	}
	p = &packed{src: src}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return p, done, nil // not a zip archive: the log has no files
	}
	if err := checkSizes(z, size); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", src.Name, err), done())
	}
	p.choose(z)
	return p, done, nil
}

// openAt opens a source for reads at any offset. A stream goes to a temporary file,
// which done removes.
func openAt(src interop.Source) (f io.ReaderAt, size int64, done func() error, err error) {
	r, err := src.Open()
	if err != nil {
		return nil, 0, nil, err
	}
	if at, ok := r.(io.ReaderAt); ok && src.Size > 0 {
		return at, src.Size, r.Close, nil
	}
	spool, err := os.CreateTemp("", "packed-*")
	if err != nil {
		return nil, 0, nil, errors.Join(err, r.Close())
	}
	done = func() error { return errors.Join(spool.Close(), os.Remove(spool.Name())) }
	size, err = io.Copy(spool, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, 0, nil, errors.Join(err, done())
	}
	return spool, size, done, nil
}

// checkSizes rejects a log that would fill the memory or unpack for too long.
func checkSizes(z *zip.Reader, size int64) error {
	all := uint64(0)
	for _, f := range z.File {
		all += min(f.UncompressedSize64, 1<<50)
	}
	if all > uint64(size)*maxRatio+maxTotal {
		return fmt.Errorf("%w: %d bytes, unpacked from %d", errTooLarge, all, size)
	}
	return nil
}

// choose picks the files to read. If a name occurs twice, the last file counts.
func (p *packed) choose(z *zip.Reader) {
	last := map[string]*zip.File{}
	for _, f := range z.File {
		last[f.Name] = f
	}
	for _, f := range z.File {
		if strings.HasPrefix(f.Name, samplesFolder) && path.Ext(f.Name) == ".json" && last[f.Name] == f {
			p.samples = append(p.samples, f)
		}
	}
	p.reductions = last["reductions.json"]
	for _, names := range [][]string{{"header.json"}, {"start.json", "results.json"}, {"_journal/start.json"}} {
		for _, name := range names {
			if f := last[name]; f != nil {
				p.start = append(p.start, f)
			}
		}
		if len(p.start) > 0 {
			return
		}
	}
}

// records yields the record of the evaluation, then the samples.
func (p *packed) records() iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		rec, err := p.evaluation()
		if !yield(rec, err) || err != nil {
			return
		}
		for _, f := range p.samples {
			rec, err := p.value(f)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// evaluation merges the files that describe the whole evaluation into one record.
func (p *packed) evaluation() (records.Record, error) {
	rec := records.Record{Source: p.src.Name, Line: 1}
	if len(p.start) == 0 {
		return rec, rec.Reject(errors.New("cut off, or not a packed log"))
	}
	var members []rawjson.Member
	for _, f := range p.start {
		one, err := p.value(f)
		if err != nil {
			return rec, err
		}
		more, err := rawjson.Members(one.Value.Clone())
		if err != nil {
			return one, one.Reject(err)
		}
		members = append(members, more...)
		rec.Source, rec.Repaired = one.Source, rec.Repaired || one.Repaired
	}
	if p.reductions != nil {
		one, err := p.value(p.reductions)
		if err != nil {
			return one, err
		}
		members = append(members, rawjson.Member{Name: "reductions", Value: one.Value.Clone()})
	}
	rec.Value = rawjson.NonEmpty(members)
	rec.Digest, rec.Size = event.DigestOf(rec.Value), int64(len(rec.Value))
	return rec, nil
}

// value parses the JSON of a file.
func (p *packed) value(f *zip.File) (records.Record, error) {
	name := p.src.Name + "/" + f.Name
	rec := records.Record{Source: name, Line: 1}
	reject := func(err error) *records.RecordError { return rec.Reject(fmt.Errorf("%s: %w", f.Name, err)) }
	content, err := contentOf(f)
	if err != nil {
		return rec, reject(err)
	}
	src := interop.Source{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	for found, err := range records.Values(src) {
		var rejected *records.RecordError
		if errors.As(err, &rejected) {
			return found, reject(rejected.Cause)
		}
		return found, err
	}
	return rec, reject(errors.New("the file is empty"))
}

// contentOf unpacks a file.
func contentOf(f *zip.File) ([]byte, error) {
	if f.UncompressedSize64 > maxFile {
		return nil, fmt.Errorf("%w: %d bytes", errTooLarge, f.UncompressedSize64)
	}
	r, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("compression method %d is not supported, convert the log to JSON: %w", f.Method, err)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = errTooLarge
	}
	if err != nil {
		return nil, err
	}
	return quoteConstants(content), nil
}

// quoteConstants turns NaN and Infinity into strings. Inspect writes them as Python
// does, but they are invalid JSON.
func quoteConstants(b []byte) []byte {
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return b
	}
	quoted := make([]byte, 0, len(b)+len(b)/64)
	for i := 0; i < len(b); {
		n, constant := token(b[i:])
		if constant {
			quoted = append(append(append(quoted, '"'), b[i:i+n]...), '"')
		} else {
			quoted = append(quoted, b[i:i+n]...)
		}
		i += n
	}
	return quoted
}

// token returns the length of the string or constant at the start of b, or 1 for any
// other byte.
func token(b []byte) (n int, constant bool) {
	if b[0] == '"' {
		for n = 1; n < len(b) && b[n] != '"'; n++ {
			if b[n] == '\\' {
				n++
			}
		}
		return min(n+1, len(b)), false
	}
	for _, name := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(name)) {
			return len(name), true
		}
	}
	return 1, false
}

// read parses the record of the evaluation first, then one sample per call.
func (p *packed) read(_ *document.File, rec *records.Record) ([]document.Session, error) {
	if !p.started {
		return p.open(rec)
	}
	s, err := p.e.sample(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(rec.Source, p.src.Name+"/"), err)
	}
	if len(s.Items) > 0 {
		addResults(&s, &p.header, p.rest)
		p.rest = nil
	}
	return []document.Session{s}, err
}

// open parses the record of the evaluation. A log without samples gives a session
// without items.
func (p *packed) open(rec *records.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	if !o.Has("status") {
		o.Put("status", jsontext.Value(`"started"`)) // the evaluation is still running
	}
	if err := p.e.open(&o); err != nil {
		return nil, err
	}
	p.started, p.header, p.rest = true, *rec, o.Rest()
	if len(p.samples) == 0 {
		return []document.Session{{Rec: rec, ID: p.e.name("", "")}}, nil
	}
	return nil, nil
}
