package chaos

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// backend is a server that a gateway may hand connections to.
type backend interface {
	Ready(ctx context.Context) bool
	WebhookPort() int
}

// probeEvery is how often the gateway asks who is ready.
const probeEvery = 500 * time.Millisecond

// gateway is what a Service would be: an address that leads to a backend that is
// ready, and to none while none is.
type gateway struct {
	listener net.Listener
	closed   atomic.Bool // refuse everybody

	mu    sync.Mutex
	all   []backend
	ready []backend
	open  map[net.Conn]backend
}

func newGateway() (*gateway, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &gateway{listener: l, open: make(map[net.Conn]backend)}, nil
}

func (g *gateway) port() int {
	address, _ := g.listener.Addr().(*net.TCPAddr)
	return address.Port
}

// add adds a backend.
func (g *gateway) add(b backend) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, b)
}

func (g *gateway) backends() []backend {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// serve hands connections on until ctx ends.
func (g *gateway) serve(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { g.probe(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = g.listener.Close() })
	defer stop()
	for n := 0; ; n++ {
		conn, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		running.Go(func() { g.pass(ctx, conn, n) })
	}
}

// probe keeps the list of those who are ready, and ends the connections of those who
// are not any more.
func (g *gateway) probe(ctx context.Context) {
	for ctx.Err() == nil {
		var ready []backend
		for _, b := range g.backends() {
			if !g.closed.Load() && b.Ready(ctx) {
				ready = append(ready, b)
			}
		}
		g.mu.Lock()
		g.ready = ready
		for conn, b := range g.open {
			if !slices.Contains(ready, b) {
				_ = conn.Close()
			}
		}
		g.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery):
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.open {
		_ = conn.Close()
	}
}

// pass hands one connection on, the nth.
func (g *gateway) pass(ctx context.Context, conn net.Conn, n int) {
	defer func() { _ = conn.Close() }()
	g.mu.Lock()
	if len(g.ready) == 0 || ctx.Err() != nil {
		g.mu.Unlock()
		return
	}
	b := g.ready[n%len(g.ready)]
	g.open[conn] = b
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, conn)
	}()
	dialer := net.Dialer{Timeout: 2 * time.Second}
	onward, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(b.WebhookPort())))
	if err != nil {
		return
	}
	defer func() { _ = onward.Close() }()
	go func() {
		_, _ = io.Copy(onward, conn)
		_ = onward.Close()
	}()
	_, _ = io.Copy(conn, onward)
}
