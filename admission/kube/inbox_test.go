package kube

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
)

func TestInboxKeepsTheNewestInOrder(t *testing.T) {
	b := newInbox()
	first, second := &corev1.Pod{}, &corev1.Pod{}
	b.put(object{podKind, "ns", "b"}, first)
	b.put(object{podKind, "ns", "a"}, first)
	b.put(object{nodeKind, "", "n"}, nil)
	b.put(object{podKind, "ns", "b"}, second)
	select {
	case <-b.ready:
	default:
		t.Fatal("nobody was woken")
	}
	got := b.take()
	if len(got) != 3 || got[0].kind != nodeKind || got[0].now != nil || got[1].name != "a" || got[2].now != second {
		t.Errorf("took %v", got)
	}
	if again := b.take(); len(again) != 0 {
		t.Errorf("took twice: %v", again)
	}
	select {
	case <-b.ready:
		t.Error("woken for nothing")
	default:
	}
}

// Of errands of one name the last is done, and one that fails is tried again.
func TestClerk(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newClerk("", logr.Discard(), 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan string, 10)
	fails := true
	c.send("one", func(context.Context) error { done <- "replaced"; return nil })
	c.send("recalled", func(context.Context) error { done <- "recalled"; return nil })
	c.send("one", func(context.Context) error {
		if fails {
			fails = false
			return errors.New("once")
		}
		done <- "one"
		return nil
	})
	c.recall("recalled")
	var wg sync.WaitGroup
	wg.Go(func() { c.work(ctx, 2) })
	select {
	case got := <-done:
		if got != "one" {
			t.Errorf("did %s", got)
		}
	case <-time.After(patienceForClerk):
		t.Error("the errand was not tried again")
	}
	cancel()
	wg.Wait()
	if len(done) != 0 {
		t.Errorf("also did %s", <-done)
	}
}

const patienceForClerk = 30 * time.Second
