package admission

import (
	"testing"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

func oneNode(t *testing.T, gpus string) *world {
	w := newWorld()
	w.node(t, fields("h gpu="+gpus))
	w.s.Apply(QueueSeen{w.queue(t, fields("A nominal=gpu:"+gpus))})
	return w
}

func single(w *world, key string, prio int64) *queue.Workload {
	r := quota.Resources{}
	r.Set(quota.Pods, 1)
	r.Set(w.dimension("gpu"), 8)
	w.seq++
	return &queue.Workload{Key: key, UID: key + "-uid", Queue: "A", Priority: prio, Queued: w.now, Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1, Min: 1, Request: r}}}}
}

func (w *world) put(x *queue.Workload) {
	w.version++
	e := &WorkloadSeen{Workload: x, Version: w.version}
	w.objects[x.Key] = e
	w.s.Apply(*e)
}

// The protection of one young workload ends with time: a claim that failed because of
// it is tried again.
func TestMinRuntimeEnds(t *testing.T) {
	w := oneNode(t, "8")
	j1 := single(w, "J1", 0)
	j1.MinRuntime = time.Minute
	w.put(j1)
	w.cycle(t)
	w.put(single(w, "J2", 5))
	t.Log(w.cycle(t))
	w.now = w.now.Add(61 * time.Second)
	out := w.cycle(t)
	if v, _ := w.s.View("L"); v.Phase == Admitted {
		t.Fatal("two claims wait for pods that never stop: " + out)
	}
	if len(w.s.nominees) == 0 {
		t.Fatal("J1's MinRuntime is over, J2 does not preempt it")
	}
}

// A gang whose write has no answer yet is no victim; once it is settled it is one.
func TestUnknownSettles(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J1", 0))
	d := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	w.s.Apply(Outcome{Act: ActAdmit, Key: "J1", Result: Unknown, At: w.now})
	w.put(single(w, "J2", 5))
	d2 := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d2})
	if len(d2.Evict) > 0 {
		t.Fatal("early")
	}
	w.carry(&Decision{Admit: d.Admit}) // the cluster shows the admission
	out := w.cycle(t)
	if v, _ := w.s.View("J2"); v.Phase != Admitted {
		t.Fatal("J1 is settled, J2 does not preempt it: " + out)
	}
}

// The owner holds a claim whose admission was refused: the room kept for it is free again.
func TestRefusedThenHeld(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J1", 5))
	d := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	w.s.Apply(Outcome{Act: ActAdmit, Key: "J1", Result: Refused, At: w.now})
	w.put(single(w, "J2", 0))
	w.cycle(t)
	h := single(w, "J1", 5)
	h.Held = true
	w.put(h)
	out := w.cycle(t)
	w.now = w.now.Add(10 * time.Minute)
	out += w.cycle(t)
	if v, _ := w.s.View("J2"); v.Phase != Admitted {
		t.Fatal("nobody is there, J2 waits: " + out)
	}
}

// Watches of kinds are not ordered: the pods of the new object come before the object.
func TestPodsBeforeNewUID(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J", 0))
	w.s.Apply(PodSeen{Pod: Pod{UID: "new-pod", Key: "new-pod", Version: 1, Workload: "J", Set: "main"}})
	n := single(w, "J", 0)
	n.UID = "second"
	w.put(n)
	w.cycle(t)
	if w.s.pods["new-pod"] == nil {
		t.Fatal("the gated pod of the new J is forgotten and never released")
	}
}

// A workload without pod sets holds nothing; its pods count by themselves.
func TestNoPodSets(t *testing.T) {
	w := oneNode(t, "8")
	w.put(&queue.Workload{Key: "J", UID: "j", Queue: "A"})
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 1, Workload: "J", Set: "main", Node: "h", Phase: PodPlaced}})
	if bad := w.s.Check(); len(bad) > 0 {
		t.Fatal(bad)
	}
}

// A workload that names no queue is charged all the same while its pods run.
func TestQueueEmptyName(t *testing.T) {
	w := oneNode(t, "8")
	x := single(w, "J", 0)
	x.Queue = ""
	w.put(x)
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 1, Workload: "J", Set: "main", Node: "h", Phase: PodPlaced}})
	w.put(single(w, "K", 0))
	w.cycle(t)
	if bad := w.s.Check(); len(bad) > 0 {
		t.Fatal(bad)
	}
}

// A pod gets its workload's label after it was first seen.
func TestPodLabelledLate(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J", 0))
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 1, Workload: "", Set: "main"}})
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 2, Workload: "J", Set: "main"}})
	d := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	for _, a := range d.Admit {
		a := a
		w.see(a.Key, func(e *WorkloadSeen) { e.Admission = &a })
	}
	d = Cycle(w.s, w.now)
	if len(d.Release) == 0 {
		t.Fatal("pod p of J is never released")
	}
}

