package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// requestTimeout bounds one request. Nothing that is asked here takes long.
const requestTimeout = 30 * time.Second

// Client talks to one API server as one user. Paths are those of the API, such
// as /api/v1/nodes.
type Client struct {
	base string
	http *http.Client
}

// New makes a client of the API server at base, such as https://127.0.0.1:6443.
// It works on a copy of trust, since a transport writes to its own.
func New(base string, trust *tls.Config) *Client {
	return &Client{base: base, http: &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{TLSClientConfig: trust.Clone(), MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true},
	}}
}

// StatusError is a refusal by the API server, in its own words.
type StatusError struct {
	Code    int
	Reason  string
	Message string
	Request string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.Request, e.Message, e.Code)
}

// IsCode reports whether err is the API server's answer with this HTTP code.
func IsCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// Read reads an object or a list into out, which may be nil.
func (c *Client) Read(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, out)
}

// Create adds an object to the collection at path.
func (c *Client) Create(ctx context.Context, path string, in, out any) error {
	return c.do(ctx, http.MethodPost, path, "application/json", in, out)
}

// Merge changes the fields that in holds; those that are null there go.
func (c *Client) Merge(ctx context.Context, path string, in, out any) error {
	return c.do(ctx, http.MethodPatch, path, "application/merge-patch+json", in, out)
}

// Apply makes the fields that in holds so, whether the object exists or not,
// in the name of field manager sandbox.
func (c *Client) Apply(ctx context.Context, path string, in any) error {
	return c.do(ctx, http.MethodPatch, path+"?fieldManager=sandbox&force=true", "application/apply-patch+yaml", in, nil)
}

// Delete removes an object, or all of a collection.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, "", nil, nil)
}

func (c *Client) do(ctx context.Context, method, path, contentType string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return refusal(resp.StatusCode, method+" "+path, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return nil
}

func refusal(code int, request string, text []byte) error {
	var status struct{ Reason, Message string }
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = string(bytes.TrimSpace(text))
	}
	return &StatusError{Code: code, Reason: status.Reason, Message: status.Message, Request: request}
}
