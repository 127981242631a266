package traces

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Error is what is wrong with a line of a trace.
type Error struct {
	File string
	Line int
	What string
}

// Error writes file:line: what.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

// Dir is the folder of the traces: SLUICE_TRACES, or shared/traces beside the
// repository. The error says how to get them.
func Dir() (string, error) {
	dir := os.Getenv("SLUICE_TRACES")
	if dir == "" {
		at, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the traces: %w", err)
		}
		for {
			if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(at)
			if up == at {
				break
			}
			at = up
		}
		dir = filepath.Join(filepath.Dir(at), "shared", "traces")
	}
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("no traces: %w; set SLUICE_TRACES to their folder, see simulations/traces/README.md", err)
	}
	return dir, nil
}

// File is a trace that is being read, packed with gzip or not.
type File struct {
	path string
	size int64
	raw  *os.File
	took int64 // bytes read of the file as it is on disk
	text io.Reader
}

// Open opens the trace at path, or at path.gz if there is no such file.
func Open(path string) (*File, error) {
	raw, err := os.Open(path)
	if os.IsNotExist(err) {
		if packed, err2 := os.Open(path + ".gz"); err2 == nil {
			raw, err, path = packed, nil, path+".gz"
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	f := &File{path: path, raw: raw}
	if info, err := raw.Stat(); err == nil {
		f.size = info.Size()
	}
	f.text = counter{f}
	if strings.HasSuffix(path, ".gz") {
		if f.text, err = gzip.NewReader(counter{f}); err != nil {
			raw.Close()
			return nil, fmt.Errorf("open trace %s: %w", path, err)
		}
	}
	return f, nil
}

// Fraction is how much of the file has been read, from 0 to 1.
func (f *File) Fraction() float64 {
	if f.size == 0 {
		return 1
	}
	return float64(f.took) / float64(f.size)
}

// Close gives the file back.
func (f *File) Close() error { return f.raw.Close() }

func (f *File) fail(line int, format string, args ...any) error {
	return &Error{File: f.path, Line: line, What: fmt.Sprintf(format, args...)}
}

// counter counts what is read of the file on disk.
type counter struct{ f *File }

func (c counter) Read(p []byte) (int, error) {
	n, err := c.f.raw.Read(p)
	c.f.took += int64(n)
	return n, err
}
