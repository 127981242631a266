package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"sluice.dev/sluice/simulations/sandbox/kube"
)

const (
	// saidAnnotation keeps what the nodes file said about a node when it was
	// last applied. Nodes without it were not made by a nodes file.
	saidAnnotation = "sandbox.sluice.dev/node"

	path = "/api/v1/nodes"

	// parallel is how many nodes are written at a time.
	parallel = 8
	// attempts bounds how often a change is tried again after somebody else
	// changed the node in between.
	attempts = 5
)

// Changes names the nodes that Apply wrote.
type Changes struct {
	Created, Changed, Removed []string
}

// Empty reports whether everything was as it should be.
func (c Changes) Empty() bool { return len(c.Created)+len(c.Changed)+len(c.Removed) == 0 }

// Applier makes the nodes of one API server what a nodes file says.
type Applier struct {
	API *kube.Client
	// Ready creates nodes that are Ready from the start. It is for an API
	// server without anyone who plays the kubelet.
	Ready bool
}

// object is what is read of a node.
type object struct {
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Taints []map[string]any `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// Apply creates, changes and removes nodes until the wanted ones are there as
// wanted, and no other that an earlier nodes file made.
func (a Applier) Apply(ctx context.Context, want []Node) (Changes, error) {
	var list struct{ Items []object }
	if err := a.API.Read(ctx, path, &list); err != nil {
		return Changes{}, fmt.Errorf("list nodes: %w", err)
	}
	have := make(map[string]object, len(list.Items))
	for _, o := range list.Items {
		have[o.Metadata.Name] = o
	}
	wanted := make(map[string]bool, len(want))
	var changes Changes
	var create, change []Node
	for _, n := range want {
		wanted[n.Name] = true
		switch o, exists := have[n.Name]; {
		case !exists:
			create = append(create, n)
			changes.Created = append(changes.Created, n.Name)
		case o.Metadata.Annotations[saidAnnotation] == "":
			return Changes{}, fmt.Errorf("node %s exists and was not made from a nodes file", n.Name)
		case o.Metadata.Annotations[saidAnnotation] != n.said():
			change = append(change, n)
			changes.Changed = append(changes.Changed, n.Name)
		}
	}
	for name, o := range have {
		if !wanted[name] && o.Metadata.Annotations[saidAnnotation] != "" {
			changes.Removed = append(changes.Removed, name)
		}
	}
	slices.Sort(changes.Removed)
	return changes, errors.Join(
		each(create, func(n Node) error { return a.create(ctx, n) }),
		each(change, func(n Node) error { return a.change(ctx, n) }),
		each(changes.Removed, func(name string) error { return a.remove(ctx, name) }),
	)
}

// said is the node's text as its annotation keeps it. Map keys are written in
// order, so equal nodes have equal texts.
func (n Node) said() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(fmt.Sprintf("nodes: encode node %s: %v", n.Name, err))
	}
	return string(text)
}

// create adds the node with its resources. The API server keeps the status of
// a node that comes with its creation; later only its status subresource can
// change it.
func (a Applier) create(ctx context.Context, n Node) error {
	status := map[string]any{"capacity": n.Resources, "allocatable": n.Resources}
	if a.Ready {
		status["conditions"] = []map[string]string{{
			"type": "Ready", "status": "True", "reason": "Sandbox", "message": "nobody plays the kubelet of this node",
		}}
	}
	body := map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": n.Name, "labels": n.Labels, "annotations": map[string]string{saidAnnotation: n.said()},
		},
		"spec":   map[string]any{"taints": n.Taints},
		"status": status,
	}
	if err := a.API.Create(ctx, path, body, nil); err != nil {
		return fmt.Errorf("create node %s: %w", n.Name, err)
	}
	return nil
}

// change brings a node from what the file said about it to what it says now.
// The resources go first and the annotation last: if this stops in between, it
// is done again as a whole.
func (a Applier) change(ctx context.Context, n Node) error {
	var err error
	for range attempts {
		var o object
		if err = a.API.Read(ctx, path+"/"+n.Name, &o); err != nil {
			break
		}
		var old Node
		if err = json.Unmarshal([]byte(o.Metadata.Annotations[saidAnnotation]), &old); err != nil {
			break
		}
		resources := difference(old.Resources, n.Resources)
		status := map[string]any{"status": map[string]any{"capacity": resources, "allocatable": resources}}
		var changed object
		if err = a.API.Merge(ctx, path+"/"+n.Name+"/status", status, &changed); err != nil {
			break
		}
		err = a.API.Merge(ctx, path+"/"+n.Name, map[string]any{
			"metadata": map[string]any{
				"resourceVersion": changed.Metadata.ResourceVersion,
				"labels":          difference(old.Labels, n.Labels),
				"annotations":     map[string]string{saidAnnotation: n.said()},
			},
			"spec": map[string]any{"taints": taints(changed.Spec.Taints, old.Taints, n.Taints)},
		}, nil)
		if !kube.IsCode(err, http.StatusConflict) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("change node %s: %w", n.Name, err)
	}
	return nil
}

func (a Applier) remove(ctx context.Context, name string) error {
	err := a.API.Delete(ctx, path+"/"+name)
	if err != nil && !kube.IsCode(err, http.StatusNotFound) {
		return fmt.Errorf("remove node %s: %w", name, err)
	}
	return nil
}

// difference is the merge patch that leads from old to now: all of now, and
// null for what only old has. What neither names is left as it is.
func difference(old, now map[string]string) map[string]any {
	patch := make(map[string]any, len(now))
	for key := range old {
		patch[key] = nil
	}
	for key, value := range now {
		patch[key] = value
	}
	return patch
}

// taints replaces the old taints by the new ones and keeps all others, such as
// those of the node controller.
func taints(have []map[string]any, old, now []Taint) []any {
	ours := make(map[[2]any]bool)
	for _, t := range slices.Concat(old, now) {
		ours[[2]any{t.Key, t.Effect}] = true
	}
	kept := []any{}
	for _, t := range have {
		if !ours[[2]any{t["key"], t["effect"]}] {
			kept = append(kept, t)
		}
	}
	for _, t := range now {
		kept = append(kept, t)
	}
	return kept
}

// each does something for every item, several at a time, and returns all that
// went wrong.
func each[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(item)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