// An eviction that was refused is tried again, also while a second claim of the same
// shape waits.
func TestEvictRefused(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J1", 0))
	w.cycle(t)
	w.put(single(w, "K1", 5))
	w.put(single(w, "K2", 5))
	d := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	w.s.Apply(Outcome{Act: ActEvict, Key: "J1", Result: Refused, At: w.now})
	w.cycle(t)
	w.now = w.now.Add(5 * time.Second)
	out := w.cycle(t)
	if v, _ := w.s.View("J1"); v.Phase == Admitted {
		t.Fatal("the eviction is never tried again: " + out)
	}
}

// An awaited victim that never stops: the claim must look for others.
func TestAwaitedStuck(t *testing.T) {
	w := newWorld()
	w.node(t, fields("n1 gpu=8"))
	w.node(t, fields("n2 gpu=8"))
	w.s.Apply(QueueSeen{w.queue(t, fields("A nominal=gpu:16"))})
	w.put(single(w, "S", 9))
	w.put(single(w, "L", 0))
	w.cycle(t)
	s := single(w, "S", 9)
	s.Held = true
	w.version++
	w.objects["S"].Workload, w.objects["S"].Version = s, w.version
	w.s.Apply(*w.objects["S"])
	w.cycle(t)
	w.put(single(w, "K1", 5))
	t.Log(w.cycle(t))
	w.put(single(w, "K2", 5))
	t.Log(w.cycle(t))
	w.now = w.now.Add(2 * time.Minute)
	out := w.cycle(t)
	if v, _ := w.s.View("L"); v.Phase == Admitted {
		t.Fatal("two claims wait for pods that never stop: " + out)
	}
}

// Pods that were seen before their workload keep it from being admitted beside them.
func TestAdoptLingers(t *testing.T) {
	w := oneNode(t, "16")
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 1, Workload: "J", Set: "main", Node: "h", Phase: PodPlaced}})
	w.put(single(w, "J", 0))
	bad := w.s.Check()
	d := Cycle(w.s, w.now)
	if len(bad) > 0 || len(d.Admit) > 0 {
		t.Fatal(bad, d.Admit)
	}
}

// The node of its old pods is back before it was admitted elsewhere.
func TestLostNodeBack(t *testing.T) {
	w := newWorld()
	w.node(t, fields("n1 gpu=8 lost"))
	w.s.Apply(QueueSeen{w.queue(t, fields("A nominal=gpu:16"))})
	w.put(single(w, "J", 0))
	w.s.Apply(PodSeen{Pod: Pod{UID: "p", Key: "p", Version: 1, Workload: "J", Set: "main", Node: "n1", Phase: PodPlaced}})
	w.node(t, fields("n1 gpu=8"))
	w.node(t, fields("n2 gpu=8"))
	bad := w.s.Check()
	d := Cycle(w.s, w.now)
	if len(bad) > 0 || len(d.Admit) > 0 {
		t.Fatal(bad, d.Admit)
	}
}

// A release without an answer, its workload deleted, the pod gated and bound later
// after all: it counts by itself.
func TestDeadOwner(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J", 0))
	p := Pod{UID: "p", Key: "p", Version: 1, Workload: "J", Set: "main"}
	w.s.Apply(PodSeen{Pod: p})
	d := Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	a := d.Admit[0]
	w.see("J", func(e *WorkloadSeen) { e.Admission = &a })
	d = Cycle(w.s, w.now)
	w.s.Apply(Assumed{d})
	w.s.Apply(Outcome{Act: ActRelease, Key: "p", Result: Unknown, At: w.now})
	w.s.Apply(WorkloadGone{"J"})
	p.Version = 2
	w.s.Apply(PodSeen{Pod: p, Fresh: true}) // still gated
	p.Version, p.Node, p.Phase = 3, "h", PodPlaced
	w.s.Apply(PodSeen{Pod: p})
	if bad := w.s.Check(); len(bad) > 0 {
		t.Error(bad)
	}
	w.s.Apply(QueueSeen{w.queue(t, fields("A nominal=gpu:8"))})
	w.s.Apply(PodGone{"p"})
}

// A replacement is not released to the place that the pod before it, which stops,
// still holds; once that is gone it is.
func TestReplacementWaits(t *testing.T) {
	w := oneNode(t, "8")
	w.put(single(w, "J", 0))
	w.cycle(t)
	old := w.podsOf("J")[0]
	old.Stopping, old.Version = true, old.Version+1
	w.s.Apply(PodSeen{Pod: old})
	w.s.Apply(PodSeen{Pod: Pod{UID: "next", Key: "next", Version: 1, Workload: "J", Set: "main"}})
	if d := Cycle(w.s, w.now); len(d.Release) > 0 || len(d.Evict) > 0 {
		t.Fatalf("released %v, evicted %v while %s is there", d.Release, d.Evict, old.UID)
	}
	w.s.Apply(PodGone{old.UID})
	if d := Cycle(w.s, w.now); len(d.Release) != 1 || d.Release[0].UID != "next" {
		t.Fatalf("released %v once %s was gone", d.Release, old.UID)
	}
}
