package lock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestSecondHolderWaitsForTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "lock")
	first, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}

	waits, took := make(chan string, 1), make(chan error, 1)
	go func() {
		second, err := Acquire(t.Context(), path, func(holder string) { waits <- holder })
		if err == nil {
			second.Release()
		}
		took <- err
	}()
	if holder := <-waits; holder == "" {
		t.Error("the waiter was not told who holds the lock")
	}
	select {
	case err := <-took:
		t.Fatalf("the second holder got the lock while the first had it (err %v)", err)
	default:
	}
	first.Release()
	if err := <-took; err != nil {
		t.Fatalf("the second holder never got the lock: %v", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Acquire(ctx, path, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's end", err)
	}
}

// A reset removes the folder that its own lock lies in.
func TestRemovedLockKeepsNobodyOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits, took := make(chan struct{}), make(chan *Lock)
	go func() {
		second, err := Acquire(t.Context(), path, func(string) { close(waits) })
		if err != nil {
			t.Error(err)
		}
		took <- second
	}()
	<-waits
	if err := first.Remove(); err != nil {
		t.Fatal(err)
	}
	first.Release()
	second := <-took
	if second == nil {
		t.FailNow()
	}
	defer second.Release()
	if third, err := try(path); third != nil || err != nil {
		t.Fatalf("a third holder got the lock that the second has (err %v)", err)
	}
}
