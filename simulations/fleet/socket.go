package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// answerIn bounds a conversation over the socket.
const answerIn = 10 * time.Second

// Listen makes the socket at path, in place of one that an earlier process left.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for control: %w", err)
	}
	return listener, nil
}

// Serve takes lines for Control until ctx ends: one a connection, answered with "ok"
// or the error.
func (f *Fleet) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		f.answer(conn)
	}
}

func (f *Fleet) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(answerIn))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	text := "ok"
	if err := f.Control(line); err != nil {
		text = err.Error()
	}
	_, _ = fmt.Fprintln(conn, strings.ReplaceAll(text, "\n", "; "))
}

// Send gives a line for Control to the fleet that serves the socket at path.
func Send(ctx context.Context, path, line string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("reach the fleet: %w", err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(answerIn))
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the fleet does not answer: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return errors.New(answer)
	}
	return nil
}
